import { Type } from '@sinclair/typebox';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Condition } from '../../src/contract/conditions.js';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import { installCrd } from '../support/cluster.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

const crd = defineCrd({
  group: 'define-crd.example.com',
  kind: 'Guestbook',
  shortNames: ['gb'],
  description: 'A guestbook on the web.',
  rules: [{ rule: 'size(self.metadata.name) <= 52', message: 'the name is too long' }],
  spec: {
    type: 'object',
    required: ['image'],
    properties: {
      image: { type: 'string', minLength: 1 },
      replicas: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
      size: { type: 'string', enum: ['small', 'large'], nullable: true },
      port: { 'x-kubernetes-int-or-string': true },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      theme: { type: 'object', default: {}, properties: { color: { type: 'string', default: 'red' } } },
      ports: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['port'],
        items: { type: 'object', required: ['port'], properties: { port: { type: 'integer' } } },
      },
    },
  },
  status: { readyReplicas: { type: 'integer', format: 'int32' } },
  columns: [{ name: 'Image', type: 'string', jsonPath: '.spec.image' }],
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.readyReplicas' },
});
const kind = defineKind({ crd, construct: Construct, children: [] });

test('the API server takes a CRD of defineCrd whole, and holds custom resources against it', async () => {
  const kubectl: typeof cluster.sandbox.kubectl = (args, options) => cluster.sandbox.kubectl(args, options);
  const { stderr } = await kubectl(['apply', '--server-side', '--validate=strict', '-f', '-'], {
    stdin: JSON.stringify(crd),
  });
  expect(stderr).toBe('');
  await installCrd(cluster, kind);

  const { stdout } = await kubectl(['get', 'crd', crd.metadata.name, '-o', 'json']);
  const definition = JSON.parse(stdout) as {
    readonly spec: object;
    readonly status: { readonly conditions: readonly Condition[] };
  };
  const held = definition.status.conditions.filter(({ status }) => status === 'True');
  expect(held.map(({ type }) => type).sort()).toEqual(['Established', 'NamesAccepted']);
  expect(definition.spec).toMatchObject(crd.spec);

  const namespace = await cluster.makeNamespace('define-crd');
  const { apiVersion } = kind.type;
  const path = `/apis/${apiVersion}/namespaces/${namespace}/guestbooks`;
  const create = (name: string, spec: object) =>
    cluster.send('POST', path, {
      body: { apiVersion, kind: 'Guestbook', metadata: { name }, spec },
      query: { fieldValidation: 'Strict' },
    });
  const made = await create('home', { image: 'example.com/gb:1', port: '80%', raw: { a: 1 } });
  expect(made.body).toMatchObject({
    spec: { replicas: 1, theme: { color: 'red' }, raw: { a: 1 } },
    status: { observedGeneration: -1 },
  });
  expect((await create('none', {})).body.message).toContain('spec.image: Required value');
  expect((await create('a'.repeat(53), { image: 'a' })).body.message).toContain('the name is too long');

  await kubectl(['scale', 'gb/home', '--replicas', '3', '-n', namespace]);
  const scaled = await cluster.send('GET', `${path}/home/scale`);
  expect(scaled.body).toMatchObject({ spec: { replicas: 3 }, status: { replicas: 0 } });

  const table = await kubectl(['get', 'gb', '-n', namespace]);
  expect(table.stdout.split('\n')[0]?.split(/ +/)).toEqual(['NAME', 'READY', 'REASON', 'IMAGE', 'AGE']);
});

test.each([
  [
    'zod',
    z.object({
      image: z.string().min(1),
      size: z.int().min(0).default(1),
      tier: z.union([z.literal('small'), z.literal('large')]).optional(),
      note: z.string().nullable().optional(),
      ratio: z.number().gt(0).optional(),
      labels: z.record(z.string(), z.string()).optional(),
      raw: z.looseObject({}).optional(),
    }),
  ],
  [
    'typebox',
    Type.Object(
      {
        image: Type.String({ minLength: 1 }),
        size: Type.Integer({ minimum: 0, default: 1 }),
        tier: Type.Optional(Type.Union([Type.Literal('small'), Type.Literal('large')])),
        note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        ratio: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
        labels: Type.Optional(Type.Record(Type.String(), Type.String())),
        raw: Type.Optional(Type.Object({}, { additionalProperties: true })),
      },
      { additionalProperties: false },
    ),
  ],
])(
  'the API server takes a CRD with a schema of %s, and holds custom resources against it',
  async (from, spec) => {
    const group = `${from}.example.com`;
    const made = defineCrd({ group, kind: 'Guestbook', description: 'A guestbook.', spec });
    const { stderr } = await cluster.sandbox.kubectl(
      ['apply', '--server-side', '--validate=strict', '-f', '-'],
      {
        stdin: JSON.stringify(made),
      },
    );
    expect(stderr).toBe('');
    await installCrd(cluster, defineKind({ crd: made, construct: Construct, children: [] }));

    const path = `/apis/${group}/v1/namespaces/${await cluster.makeNamespace(from)}/guestbooks`;
    const create = (given: object) =>
      cluster.send('POST', path, {
        body: {
          apiVersion: `${group}/v1`,
          kind: 'Guestbook',
          metadata: { generateName: 'gb-' },
          spec: given,
        },
        query: { fieldValidation: 'Strict' },
      });
    const whole = {
      image: 'a',
      tier: 'large',
      note: null,
      ratio: 0.5,
      labels: { a: 'b' },
      raw: { deep: { a: 1 } },
    };
    expect((await create(whole)).body).toMatchObject({ spec: { ...whole, size: 1 } });
    for (const [wrong, message] of [
      [{ tier: 'large' }, 'spec.image: Required value'],
      [{ image: 'a', tier: 'other' }, 'supported values: "small", "large"'],
      [{ image: 'a', ratio: 0 }, 'spec.ratio in body should be greater than 0'],
      [{ image: 'a', labels: { a: 1 } }, 'spec.labels.a in body must be of type string'],
    ] as const)
      expect((await create(wrong)).body.message).toContain(message);
  },
);

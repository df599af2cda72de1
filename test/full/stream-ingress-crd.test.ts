import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import { brokenChanges, brokenRules } from '../kinds/stream-ingress/broken-rules.js';
import { Cluster, collection } from './support/cluster.js';
import type { Answer } from './support/cluster.js';
import { installCrd } from './support/crds.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const strict = { dryRun: 'All', fieldValidation: 'Strict' };
const base = { listen: 9000, upstream: { service: 'db', port: 5432 } };
let path: string;
let namespace: string;

beforeAll(async () => {
  await installCrd(cluster, kind);
  namespace = await cluster.makeNamespace('stream-ingress-crd');
  path = collection(kind.type, namespace);
});

afterAll(() => cluster.close());

function ingress(spec: object, name = 'web') {
  const { apiVersion, kind: of } = kind.type;
  return { apiVersion, kind: of, metadata: { namespace, name }, spec: { ...base, ...spec } };
}

async function answerTo(spec: object, name?: string): Promise<Answer> {
  return cluster.send('POST', path, { body: ingress(spec, name), query: strict });
}

function expectRefusal({ status, body }: Answer, field: string, message: string): void {
  expect(status, JSON.stringify(body)).toBe(422);
  const { causes } = body.details as { causes: readonly { field: string; message: string }[] };
  expect(causes.map((cause) => cause.field)).toEqual([field]);
  expect(causes[0]!.message).toContain(message);
}

test('kubectl apply takes the CRD', async () => {
  const file = fileURLToPath(new URL(`../../crds/${kind.crd.metadata.name}.yaml`, import.meta.url));

  const { stderr } = await cluster.sandbox.kubectl(['apply', '--dry-run=server', '-f', file]);
  expect(stderr.replace(/^Warning: resource .* is missing the kubectl.*\n/m, '')).toBe('');
  expect(readFileSync(file, 'utf8').length).toBeLessThan(64 * 1024);
});

test.each(brokenRules)('refuses: $message: $spec', async ({ spec, valid, name, path: field, message }) => {
  expectRefusal(await answerTo(spec, name), field, message);
  const taken = await answerTo(valid);
  expect([taken.status, taken.body.message]).toEqual([201, undefined]);
});

test.each(brokenChanges.map((change, index) => ({ ...change, name: `change-${index}` })))(
  'refuses: $message: from $before to $after',
  async ({ before, after, path: field, message, name }) => {
    const live = await cluster.create(kind.type, ingress(before, name));
    const put = (spec: object): Promise<Answer> =>
      cluster.send('PUT', `${path}/${name}`, {
        body: { ...live, spec: { ...base, ...spec } },
        query: strict,
      });

    expectRefusal(await put(after), field, message);
    expect((await put(before)).status).toBe(200);
    expect((await answerTo(after)).status).toBe(201);
  },
);

const outOfBounds: readonly (readonly [string, object])[] = [
  ['spec.listen', { listen: 0 }],
  ['spec.listen', { listen: 65_536 }],
  ['spec.upstream.port', { upstream: { service: 'db', port: 0 } }],
  ['spec.upstream.port', { upstream: { service: 'db', port: 65_536 } }],
  ['spec.upstream.service', { upstream: { service: 'a'.repeat(64), port: 1 } }],
  ['spec.upstream.namespace', { upstream: { namespace: 'a'.repeat(64), service: 'db', port: 1 } }],
  ['spec.className', { className: 'a'.repeat(64) }],
];

test.each(outOfBounds)('refuses what is past the edge at %s: %j', async (field, spec) => {
  const { status, body } = await answerTo(spec);
  const { causes } = body.details as { causes: readonly { field: string }[] };
  // Where a text is too long, the API server adds that it hasn't looked at the rules.
  const fields = causes.map((cause) => cause.field).filter((at) => at !== '<nil>');

  expect([status, ...new Set(fields)]).toEqual([422, field]);
});

const longest = 'a'.repeat(63);

test.each([
  { listen: 1 },
  { listen: 65_535 },
  { upstream: { service: longest, port: 65_535, namespace: longest } },
  { upstream: { service: '1', port: longest }, className: longest },
])('takes what is at the edge: %j', async (spec) => {
  const { status, body } = await answerTo(spec, longest);

  expect([status, body.message]).toEqual([201, undefined]);
});

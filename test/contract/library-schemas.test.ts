import { Type } from '@sinclair/typebox';
import { Type as NewType } from 'typebox';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { defineCrd } from '../../src/author/define-crd.js';
import type { SpecOf, StatusOf } from '../../src/author/typed-crd.js';

const names = { group: 'web.example.com', kind: 'Guestbook', description: 'A guestbook.' };

const ofZod = defineCrd({
  ...names,
  spec: z.object({
    image: z.string().min(1).describe('Image to run.'),
    size: z.int().min(0).max(9).default(1),
    tier: z.enum(['small', 'large']).optional(),
    mode: z.union([z.literal('on'), z.literal('off')]),
    note: z.string().nullable().optional(),
    ratio: z.number().gt(0).optional(),
    labels: z.record(z.string(), z.string()).optional(),
    ports: z.array(z.strictObject({ port: z.int32() })).optional(),
    raw: z.looseObject({}).optional(),
  }),
  status: { ready: z.boolean() },
});

const ofTypeBox = defineCrd({
  ...names,
  spec: Type.Object(
    {
      image: Type.String({ minLength: 1, description: 'Image to run.' }),
      size: Type.Integer({ minimum: 0, maximum: 9, default: 1 }),
      tier: Type.Optional(Type.Union([Type.Literal('small'), Type.Literal('large')])),
      mode: Type.Union([Type.Literal('on'), Type.Literal('off')]),
      note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      ratio: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
      labels: Type.Optional(Type.Record(Type.String(), Type.String())),
      ports: Type.Optional(Type.Array(Type.Object({ port: Type.Integer() }))),
      raw: Type.Optional(Type.Object({}, { additionalProperties: true })),
    },
    { additionalProperties: false, $id: 'guestbook' },
  ),
  status: { ready: Type.Boolean() },
});

const ofNewTypeBox = defineCrd({
  ...names,
  spec: NewType.Object({
    image: NewType.String({ minLength: 1 }),
    tier: NewType.Optional(NewType.Union([NewType.Literal('small'), NewType.Literal('large')])),
  }),
});

const specOf = (crd: typeof ofZod | typeof ofTypeBox | typeof ofNewTypeBox) =>
  crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.spec;

/** Members of both; where TypeBox has a required member with a default, the API server fills it in all the same. */
const members = {
  image: { type: 'string', minLength: 1, description: 'Image to run.' },
  size: { type: 'integer', minimum: 0, maximum: 9, default: 1 },
  tier: { type: 'string', enum: ['small', 'large'] },
  mode: { type: 'string', enum: ['on', 'off'] },
  note: { type: 'string', nullable: true },
  ratio: { type: 'number', minimum: 0, exclusiveMinimum: true },
  labels: { type: 'object', additionalProperties: { type: 'string' } },
  raw: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

describe('defineCrd', () => {
  it('takes a schema of zod', () => {
    const { type, required, properties } = specOf(ofZod)!;
    expect({ type, required }).toEqual({ type: 'object', required: ['image', 'mode'] });
    expect(properties).toMatchObject(members);
    expect(properties?.ports?.items).toMatchObject({ type: 'object', required: ['port'] });
    expectTypeOf<SpecOf<typeof ofZod>['size']>().toEqualTypeOf<number>();
    expectTypeOf<SpecOf<typeof ofZod>['tier']>().toEqualTypeOf<'small' | 'large' | undefined>();
    expectTypeOf<StatusOf<typeof ofZod>>().toEqualTypeOf<{ readonly ready?: boolean }>();
  });

  it('takes a schema of TypeBox', () => {
    expect(specOf(ofTypeBox)).toEqual({
      type: 'object',
      required: ['image', 'size', 'mode'],
      properties: {
        ...members,
        ports: {
          type: 'array',
          items: { type: 'object', required: ['port'], properties: { port: { type: 'integer' } } },
        },
      },
    });
    expectTypeOf<SpecOf<typeof ofTypeBox>['size']>().toEqualTypeOf<number>();
    expectTypeOf<SpecOf<typeof ofTypeBox>['tier']>().toEqualTypeOf<'small' | 'large' | undefined>();
    expectTypeOf<StatusOf<typeof ofTypeBox>>().toEqualTypeOf<{ readonly ready?: boolean }>();
    expect(specOf(ofNewTypeBox)).toEqual({
      ...{ type: 'object', required: ['image'] },
      properties: { image: { type: 'string', minLength: 1 }, tier: members.tier },
    });
    expectTypeOf<SpecOf<typeof ofNewTypeBox>['image']>().toEqualTypeOf<string>();
    expectTypeOf<SpecOf<typeof ofNewTypeBox>['tier']>().toEqualTypeOf<'small' | 'large' | undefined>();
  });

  it('makes plain data of them', () => {
    for (const crd of [ofZod, ofTypeBox, ofNewTypeBox])
      expect(JSON.parse(JSON.stringify(crd))).toStrictEqual(crd);
  });

  it.each([
    ['spec.a: is one of several types', Type.Object({ a: Type.Union([Type.String(), Type.Number()]) })],
    ['spec.a: is an intersection', Type.Object({ a: Type.Intersect([Type.Object({}), Type.Object({})]) })],
    ['spec.a: is a tuple', Type.Object({ a: Type.Tuple([Type.String()]) })],
    ['spec.a.items: refers to another schema', Type.Object({ a: Type.Array(Type.Ref('Other')) })],
    ['spec.a: is one of several types', z.object({ a: z.union([z.string(), z.number()]) })],
    ["spec: can't be written as JSON schema", z.object({ a: z.date() })],
    ["spec: the library can't write it", { '~standard': { version: 1 } }],
  ])('refuses what a CRD can’t say: %s', (message, spec) => {
    expect(() => defineCrd({ ...names, spec: spec as never })).toThrow(`defineCrd: ${message}`);
  });
});

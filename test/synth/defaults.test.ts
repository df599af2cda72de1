import { expect, test } from 'vitest';
import type { StructuralSchema } from '../../src/contract/crd.js';
import { applyDefaults } from '../../src/validate/defaults.js';

const SCHEMA: StructuralSchema = {
  type: 'object',
  properties: {
    size: { type: 'integer', default: 1 },
    note: { type: 'string', nullable: true, default: 'none' },
    plain: { type: 'string' },
    nested: {
      type: 'object',
      default: {},
      properties: { depth: { type: 'integer', default: 2 } },
    },
    absent: { type: 'object', properties: { never: { type: 'integer', default: 3 } } },
    list: {
      type: 'array',
      items: { type: 'object', properties: { protocol: { type: 'string', default: 'TCP' } } },
    },
    map: { type: 'object', additionalProperties: { type: 'string', default: 'x' } },
    loose: { type: 'object', additionalProperties: { type: 'string' } },
  },
};

test.each<[what: string, given: object, expected: object]>([
  ['missing fields, nested ones in order', {}, { size: 1, note: 'none', nested: { depth: 2 } }],
  [
    'null where null is not allowed',
    { size: null, nested: null },
    { size: 1, note: 'none', nested: { depth: 2 } },
  ],
  ['null where null is allowed stays', { note: null }, { size: 1, note: null, nested: { depth: 2 } }],
  ['null without a default is dropped', { plain: null }, { size: 1, note: 'none', nested: { depth: 2 } }],
  [
    'items of lists and of maps',
    { list: [{}, { protocol: 'UDP' }], map: { a: null, b: 'y' }, loose: { a: null } },
    {
      size: 1,
      note: 'none',
      nested: { depth: 2 },
      list: [{ protocol: 'TCP' }, { protocol: 'UDP' }],
      map: { a: 'x', b: 'y' },
      loose: {},
    },
  ],
  [
    'unknown fields and zero values stay',
    { size: 0, other: { a: null }, nested: { depth: 0 } },
    { size: 0, note: 'none', other: { a: null }, nested: { depth: 0 } },
  ],
])('%s', (_, given, expected) => {
  const before = structuredClone(given);
  expect(applyDefaults(given, SCHEMA)).toEqual(expected);
  expect(given).toEqual(before);
});

test('a key named __proto__ is a key like any other', () => {
  const given = JSON.parse('{"loose":{"__proto__":"x"}}') as object;
  const { loose } = applyDefaults(given, SCHEMA) as { loose: object };
  expect(Object.keys(loose)).toEqual(['__proto__']);
});

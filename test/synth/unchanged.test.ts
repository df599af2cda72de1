import { expect, test } from 'vitest';
import type { StructuralSchema } from '../../src/contract/crd.js';
import { isUnchanged, isUnchangedAt } from '../../src/synth/unchanged.js';

const text: StructuralSchema = { type: 'string' };
const keyed: StructuralSchema = {
  type: 'array',
  items: { type: 'object', properties: { name: text, note: text } },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
};
const atomic: StructuralSchema = { type: 'array', items: text };
const map: StructuralSchema = { type: 'object', additionalProperties: text };
const free: StructuralSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const [a, b] = [{ name: 'a' }, { name: 'b', note: 'n' }];

test.each<[string, StructuralSchema, unknown, unknown, boolean]>([
  ['the same text', text, 'a', 'a', true],
  ['another text', text, 'a', 'b', false],
  ['null again', text, null, null, true],
  ['null before', text, 'a', null, false],
  ['items by key in another order', keyed, [a, b], [b, a], true],
  ['an item that has changed', keyed, [a, b], [a, { name: 'b' }], false],
  ['an item more', keyed, [a, b], [a], false],
  ['items without their key', keyed, [{ note: 'n' }], [{ note: 'n' }], false],
  ['items whose key is no scalar', keyed, [{ name: null }], [{ name: null }], false],
  ['other lists in the same order', atomic, ['a', 'b'], ['a', 'b'], true],
  ['other lists in another order', atomic, ['a', 'b'], ['b', 'a'], false],
  ['a list that was none', atomic, [], {}, false],
  ['a map in another order', map, { k: 'a', l: 'b' }, { l: 'b', k: 'a' }, true],
  ['a map with another key', map, { k: 'a' }, { l: 'a' }, false],
  ['what no schema describes', free, { k: 'a' }, { k: 'a' }, false],
  ['nothing at all', free, {}, {}, true],
])('%s', (_, schema, value, old, expected) => {
  expect(isUnchanged({ schema, value, old })).toBe(expected);
});

test('the nearest part that can be compared counts', () => {
  const schema: StructuralSchema = { type: 'object', properties: { list: atomic, other: text } };
  const old = { list: ['a', 'b'], other: 'x' };
  expect(isUnchangedAt({ schema, value: { ...old, other: 'y' }, old }, ['list', 1])).toBe(true);
  expect(isUnchangedAt({ schema, value: { ...old, list: ['a', 'b', 'c'] }, old }, ['list', 1])).toBe(false);
});

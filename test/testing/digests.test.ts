import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { digestsOf, withoutDigests } from '../../src/testing/sweep/normal.js';

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** An object whose data is made of its name. */
function configMap(data: (name: string) => Readonly<Record<string, unknown>>) {
  return (name: string): AnyObject[] => [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: data(name) },
  ];
}

test('a hash of a text that has the name in it is found', () => {
  const made = configMap((name) => ({ hash: hash(`peers: ${name}-0`), other: hash('nothing'), of: name }));

  expect(digestsOf(made, 'one')).toEqual([hash('peers: one-0')]);
});

test.each<[what: string, data: (name: string) => Readonly<Record<string, unknown>>]>([
  ['the name', (name) => ({ text: `nats://${name}-0.${name}-peers:6222` })],
  ['a text of another length', (name) => ({ text: name === 'one' ? 'abcdefgh' : 'abcdefghi' })],
  ['words', (name) => ({ text: name === 'one' ? 'red or blue' : 'red or pink' })],
  ['what is there under one name alone', (name) => (name === 'one' ? { text: 'abcdefgh' } : {})],
  ['a number', (name) => ({ size: name === 'one' ? 1 : 2 })],
])('%s is none', (_what, data) => {
  expect(digestsOf(configMap(data), 'one')).toEqual([]);
});

test('a hash that is not the present one stays as it is', () => {
  const [now, then] = [hash('now one'), hash('then one')];

  expect(withoutDigests(JSON.stringify({ now, then }), [now])).toBe(
    JSON.stringify({ now: '<digest>', then }),
  );
});

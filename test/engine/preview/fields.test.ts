import { expect, test } from 'vitest';
import { fieldChanges } from '../../../src/engine/preview/fields.js';

const before = {
  spec: {
    replicas: 1,
    containers: [
      { name: 'web', image: 'web:1' },
      { name: 'side', image: 'side:1' },
    ],
    args: ['a', 'b'],
  },
  metadata: { labels: { 'app.kubernetes.io/name': 'web' } },
};

test('a field that is another, one that comes and one that goes', () => {
  const { replicas, ...rest } = before.spec;
  const found = fieldChanges(before, { ...before, spec: { ...rest, paused: true, args: ['a', 'c'] } });
  expect(found).toEqual([
    { path: '.spec.args[1]', before: 'b', after: 'c' },
    { path: '.spec.paused', after: true },
    { path: '.spec.replicas', before: replicas },
  ]);
});

test('items of a list by the key that identifies them, whatever their order', () => {
  const containers = [
    { name: 'new', image: 'new:1' },
    { name: 'web', image: 'web:2' },
  ];
  expect(fieldChanges(before, { ...before, spec: { ...before.spec, containers } })).toEqual([
    { path: '.spec.containers[name="new"]', after: { name: 'new', image: 'new:1' } },
    { path: '.spec.containers[name="web"].image', before: 'web:1', after: 'web:2' },
    { path: '.spec.containers[name="side"]', before: { name: 'side', image: 'side:1' } },
  ]);
});

test('items that only stand in another order are a change of the list', () => {
  const containers = before.spec.containers.toReversed();
  expect(fieldChanges(before, { ...before, spec: { ...before.spec, containers } })).toEqual([
    { path: '.spec.containers', before: before.spec.containers, after: containers },
  ]);
});

test('a name that is no word stands in quotes', () => {
  const labels = { 'app.kubernetes.io/name': 'shop' };
  expect(fieldChanges(before, { ...before, metadata: { labels } })).toEqual([
    { path: '.metadata.labels["app.kubernetes.io/name"]', before: 'web', after: 'shop' },
  ]);
});

test('keys that every object of JavaScript has are fields like any other', () => {
  expect(fieldChanges({ data: { a: '1' } }, { data: { a: '1', constructor: 'x', toString: 'y' } })).toEqual([
    { path: '.data.constructor', after: 'x' },
    { path: '.data.toString', after: 'y' },
  ]);
});

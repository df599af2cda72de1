import { expect, test } from 'vitest';
import { describeSteps, leavesOf, valueAt, withValueAt } from '../../src/testing/sweep/normal.js';

const fields = {
  'f:metadata': { 'f:labels': { 'f:app': {} } },
  'f:spec': {
    'f:replicas': {},
    'f:containers': {
      'k:{"name":"web"}': { '.': {}, 'f:name': {}, 'f:image': {}, 'f:ports': {} },
    },
    'f:set': { 'v:"a"': {} },
  },
};
const object = {
  metadata: { labels: { app: 'web' } },
  spec: { replicas: 1, containers: [{ name: 'side' }, { name: 'web', image: 'one', ports: [] }], set: ['a'] },
};

test('every field at the end of what is owned is found, but for what names an item', () => {
  expect(leavesOf(fields).map(describeSteps)).toEqual([
    'metadata.labels.app',
    'spec.replicas',
    'spec.containers[name=web].image',
    'spec.containers[name=web].ports',
  ]);
});

test('each is read and replaced where it stands', () => {
  const [, , image] = leavesOf(fields);

  expect(valueAt(object, image!)).toBe('one');
  const changed = withValueAt(object, image!, 'two');
  expect(valueAt(changed, image!)).toBe('two');
  expect(withValueAt(changed, image!, 'one')).toEqual(object);
  expect(withValueAt(object, image!, undefined)).toMatchObject({
    spec: { containers: [{ name: 'side' }, { name: 'web', ports: [] }] },
  });
  expect(valueAt(withValueAt(object, image!, undefined), image!)).toBeUndefined();
});

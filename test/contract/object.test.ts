import { expect, it } from 'vitest';
import { controllerOf, describeRef, groupOf, objectKey, refOf, splitKey } from '../../src/contract/object.js';

it.each([
  ['shop', 'web', 'shop/web'],
  [undefined, 'node-1', 'node-1'],
])('makes a key of namespace and name, and takes it apart again', (namespace, name, key) => {
  expect(objectKey(namespace, name)).toBe(key);
  expect(splitKey(key)).toEqual({ ...(namespace !== undefined && { namespace }), name });
});

it('refers to an object, with and without namespace', () => {
  const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', uid: 'u' } };
  expect(refOf(object)).toEqual({ apiVersion: 'v1', kind: 'Node', name: 'n' });
  expect(describeRef(refOf(object))).toBe('Node n');
  expect(describeRef(refOf({ ...object, metadata: { namespace: 'shop', name: 'n' } }))).toBe('Node shop/n');
});

it('knows the group of an API version', () => {
  expect([groupOf('v1'), groupOf('apps/v1')]).toEqual(['', 'apps']);
});

it('finds the owner that controls an object', () => {
  const owner = { apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u' };
  const object = (...ownerReferences: object[]) =>
    controllerOf({
      apiVersion: 'v1',
      kind: 'Y',
      metadata: { name: 'y', ownerReferences: ownerReferences as never },
    });
  expect(object(owner, { ...owner, uid: 'c', controller: true })?.uid).toBe('c');
  expect(object(owner, { ...owner, controller: false })).toBeUndefined();
  expect(object()).toBeUndefined();
});

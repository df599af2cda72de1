import { expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { isUnchanged } from '../../src/install/apply.js';
import { INSTALL_MANAGER } from '../../src/install/names.js';

const status = { manager: 'kube-controller-manager', operation: 'Update', subresource: 'status' };

function deployment(
  resourceVersion: string,
  generation: number,
  managedFields: readonly object[],
): AnyObject {
  const metadata = { namespace: 'ops', name: 'reconstruct', uid: 'u', resourceVersion, generation };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadata, managedFields } as AnyObject['metadata'],
  };
}

const own = (time: string, fieldsV1: object = { 'f:spec': {} }) => ({
  ...{ manager: INSTALL_MANAGER, operation: 'Apply', time, fieldsV1 },
});
const before = deployment('7', 1, [own('12:00:00Z')]);

it.each<[what: string, after: AnyObject, unchanged: boolean]>([
  ['nothing', before, true],
  ["somebody else's status", deployment('9', 1, [own('12:00:00Z'), status]), true],
  ['a value of ours', deployment('9', 2, [own('12:00:00Z')]), false],
  ['a label of ours', deployment('9', 1, [own('12:00:07Z')]), false],
  ['a field that we own now', deployment('9', 1, [own('12:00:00Z', { 'f:spec': { 'f:x': {} } })]), false],
  ['all that was ours', deployment('9', 1, [status]), false],
])('a version in which %s has changed since we looked: %#', (_, after, unchanged) => {
  expect(isUnchanged(before, after)).toBe(unchanged);
});

it('where nothing was ours before, another version is a change', () => {
  expect(isUnchanged(deployment('7', 1, [status]), deployment('9', 1, [status]))).toBe(false);
});

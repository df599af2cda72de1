import { isDeepStrictEqual } from 'node:util';
import type { AnyObject } from '../contract/object.js';
import { INSTALL_MANAGER } from './names.js';

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
}

/**
 * Whether our apply has changed nothing. Others write their status, or a note of their own, between our look and our
 * apply; the time in our own entry of the managers stays as it is where nothing changes.
 */
export function isUnchanged(before: AnyObject, after: AnyObject): boolean {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return true;
  const own = ownEntry(before);
  return (
    own !== undefined &&
    isDeepStrictEqual(own, ownEntry(after)) &&
    before.metadata.generation === after.metadata.generation
  );
}

function ownEntry({ metadata }: AnyObject): ManagedFields | undefined {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields.find(
    ({ manager, operation, subresource }) =>
      manager === INSTALL_MANAGER && operation === 'Apply' && !subresource,
  );
}

import { OperatorError } from '../contract/error.js';
import { describeRef, groupOf, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { StoreReader } from './cache.js';

/** The failure that a list of the kind ends, whenever it comes. */
export const KIND_NOT_INSTALLED = 'KindNotInstalled';

/** Returns why an object may not be written or deleted: its kind isn't served, and may be installed all the same. */
export function notServed(object: AnyObject, reader: StoreReader): OperatorError | undefined {
  // What isn't watched is refused when it is applied.
  if (!reader.watches(object) || reader.store(object).unservedIn(object.metadata.namespace) !== 'doubtful')
    return undefined;
  const { apiVersion, kind } = object;
  return new OperatorError({
    reason: 'KindNotServed',
    retry: 'backoff',
    message: `${describeRef(refOf(object))} can't be changed: ${kind} is not served as ${apiVersion}; /readyz?verbose of the operator says why`,
  });
}

/**
 * Before an object is applied: that its kind is served, as far as is known.
 * @throws OperatorError `KindNotServed` where that is doubtful, `KindNotInstalled` where an optional one isn't installed
 */
export function checkServed(object: AnyObject, reader: StoreReader): void {
  const doubtful = notServed(object, reader);
  if (doubtful) throw doubtful;
  if (!reader.optional(object) || !reader.store(object).unservedIn(object.metadata.namespace)) return;
  const group = groupOf(object.apiVersion) || 'core';
  throw new OperatorError({
    reason: KIND_NOT_INSTALLED,
    message: `${describeRef(refOf(object))} can't be made: the kind ${object.kind} of the group ${group} is not installed in this cluster; install its CustomResourceDefinition (${object.apiVersion}), or remove what asks for it`,
  });
}

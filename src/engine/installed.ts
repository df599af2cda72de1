import { OperatorError } from '../contract/error.js';
import { describeRef, groupOf, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { StoreReader } from './stores.js';

/** The failure that a list of the kind ends, whenever it comes. */
export const KIND_NOT_INSTALLED = 'KindNotInstalled';

/**
 * Before an object of an optional type is applied: that there are such objects in this cluster.
 * @throws OperatorError `KindNotInstalled` once it is certain that there aren't
 */
export function checkInstalled(object: AnyObject, reader: StoreReader): void {
  if (!reader.optional(object) || reader.store(object).served(object.metadata.namespace)) return;
  const group = groupOf(object.apiVersion) || 'core';
  throw new OperatorError({
    reason: KIND_NOT_INSTALLED,
    message: `${describeRef(refOf(object))} can't be made: the kind ${object.kind} of the group ${group} is not installed in this cluster; install its CustomResourceDefinition (${object.apiVersion}), or remove what asks for it`,
  });
}

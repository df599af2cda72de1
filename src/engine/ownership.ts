import { OperatorError } from '../contract/error.js';
import { ADOPT_BY_ANNOTATION } from '../contract/names.js';
import { controllerOf, describeRef, groupOf, refOf } from '../contract/object.js';
import type { AnyObject, OwnerReference } from '../contract/object.js';

/**
 * Whether an owner may write an object that exists.
 * @throws OperatorError `OwnershipConflict` when the object belongs to somebody else, or to nobody and wasn't handed
 * over; `WaitingForGarbageCollection` when its owner was a namesake that is gone
 */
export function checkOwnership(object: AnyObject, owner: OwnerReference): void {
  const controller = controllerOf(object);
  if (controller?.uid === owner.uid) return;
  const what = describeRef(refOf(object));
  if (!controller) {
    const offer = `${owner.kind}/${owner.name}`;
    if (object.metadata.annotations?.[ADOPT_BY_ANNOTATION] === offer) return;
    throw new OperatorError({
      reason: 'OwnershipConflict',
      message: `${what} exists already and belongs to nobody; create the ${owner.kind} under another name or, where it may have the object, annotate the object with ${ADOPT_BY_ANNOTATION}=${offer}`,
    });
  }
  if (isNamesake(controller, owner)) {
    throw new OperatorError({
      reason: 'WaitingForGarbageCollection',
      message: `${what} belongs to an earlier ${owner.kind} ${owner.name}; it is made anew once it is collected`,
      retry: 'backoff',
    });
  }
  throw new OperatorError({
    reason: 'OwnershipConflict',
    message: `${what} exists already and is controlled by ${told(controller, owner)}; create the ${owner.kind} under another name`,
  });
}

/** With the group where only that tells the two apart. */
function told(controller: OwnerReference, owner: OwnerReference): string {
  const group = isTwinOf(controller, owner) ? ` of ${groupOf(controller.apiVersion)}` : '';
  return `${controller.kind} ${controller.name}${group}`;
}

/** Whether the two have the same kind and name, in different API groups. */
export function isTwinOf(controller: OwnerReference, owner: OwnerReference): boolean {
  return (
    controller.kind === owner.kind &&
    controller.name === owner.name &&
    groupOf(controller.apiVersion) !== groupOf(owner.apiVersion)
  );
}

/**
 * What is being deleted can't be brought back, only made anew.
 * @throws OperatorError `Terminating`
 */
export function checkNotTerminating(object: AnyObject): void {
  if (!object.metadata.deletionTimestamp) return;
  throw new OperatorError({
    reason: 'Terminating',
    message: `${describeRef(refOf(object))} is being deleted; it is made anew once it is gone`,
    retry: 'backoff',
  });
}

/**
 * Whether an object was left behind by a namesake of the owner, and by nobody else: one that was deleted, as a rule,
 * since there can be only one of a name.
 */
export function isLeftover(object: AnyObject, owner: OwnerReference): boolean {
  const controller = controllerOf(object);
  return (
    controller !== undefined &&
    controller.uid !== owner.uid &&
    isNamesake(controller, owner) &&
    object.metadata.ownerReferences?.length === 1
  );
}

function isNamesake(controller: OwnerReference, owner: OwnerReference): boolean {
  return (
    controller.kind === owner.kind &&
    controller.name === owner.name &&
    groupOf(controller.apiVersion) === groupOf(owner.apiVersion)
  );
}

import { OperatorError } from '../../contract/error.js';
import { ADOPT_BY_ANNOTATION } from '../../contract/names.js';
import { recordOf } from '../../values/projections.js';
import { controllerOf, describeRef, groupOf, refOf } from '../../contract/object.js';
import type { AnyObject, OwnerReference } from '../../contract/object.js';

/**
 * Checks that an owner may write an object that exists.
 * @throws OperatorError `OwnershipConflict` when the object belongs to another controller, or to none and wasn't handed
 * over; `WaitingForGarbageCollection` when its owner was a namesake that is gone
 */
export function checkOwnership(object: AnyObject, owner: OwnerReference): void {
  const controller = controllerOf(object);
  if (controller?.uid === owner.uid || isHandedOver(object, owner)) return;
  const what = describeRef(refOf(object));
  const rename = `create the ${owner.kind} under another name`;
  if (!controller) {
    const inside = object.metadata.namespace === undefined ? '' : ` -n ${object.metadata.namespace}`;
    const command = `reconstruct adopt ${owner.kind.toLowerCase()} ${owner.name}${inside}`;
    throw new OperatorError({
      reason: 'OwnershipConflict',
      message: `${what} exists already and has no owner; ${rename} or, where it may have the object, give "${command}" or annotate the object with ${ADOPT_BY_ANNOTATION}=${offerTo(owner)}`,
    });
  }
  if (isNamesake(controller, owner)) {
    throw new OperatorError({
      reason: 'WaitingForGarbageCollection',
      message: `${what} belongs to an earlier ${owner.kind} ${owner.name}; it is created once the old one is collected`,
      retry: 'backoff',
    });
  }
  // The group where only that tells the two apart.
  const isTwin = controller.kind === owner.kind && controller.name === owner.name;
  const group = isTwin ? ` of ${groupOf(controller.apiVersion)}` : '';
  throw new OperatorError({
    reason: 'OwnershipConflict',
    message: `${what} exists already and is controlled by ${controller.kind} ${controller.name}${group}; ${rename}`,
  });
}

/** The value of `adopt-by` that hands an object over. */
export function offerTo({ kind, name }: Pick<OwnerReference, 'kind' | 'name'>): string {
  return `${kind}/${name}`;
}

/** Reports whether an object has no controller, and is handed over to this owner. */
export function isHandedOver(object: AnyObject, owner: OwnerReference | undefined): boolean {
  return (
    owner !== undefined &&
    !controllerOf(object) &&
    object.metadata.annotations?.[ADOPT_BY_ANNOTATION] === offerTo(owner)
  );
}

/**
 * Reports whether an object without a controller lost the reference to this very owner: it was applied for its UID. One that was
 * kept when its owner was deleted has to be handed over: a user who may create the custom resource need not have a right to it.
 * @param isApplied whether our field manager has applied it; a copy of such an object lacks that
 */
export function isOrphan(object: AnyObject, owner: OwnerReference, isApplied = true): boolean {
  return !controllerOf(object) && isApplied && recordOf(object)?.owner === owner.uid;
}

/**
 * Checks that an object isn't being deleted: it can't be brought back, only created again.
 * @throws OperatorError `Terminating`
 */
export function checkNotTerminating(object: AnyObject): void {
  if (!object.metadata.deletionTimestamp) return;
  throw new OperatorError({
    reason: 'Terminating',
    message: `${describeRef(refOf(object))} is being deleted; it is created once it is gone`,
    retry: 'backoff',
  });
}

/**
 * Reports whether an object was left behind by a namesake of the owner, and by nothing else: one that was deleted, since
 * there can be only one of a name.
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

function isNamesake(a: OwnerReference, b: OwnerReference): boolean {
  return a.kind === b.kind && a.name === b.name && groupOf(a.apiVersion) === groupOf(b.apiVersion);
}

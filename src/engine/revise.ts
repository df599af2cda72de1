import type { Change, ChangeSet } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import type { Applier } from './apply.js';
import type { StoreReader } from './stores.js';

/**
 * Applies a step in the light of those before it, or leaves it out. What `revise` throws is a failure of this step
 * alone.
 */
export async function applyRevised(
  step: ApplyStep,
  before: ChangeSet,
  applier: Applier,
  reader: StoreReader,
): Promise<Change> {
  if (!step.revise || step.owner) return applier.apply(step, reader);
  const ref = refOf(step.object);
  let object: AnyObject | undefined;
  try {
    object = step.revise(before);
    checkSame(object, ref);
  } catch (cause) {
    return { ref, action: 'failed', error: cannotWorkOut(ref, cause) };
  }
  return object ? applier.apply({ ...step, object }, reader) : { ref, action: 'skipped' };
}

/** What a plan wants instead of an object is that object. */
export function checkSame(object: AnyObject | undefined, ref: ObjectRef): void {
  if (object && objectId(object) !== objectId(ref))
    throw new TypeError(`it gave ${describeRef(refOf(object))}`);
}

/** A function of the plan has thrown: a bug of the kind, not an answer of the API server. */
export function cannotWorkOut(ref: ObjectRef, cause: unknown): OperatorError {
  const message = `What to apply of ${describeRef(ref)} can't be worked out: ${messageOf(cause)}`;
  return new OperatorError({ reason: 'ReconcileFailed', message, retry: 'backoff', isBug: true, cause });
}

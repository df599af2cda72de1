import type { ChangeSet, FieldConflict } from '../../contract/change.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { ForeignStep } from '../../contract/plan.js';
import type { Applied } from '../../client/api.js';
import { ApiError, classify } from '../../client/api-error.js';
import { TRIES } from '../../client/retry.js';
import type { StepHandler } from '../plan/hand.js';
import type { Entry } from '../watch/cache.js';
import {
  checkNotTerminating,
  checkPause,
  checkRefusal,
  classifyApply,
  countApply,
  isCurrent,
  leaveAsIs,
  outcomeOf,
  remembered,
  saysNothing,
  sendApply,
  taskOf,
} from './apply.js';
import type { StepOutcome, Task } from './apply.js';
import { refresh } from './delete.js';
import { ownerKey } from './managed-fields.js';

/** Our fields of an object that others share: applied without force, and again where the object has gone. */
export interface ShareStep extends ForeignStep {
  readonly do: 'engine/share';
  /** Fields that are ours. With nothing but its identity, all are given up; the object isn't created for that. */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /**
   * Whether others have to create it: while it isn't there, the step fails with the reason `TargetMissing`, and is tried again when
   * it appears.
   * @default false - it is created
   */
  readonly mustExist?: boolean;
  /**
   * Returns what to apply instead, where others own fields that the intent names, and have a different value there: all
   * that were met so far. It is sent in the same pass; another conflict is asked about again, three times at most. Returned
   * undefined, the step fails with `FieldConflict`. `Change.conflicts` then names what was met, for as long as it is so.
   *
   * A conflict costs a request. So a plan that can see who owns what (a `keep` that keeps something of `managedFields`)
   * leaves others' fields out from the start; then this is for the race alone, and a restart costs nothing either. Else
   * what was left out is tried again when the intent or the object changes, and once after a restart.
   * @param intent what `revise` returned, or `object`
   * @default - a conflict fails the step
   */
  readonly onConflict?: (conflicts: readonly FieldConflict[], intent: AnyObject) => AnyObject | undefined;
  /**
   * Returns what to apply in the light of what became of the steps before it, instead of `object`; it must name the same
   * object. Returned undefined, the step is skipped.
   * @default - `object`
   */
  readonly revise?: (before: ChangeSet) => AnyObject | undefined;
}

/**
 * Applies what is ours of objects that others share, for the controllers that register it.
 *
 * **Guarantees.** What others own stays theirs: where the plan says what is to be applied instead, it is in the same pass; what had
 * to be left out is tried again once the object has changed, and not before. An intent that says nothing gives up what was ours,
 * and creates nothing.
 */
export const share: StepHandler<ShareStep> & Required<Pick<StepHandler<ShareStep>, 'preview'>> = {
  do: 'engine/share',

  async carryOut(step, hand, before) {
    const ref = refOf(step.object);
    const { revise } = step;
    const object = revise ? fromPlan(ref, () => revise(before)) : step.object;
    if (!object) return { ref, action: 'skipped' };
    return { ref, ...(await applyWithout(step, taskOf({ ...step, object }, hand))) };
  },

  preview(step, hand, before) {
    return this.carryOut(step, hand, before);
  },
};

/** Applies an intent without what others own, as the plan wants it. */
async function applyWithout(step: ShareStep, whole: Task): Promise<StepOutcome> {
  const { store, key, object, fieldManager, hash, hand } = whole;
  const { reductions } = hand.memory;
  const known = store.get(key);
  const ref = refOf(object);
  if (!known && step.mustExist) throw targetMissing(ref);
  if (saysNothing(object) && !known?.owned.has(ownerKey(fieldManager))) return { action: 'unchanged' };
  const reduced = (conflicts: readonly FieldConflict[]): AnyObject | undefined =>
    fromPlan(ref, () => step.onConflict?.(conflicts, object));
  // Conflicts are those of this version: what others let go of meanwhile is tried again.
  const { resourceVersion } = known?.object.metadata ?? {};
  const before = reductions.get(whole.applyId);
  const isSame = before?.hash === hash && before.resourceVersion === resourceVersion;
  let conflicts = isSame ? before.conflicts : [];
  reductions.delete(whole.applyId);
  for (let tries = 0; ; tries++) {
    try {
      const less = conflicts.length > 0 ? reduced(conflicts) : undefined;
      const outcome = await ensure(less ? taskOf({ object: less, fieldManager }, hand) : whole);
      if (conflicts.length === 0) return outcome;
      reductions.set(whole.applyId, { hash, resourceVersion, conflicts });
      return { ...outcome, conflicts };
    } catch (error) {
      const cause = error instanceof OperatorError ? error.cause : error;
      const met = cause instanceof ApiError ? cause.conflicts : [];
      if (met.length === 0) throw error;
      const others = met.filter(({ field }) => field !== `.metadata.annotations.${whole.hashName}`);
      // A writer that has copied it would keep us from ever applying again.
      if (others.length < met.length) await takeOffHash(whole);
      conflicts = [...conflicts, ...others];
      if (tries === TRIES.shared || (others.length > 0 && !reduced(conflicts)))
        return { action: 'failed', error: classify(error, `Apply ${describeRef(ref)}`), conflicts };
    }
  }
}

async function ensure(task: Task): Promise<StepOutcome> {
  const known = task.store.get(task.key);
  if (known) checkNotTerminating(known.object);
  if (known && isCurrent(task, known)) return leaveAsIs(task, known);
  checkRefusal(task, known);
  checkPause(task, known);
  let answer: Applied;
  try {
    answer = await sendApply(task, known, false);
  } catch (error) {
    throw await failedApply(task, known, error);
  }
  return outcomeOf(task, known, answer);
}

/** Returns the error of a failed apply of what isn't ours alone, which is read again where it isn't as it was. @param known what was judged */
export async function failedApply(
  task: Task,
  known: Entry | undefined,
  error: unknown,
): Promise<OperatorError> {
  const failure = classifyApply(task, error);
  countApply(task, failure.reason);
  const { conflict, wrongUid, showsAnother } = error instanceof ApiError ? error : ({} as Partial<ApiError>);
  if (conflict || wrongUid || (!known && showsAnother)) await refresh(task.object, task.hand);
  return remembered(task, known, failure);
}

async function takeOffHash({ object, hand, store, key, hashName }: Task): Promise<void> {
  const uid = store.get(key)?.object.metadata.uid;
  const body = { metadata: { uid, annotations: { [hashName]: null } } };
  await hand.api.mergePatch(hand.reader.resourceType(object), key, body);
  // It is another version now, so what was refused of the last one doesn't count any more.
  await refresh(object, hand);
}

/** Returns the error of an object that isn't there, and is not created. */
export function targetMissing(ref: ObjectRef): OperatorError {
  const message = `${describeRef(ref)} isn't there, and others have to create it`;
  return new OperatorError({ reason: 'TargetMissing', message });
}

/**
 * Calls a function of a plan for an object.
 * @throws OperatorError that names a bug of the kind, where it throws or returns another object
 */
function fromPlan(ref: ObjectRef, make: () => AnyObject | undefined): AnyObject | undefined {
  try {
    const object = make();
    if (object && objectId(object) !== objectId(ref)) throw new TypeError(`it gave ${describeRef(object)}`);
    return object;
  } catch (cause) {
    const message = `What to apply of ${describeRef(ref)} can't be worked out: ${messageOf(cause)}`;
    throw new OperatorError({ reason: 'ReconcileFailed', message, retry: 'backoff', isBug: true, cause });
  }
}

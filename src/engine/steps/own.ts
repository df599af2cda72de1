import { isDeepStrictEqual } from 'node:util';
import type { Drift } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { CREATED_ANNOTATION } from '../../contract/names.js';
import { controllerOf, describeRef, keyOf, refOf } from '../../contract/object.js';
import type { AnyObject, ManagedFieldsEntry } from '../../contract/object.js';
import type { DriftMode, OwnStep } from '../../contract/plan.js';
import type { Applied } from '../../client/api.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import type { Entry } from '../watch/cache.js';
import {
  asStale,
  changedMeanwhile,
  checkNotTerminating,
  checkPause,
  checkRefusal,
  classifyApply,
  countApply,
  fightId,
  isCurrent,
  isDrift,
  isHandedOver,
  leaveAsIs,
  outcomeOf,
  remembered,
  rememberApply,
  sendApply,
  taskOf,
  withoutContent,
  withUid,
  writeMetadata,
} from './apply.js';
import type { StepOutcome } from './apply.js';
import { deleteObject, refresh } from './delete.js';
import {
  driftOf,
  fieldAt,
  isLeftOver,
  isLegacy,
  ownedFields,
  ownerKey,
  withoutOwners,
  withWalkableFields,
} from './managed-fields.js';
import {
  isUnapplied,
  itemsBeside,
  itemsInTheWay,
  withApiVersion,
  withContentTaken,
  withItemsTaken,
  withOfferTaken,
  withSiblingsTaken,
} from './records.js';
import type { IsLeftOver } from './managed-fields.js';
import { isSameApply } from './memory.js';
import {
  checkOwned,
  checkOwner,
  finishGivingBack,
  giveBackIfOthersCreated,
  removeLeftover,
} from './owner.js';
import type { OwnedTask } from './owner.js';
import {
  appliedEntry,
  isAppliedBy,
  managedFieldsOf,
  ownerUidOf,
  wasAppliedBy,
} from '../../values/projections.js';
import { createdOf, presentValues, withCreated } from '../../values/created.js';

/** Task of a step. */
interface OwnTask extends OwnedTask {
  readonly step: OwnStep;
}

/**
 * Applies objects that belong to one owner, and skips the request when nothing would change.
 *
 * **Guarantees.** No request is sent for an object whose last apply still stands, also after a restart. A body that the API
 * server has refused for good isn't sent again until it, or the object in the way, changes, or a claim of it (such as a node
 * port) is released. What has been deleted isn't brought back by an apply that was under way. An object of others isn't
 * touched. Drift is corrected at once; where it comes back again and again, after a pause. What we drop from an object of ours
 * vanishes, also where `kubectl` or `helm` had set it. An object of an optional kind that isn't installed is refused without
 * a request.
 *
 * **Assumptions.** No other program applies with our field manager. The type of an owner is among the reader's.
 *
 * **Caveats.** See `Ownership` for what can't be known of an object that others create just before our first apply.
 */
export const own: StepHandler<OwnStep> = {
  do: 'own',

  async carryOut(step, hand) {
    return { ref: refOf(step.object), ...(await ensure(await ownTask(step, hand))) };
  },
};

async function ownTask(step: OwnStep, hand: Hand): Promise<OwnTask> {
  const object = step.createOnly ? await asCreated(step, step.createOnly, hand) : step.object;
  return { ...taskOf({ ...step, object }, hand), owner: step.owner, step };
}

/** Returns the object of a step with those of its fields that stay as they were created. */
async function asCreated(
  { object, fieldManager }: OwnStep,
  paths: readonly string[],
  hand: Hand,
): Promise<AnyObject> {
  hand.reader.checkServed(object);
  const store = hand.reader.store(object);
  const key = keyOf(object);
  if (!store.get(key) && !store.followed(object.metadata.namespace)) await refresh(object, hand);
  const known = store.get(key)?.object;
  if (!known) return withCreated(object, paths);
  const values = createdOf(known) ?? {};
  const isWhole = Object.keys(values).length === paths.length && paths.every((path) => path in values);
  if (isWhole) return withCreated(object, paths, values, known.metadata.annotations?.[CREATED_ANNOTATION]);
  // Another writer has changed or removed the record, or the type had other such fields before, or none.
  const live = await refresh(object, hand);
  const present = live && presentValues(live, object, paths, fieldManager);
  return withCreated(object, paths, { ...present, ...values });
}

async function ensure(task: OwnTask): Promise<StepOutcome> {
  const { step, store, key, hand } = task;
  if (hand.memory.takenOver.has(task.objectId)) await finishGivingBack(task.objectId, hand);
  let known = store.get(key);
  // While changes aren't delivered, an object that isn't known may have been created by others.
  if (!known && !store.followed(step.object.metadata.namespace)) {
    await refresh(step.object, hand);
    known = store.get(key);
  }
  if (known && isBoundOtherwise(task, known)) known = await rebind(task, known);
  if (known && controllerOf(known.object)?.uid !== step.owner.uid) known = await admit(task, known);
  else if (known && step.ofOthers && !known.owned.has(ownerKey(task.fieldManager))) throw madeByOthers(task);
  if (known) {
    checkNotTerminating(known.object);
    if (isCurrent(task, known)) return tidy(task, known);
    const mode = step.drift ?? hand.drift;
    // An orphan is no drift: until it is taken back, it isn't a child.
    if (mode !== 'correct' && isDrift(task, known, false) && ownerUidOf(known.object) !== undefined)
      return leave(task, known, mode);
  }
  checkRefusal(task, known);
  if (!known) await checkOwner(task);
  checkPause(task, known);
  return send(task, known);
}

function madeByOthers({ object, owner: { kind, name } }: OwnTask): OperatorError {
  return new OperatorError({
    reason: 'OwnershipConflict',
    message: `${describeRef(object)} exists already, made by another controller for ${kind} ${name}; give it another name`,
  });
}

/** Reports whether an object is its owner's in the other way: recorded where there is to be an owner reference now, or the reverse. */
function isBoundOtherwise({ owner, fieldManager }: OwnTask, { object, owned }: Entry): boolean {
  const isRecorded = owner.recordedKey !== undefined;
  if (isRecorded !== (controllerOf(object) !== undefined) || ownerUidOf(object) !== owner.uid) return false;
  const suffix = `:${owner.uid}`;
  return owned.has(ownerKey(isRecorded ? fieldManager.replace(suffix, '') : fieldManager + suffix));
}

/** Records what the owner's other manager has applied as this one's, so that the next apply removes what it doesn't name. */
async function rebind(task: OwnTask, known: Entry): Promise<Entry | undefined> {
  const { object, fieldManager, hand, store, key } = task;
  const live = await refresh(object, hand);
  if (!live || live.metadata.uid !== known.object.metadata.uid) throw changedMeanwhile(object);
  await writeManagedFields(task, live, withSiblingsTaken(live, fieldManager));
  return store.get(key);
}

/** Returns the object where its owner may write it. @throws OperatorError why it may not */
async function admit(task: OwnTask, before: Entry): Promise<Entry | undefined> {
  const known = await removeLeftover(task, before);
  if (known) checkOwned(task, known.object, known.owned.has(ownerKey(task.fieldManager)));
  return known;
}

/** Leaves an object whose last apply still stands, and takes from leftovers what they own of it. */
async function tidy(task: OwnTask, known: Entry): Promise<StepOutcome> {
  const { fights } = task.hand.memory;
  const outcome = leaveAsIs(task, known);
  if (!known.shared) return outcome;
  fights.checkPause(fightId(task), task.hash);
  const managers = known.shared.has(task.fieldManager) ? await takeFrom(isLeftOver, task) : [];
  if (managers.length === 0) return outcome;
  fights.corrected(fightId(task), known.object, { managers, fields: [] }, task.hash);
  return { action: 'configured' };
}

/**
 * Leaves an object that differs from the same intent. Whether another writer has changed fields of ours, and which, is found
 * by one dry run of the apply: the API server may only have recorded something else than what was sent.
 */
async function leave(task: OwnTask, known: Entry, mode: Exclude<DriftMode, 'correct'>): Promise<StepOutcome> {
  if (mode === 'ignore') return { action: 'unchanged' };
  const { hand, store, hash, fieldManager } = task;
  const { api, reader, memory } = hand;
  const { uid } = known.object.metadata;
  const manager = ownerKey(fieldManager);
  const before = memory.left.get(task.applyId);
  if (isSameApply(before?.seen, { hash, uid, owned: known.owned.get(manager) }))
    return { action: 'drifted', ...(before && { drift: before.drift }), isKnown: true };
  const live = await refresh(task.object, hand);
  if (!live) return { action: 'skipped', skippedFor: 'changed' };
  const options = { fieldManager, force: true, dryRun: true };
  const owned = ownedFields(live).get(manager);
  let drift: Drift = { managers: [], fields: [] };
  try {
    const body = withUid(task.intent, uid);
    const { object } = await api.apply(reader.resourceType(body), body, options);
    if (ownedFields(object).get(manager) === owned) {
      rememberApply(task, live);
      return { action: 'unchanged' };
    }
    drift = driftOf(managedFieldsOf(live), object, fieldManager);
  } catch (error) {
    // What can't be applied any more was changed by others all the same.
    if (!(error instanceof ApiError) || !(error.dryRunUnsupported || error.refused)) throw error;
  }
  memory.left.set(task.applyId, { seen: { hash, uid, owned }, drift });
  store.dropDriftRecord(task.key, known.object.metadata.resourceVersion);
  return { action: 'drifted', drift };
}

async function send(task: OwnTask, known: Entry | undefined): Promise<StepOutcome> {
  // A field that this apply drops would stay with a legacy manager forever, so its claim is removed first.
  if (known?.shared?.get(task.fieldManager)) await takeFrom(isLegacy, task);
  let answer: Applied;
  try {
    answer = await request(task, known);
  } catch (error) {
    const seen = task.isRewritten ? task.store.get(task.key) : known;
    const failure = await judge(task, seen, error);
    countApply(task, failure.reason);
    if (seen && isRecreated(task, failure)) return recreate(task, seen);
    throw failure;
  }
  const { object, created } = answer;
  if (!known && !created) await giveBackIfOthersCreated(task, object);
  const outcome = outcomeOf(task, known, answer);
  if (outcome.action === 'created' || outcome.action === 'unchanged') return outcome;
  const after = task.store.get(task.key);
  if (after?.shared?.has(task.fieldManager)) await takeFrom(isLeftOver, task, object);
  return outcome;
}

/** Sends one apply, and a second one where the first failed for what is recorded about owners. */
async function request(task: OwnTask, known: Entry | undefined): Promise<Applied> {
  // What isn't known to be ours is never taken by force: others may have created it a moment ago.
  const force = known !== undefined;
  try {
    if (known && isHandedOver(known.object, task.owner)) return await adopt(task, known);
    return await sendApply(task, known, force);
  } catch (error) {
    const undo = known && (await repair(task, error));
    if (!undo) throw error;
    try {
      return await sendApply(task, known, force);
    } catch (again) {
      // What would stay recorded as ours would be drift.
      if (again instanceof ApiError) await undo();
      throw again;
    }
  }
}

/**
 * Sends the apply by which an object is taken over, once what its former managers wrote is recorded as ours: so it goes
 * where we don't name it, and the offer, which would outlive the adoption. Where the API server refuses that, as for a field that can't be changed, only the items beside
 * ours in lists go, whichever writer they are from; and where it refuses that too, nothing goes.
 */
async function adopt(task: OwnTask, known: Entry): Promise<Applied> {
  const apply = async (): Promise<Applied> => sendApply(task, known, true);
  const { object, fieldManager, hand } = task;
  const { api, reader } = hand;
  let live = await refresh(object, hand);
  if (!live || withWalkableFields(live) !== live) return apply();
  // Where nothing is recorded, the first apply has the API server record what is there: one of nothing does.
  if (managedFieldsOf(live).length === 0) {
    const nothing = withUid(withoutContent(object), live.metadata.uid);
    const options = { fieldManager, force: false };
    live = (await api.apply(reader.resourceType(object), nothing, options)).object;
  }
  const siblings = withSiblingsTaken(live, fieldManager);
  if (siblings !== managedFieldsOf(live)) live = await writeManagedFields(task, live, siblings);
  let current = managedFieldsOf(live);
  const items = itemsBeside(live, object);
  const records = [
    withContentTaken(live, fieldManager),
    ...(items.length > 0 ? [withItemsTaken(live, fieldManager, items)] : []),
    // An earlier try may have been cut short.
    current.filter((entry) => !isAppliedBy(fieldManager, entry)),
  ];
  let failure: unknown;
  for (const taken of records) {
    const record = withOfferTaken(taken, live, fieldManager);
    const isRecorded = isDeepStrictEqual(record, current);
    if (isRecorded && failure) continue;
    if (!isRecorded) live = await writeManagedFields(task, live, record);
    current = record;
    try {
      return await apply();
    } catch (error) {
      failure = error;
      if (!(error instanceof ApiError) || !error.refused || error.wrongUid) break;
    }
  }
  throw failure;
}

/** Deletes and creates an object in which an immutable field has to change, once a dry run of the new one was accepted. */
async function recreate(before: OwnTask, known: Entry): Promise<StepOutcome> {
  const { step, hand } = before;
  const { recreate: way, createOnly, owner } = step;
  const { object } = known;
  const fresh = createOnly && withCreated(step.object, createOnly);
  const task = fresh ? { ...taskOf({ ...step, object: fresh }, hand), owner, step } : before;
  try {
    await checkAcceptable(task);
  } catch (error) {
    throw remembered(before, known, classify(error, `Replace ${describeRef(object)}`));
  }
  const { error } = await deleteObject(object, hand, way === 'orphan' ? 'Orphan' : undefined);
  if (error) throw error;
  const left = task.store.get(task.key);
  if (left) checkNotTerminating(left.object);
  task.hand.memory.vanished.delete(task.objectId);
  await send(task, undefined);
  return { action: 'recreated' };
}

/** Returns what a failure means. One that is for good is remembered. */
async function judge(task: OwnTask, known: Entry | undefined, error: unknown): Promise<OperatorError> {
  const { object, fieldManager, hand } = task;
  const failure = classifyApply(task, error);
  const isTaken = error instanceof ApiError && !known && error.showsAnother;
  if (error instanceof ApiError && (error.conflict || error.wrongUid || isTaken)) {
    try {
      const live = await refresh(object, hand);
      if (live) checkOwned(task, live, wasAppliedBy(fieldManager, live));
    } catch (conflict) {
      return classifyApply(task, conflict);
    }
    // It is ours after all, so next time it is known, and applied with force.
    if (error.fieldConflict || isTaken) return asStale(failure);
  }
  return isRecreated(task, failure) ? failure : remembered(task, known, failure);
}

/** Makes what was applied last ours alone, as far as leftovers own it too. @returns the managers that it was taken from */
async function takeFrom(isTaken: IsLeftOver, task: OwnTask, seen?: AnyObject): Promise<readonly string[]> {
  const { object, fieldManager, hand } = task;
  const live = seen ?? (await refresh(object, hand));
  const left = live && withoutOwners(isTaken, live, fieldManager);
  if (!left) return [];
  await writeManagedFields(task, live, left);
  const taken = managedFieldsOf(live).filter((entry) => isTaken(entry, fieldManager));
  return taken.map(({ manager = '' }) => manager);
}

/**
 * After an apply has failed: repairs a record of owners that was the cause, so that another try is of use.
 *
 * - An item that we no longer name is kept by another record, and clashes with the one that we name.
 *   https://github.com/kubernetes/kubernetes/issues/118725
 * - A default that no manager applies stays beside a one-of that is switched, and is refused there: owned, it goes.
 *   https://github.com/kubernetes/kubernetes/issues/24198
 * - What we applied in an earlier version of the API has fields that the present version doesn't know.
 *   https://github.com/fluxcd/flux2/issues/5715
 *
 * @returns a function that undoes the repair; undefined where another try would fail, too
 */
async function repair(task: OwnTask, error: unknown): Promise<(() => Promise<unknown>) | undefined> {
  if (!(error instanceof ApiError)) return undefined;
  const { duplicateValue, fieldNotInSchema, refusedFields } = error;
  const { fieldManager, object, hand } = task;
  const beside = refusedFields.every((path) => fieldAt(object, path) === undefined) ? refusedFields : [];
  if (!duplicateValue && !fieldNotInSchema && beside.length === 0) return undefined;
  const live = await refresh(object, hand);
  if (!live || withWalkableFields(live) !== live) return undefined;
  const write = async (fields: readonly ManagedFieldsEntry[]) => {
    const repaired = await writeManagedFields(task, live, fields);
    return async () => writeManagedFields(task, repaired, managedFieldsOf(live));
  };
  if (!fieldNotInSchema) {
    const items = duplicateValue
      ? itemsInTheWay(live, object, duplicateValue.field, duplicateValue.value)
      : beside.every((path) => isUnapplied(live, path))
        ? beside
        : [];
    return items.length === 0 ? undefined : write(withItemsTaken(live, fieldManager, items));
  }
  const ours = appliedEntry(fieldManager, live);
  if (!ours || ours.apiVersion === object.apiVersion) return undefined;
  return write(withApiVersion(live, fieldManager, object.apiVersion));
}

/** Writes nothing but `metadata.managedFields`, and only as it was seen. */
async function writeManagedFields(
  task: OwnTask,
  live: AnyObject,
  managedFields: readonly ManagedFieldsEntry[],
): Promise<AnyObject> {
  task.isRewritten = true;
  return writeMetadata(live, { managedFields }, task.fieldManager, task.hand);
}

/** Reports whether a failure leads to deleting the object, and creating it again. */
function isRecreated({ step }: OwnTask, { reason }: OperatorError): boolean {
  return Boolean(step.recreate) && reason === 'ImmutableField';
}

/**
 * Asks the API server whether it would take an object as a new one, while the one in whose place it comes is still there.
 *
 * A dry run of a creation passes admission and validation first, and only then meets the object of that name: so
 * `AlreadyExists` says that nothing else is wrong. What the present object itself holds, such as a node port that both name
 * or the last place in a quota, counts as an objection.
 * @throws ApiError with what else is wrong
 */
async function checkAcceptable({ intent, fieldManager, hand: { api, reader } }: OwnTask): Promise<void> {
  try {
    await api.tryCreate(reader.resourceType(intent), intent, fieldManager);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.alreadyExists) throw error;
  }
}

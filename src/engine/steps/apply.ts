import type { Change } from '../../contract/change.js';
import { ADOPT_BY_ANNOTATION, APPLIED_HASH_ANNOTATION, SHARED_HASH_PREFIX } from '../../contract/names.js';
import { recordOf, recordText } from '../../values/projections.js';
import type { AppliedRecord } from '../../values/projections.js';
import { contentHash, isMap } from '../../values/json.js';
import { controllerOf, describeRef, keyOf, objectId, refOf, splitKey } from '../../contract/object.js';
import type { AnyObject, ManagedFieldsEntry, ObjectRef, Owner } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { OperatorError } from '../../contract/error.js';
import type { AppliedBuild, StatusWrite } from '../../contract/plan.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Applied, JsonPatchStep } from '../../client/api.js';
import type { Hand } from '../plan/hand.js';
import type { Entry, Store } from '../watch/cache.js';
import { driftOf, holds, ownerKey, stands } from './managed-fields.js';
import type { LastApply, Refused } from './memory.js';
import { refresh } from './delete.js';

/** Outcome of a step. */
export type StepOutcome = Omit<Change, 'ref'>;

/** An object that is to be applied, and what that needs over and over. */
export interface Task {
  /** Desired state, as the plan gives it. */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /** @default - the object is shared */
  readonly owner?: Owner;
  /** See `OwnStep.build`. */
  readonly build?: AppliedBuild | undefined;
  readonly hand: Hand;
  readonly store: Store;
  readonly key: string;
  readonly objectId: string;
  /** Key of what is remembered of applies of the manager to the object. */
  readonly applyId: string;
  /** Body that is sent. */
  readonly intent: AnyObject;
  readonly hash: string;
  /** The annotation that carries the hash; empty for a status, which has none. */
  readonly hashName: string;
  /** @default - the object itself is applied */
  readonly subresource?: 'status';
  /** Remedies for failures of this apply, by reason. @default - those of any object */
  readonly remedies?: Readonly<Record<string, string>>;
  /** Whether the record of managers was written meanwhile: what was known of the object was another version. */
  isRewritten?: boolean;
}

/** @throws OperatorError where the kind of the object isn't served */
export function taskOf(
  { object, fieldManager, owner, build }: Pick<Task, 'object' | 'fieldManager' | 'owner' | 'build'>,
  hand: Hand,
): Task {
  hand.reader.checkServed(object);
  const hash = contentHash(object);
  const hashName = owner ? APPLIED_HASH_ANNOTATION : SHARED_HASH_PREFIX + fieldManager;
  const { metadata } = object;
  const id = objectId(object);
  const bookkeeping = {
    annotations: {
      ...metadata.annotations,
      [hashName]: recordText({
        hash,
        ...(owner && recordedOwner(owner)),
        ...(build && { build }),
      }),
    },
    ...(owner?.recordedKey === undefined &&
      owner && { ownerReferences: [...(metadata.ownerReferences ?? []), owner] }),
  };
  return {
    ...{ object, fieldManager, hand, hash, hashName },
    ...(owner && { owner }),
    store: hand.reader.store(object),
    key: keyOf(object),
    objectId: id,
    applyId: `${fieldManager} ${id}`,
    intent:
      !owner && saysNothing(object)
        ? withoutContent(object)
        : { ...object, metadata: { ...metadata, ...bookkeeping } },
  };
}

/** Returns an intent that names nothing but the object: then all that was applied is given up. */
export function withoutContent({ apiVersion, kind, metadata: { namespace, name } }: AnyObject): AnyObject {
  return { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } };
}

function recordedOwner(owner: Owner): Pick<AppliedRecord, 'owner' | 'of'> {
  const { uid, recordedKey: key, isKept = false } = owner;
  return { owner: uid, ...(key !== undefined && { of: { groupKind: groupKind(owner), key, isKept } }) };
}

/** The value of `adopt-by` that hands an object over; to an owner in another namespace with that. */
export function offerTo(
  { kind, name, recordedKey = name }: Pick<Owner, 'kind' | 'name' | 'recordedKey'>,
  { namespace }: Pick<ObjectRef, 'namespace'>,
): string {
  const isElsewhere = splitKey(recordedKey).namespace !== namespace;
  return `${kind}/${isElsewhere ? recordedKey : name}`;
}

/** Reports whether an object has no controller, and is handed over to this owner. */
export function isHandedOver(object: AnyObject, owner: Owner | undefined): boolean {
  return (
    owner !== undefined &&
    !controllerOf(object) &&
    object.metadata.annotations?.[ADOPT_BY_ANNOTATION] === offerTo(owner, object.metadata)
  );
}

/**
 * Checks that an object isn't being deleted: it can't be brought back, only created again.
 * @throws OperatorError `Terminating`
 */
export function checkNotTerminating(object: AnyObject): void {
  if (!object.metadata.deletionTimestamp) return;
  throw new OperatorError({
    reason: 'Terminating',
    message: `${describeRef(object)} is being deleted; it is created once it is gone`,
    retry: 'backoff',
  });
}

/** Adds the UID: with it in the body, an apply fails where it would otherwise bring a deleted object back. */
export function withUid(intent: AnyObject, uid: string | undefined): AnyObject {
  return uid === undefined ? intent : { ...intent, metadata: { ...intent.metadata, uid } };
}

/** Reports whether an intent names nothing but the object. */
export function saysNothing({ apiVersion, kind, metadata, ...content }: AnyObject): boolean {
  const { namespace, name, ...rest } = metadata;
  return isEmpty(content) && isEmpty(rest);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined) return true;
  return typeof value === 'object' && value !== null && Object.values(value).every(isEmpty);
}

/** Reports whether the live object still matches the last apply, which was of the same intent. */
export function isCurrent(task: Task, known: Entry): boolean {
  const { fieldManager, subresource, intent, hash, hashName, hand } = task;
  const { object, owned } = known;
  if (hashName && recordOf(object, hashName)?.hash !== hash) return false;
  const key = ownerKey(fieldManager, subresource);
  const applied = { hash, uid: object.metadata.uid, owned: owned.get(key) };
  return hand.memory.lastApplies.isCurrent(task.objectId, fieldManager, applied, () =>
    stands(known, key, intent),
  );
}

/**
 * Sends an apply of the intent; with the UID of the object that is known. A map that it would empty is removed first: the API server leaves
 * null of it, and refuses that.
 */
export async function sendApply(task: Task, known: Entry | undefined, force: boolean): Promise<Applied> {
  const { hand, store, intent, fieldManager, subresource } = task;
  const { api, reader } = hand;
  const body = known ? withUid(intent, known.object.metadata.uid) : intent;
  const type = reader.resourceType(intent);
  const options = { fieldManager, force, ...(subresource && { subresource }) };
  const send = async (sent: AnyObject): Promise<Applied> =>
    store.write(task.key, hand.writer, async () => api.apply(type, sent, options));
  try {
    return await send(body);
  } catch (error) {
    const nulls = error instanceof ApiError ? error.nullMaps : [];
    const less = nulls.reduce(withoutMap, body);
    if (less === body) throw error;
    const removed = await send(unfinished(task, less)).catch((failure: unknown) => {
      throw failure instanceof ApiError && failure.refused ? error : failure;
    });
    if (hand.isDry) return removed;
    const { resourceVersion } = body.metadata;
    const { resourceVersion: next } = removed.object.metadata;
    const versioned = resourceVersion === undefined ? {} : { resourceVersion: next };
    return await send({ ...body, metadata: { ...body.metadata, ...versioned } } as AnyObject);
  }
}

/** Returns an object without the map at a path; the same where there is none. */
function withoutMap<Given extends object>(given: Given, [name = '', ...rest]: readonly string[]): Given {
  const { [name]: value, ...others } = given as Readonly<Record<string, unknown>>;
  if (!isMap(value)) return given;
  const left = rest.length === 0 ? undefined : withoutMap(value, rest);
  return left === value ? given : ({ ...others, ...(left && { [name]: left }) } as Given);
}

/** Returns an intent that is sent in part, with a hash of its own: where it stays at that, it isn't drift. */
function unfinished({ hash, hashName }: Task, part: AnyObject): AnyObject {
  const { annotations = {} } = part.metadata;
  const record = annotations[hashName]?.replace(hash, contentHash(part));
  if (record === undefined) return part;
  return { ...part, metadata: { ...part.metadata, annotations: { ...annotations, [hashName]: record } } };
}

/** Returns the outcome of an apply whose intent still stands. */
export function leaveAsIs(task: Task, known: Entry): StepOutcome {
  const { fights, left } = task.hand.memory;
  fights.checkPeace(fightId(task));
  if (left.size > 0) left.delete(task.applyId);
  task.store.dropDriftRecord(task.key, known.object.metadata.resourceVersion);
  return { action: 'unchanged' };
}

/** @throws OperatorError that sending this again would bring */
export function checkRefusal(task: Task, known: Entry | undefined): void {
  const refusal = task.hand.memory.refusals.find(task.applyId, refusedOf(task, known));
  if (refusal) throw refusal;
}

/** @throws OperatorError `FieldContested` where an apply that repeats the last one has to wait */
export function checkPause(task: Task, known: Entry | undefined): void {
  if (known && !isRepeated(task, known)) return;
  task.hand.memory.fights.checkPause(fightId(task), task.hash);
}

/** Returns what came of an apply, and remembers it. @throws OperatorError `FieldContested` where it corrected too often */
export function outcomeOf(task: Task, known: Entry | undefined, { object, created }: Applied): StepOutcome {
  const { fights } = task.hand.memory;
  const isSame = object.metadata.resourceVersion === known?.object.metadata.resourceVersion;
  const isCorrection = known && isDrift(task, known);
  const isAgain = known && isRepeated(task, known);
  rememberApply(task, object);
  task.hand.memory.refusals.forget(task.applyId);
  countApply(task, created ? 'created' : isSame ? 'unchanged' : 'changed');
  if (created) {
    fights.wasCreated(fightId(task), object, task.hash);
    return { action: 'created' };
  }
  if (isSame) return { action: 'unchanged' };
  if (!isAgain) return { action: 'configured' };
  const { drifted = [] } = known;
  // Who it was is known only where a watch has shown it, and not where it was found in a list.
  const drift =
    drifted.length === 0 ? { managers: [], fields: [] } : driftOf(drifted, object, task.fieldManager);
  fights.corrected(fightId(task), object, drift, task.hash);
  return isCorrection ? { action: 'corrected', drift } : { action: 'configured' };
}

/**
 * Reports whether an object differs from what was applied to it last: the intent is that of the hash on the object. A writer
 * that removes the hash leaves our other fields.
 * @param isBareOurs an object of which we own fields, and that has lost the hash, counts too
 */
export function isDrift(
  { hash, hashName, fieldManager, owner }: Task,
  known: Entry,
  isBareOurs = true,
): boolean {
  const last = recordOf(known.object, hashName)?.hash;
  if (last !== undefined) return last === hash;
  return isBareOurs && known.owned.has(ownerKey(fieldManager)) && !isHandedOver(known.object, owner);
}

/**
 * Reports whether an apply repeats the last one of this process: it corrects drift, or another process of ours has applied
 * something else meanwhile. The second is no drift, as where an edit returns to what was there before that process led; but
 * two that lead at once would go on for ever.
 */
export function isRepeated(task: Task, known: Entry): boolean {
  const { uid } = known.object.metadata;
  return isDrift(task, known) || task.hand.memory.lastApplies.wasLast(uid, task.fieldManager, task.hash);
}

/** Returns the key of fights over an object: one that was created again is the same one, for as long as its owner is. */
export function fightId(
  of: Pick<Task, 'objectId'> & { readonly owner?: Pick<Owner, 'uid'> | undefined },
): string {
  return `${of.objectId} ${of.owner?.uid ?? ''}`;
}

/** Remembers an apply that stands. */
export function rememberApply(task: Task, object: AnyObject): void {
  const { store, intent, hash, fieldManager, subresource, hand } = task;
  const owned = store.ownedOf(object);
  const key = ownerKey(fieldManager, subresource);
  const applied: LastApply = { hash, uid: object.metadata.uid, owned: owned.get(key) };
  const isException = !stands({ object, owned }, key, intent);
  hand.memory.lastApplies.remember(task.objectId, fieldManager, applied, isException);
}

/** Counts an apply in the metrics. */
export function countApply({ hand: { metrics, reader } }: Task, outcome: string): void {
  metrics.applies.inc({ controller: reader.controller, outcome });
}

/** Returns the error of a failed request as it is. One that is for good is remembered. @param known what was judged */
export function remembered(task: Task, known: Entry | undefined, failure: OperatorError): OperatorError {
  if (failure.retry === 'onChange')
    task.hand.memory.refusals.remember(task.applyId, refusedOf(task, known), failure);
  return failure;
}

/** Returns what the failure of an apply means. */
export function classifyApply(task: Task, error: unknown): OperatorError {
  const { hand, intent, remedies } = task;
  const failure = classify(error, `Apply ${describeRef(intent)}`, remedies);
  return hand.memory.refusals.judged(failure, hand.reader.claimsOf(intent));
}

function refusedOf({ hash, owner, intent, hand }: Task, known: Entry | undefined): Refused {
  return { hash, owner: owner?.uid, inTheWay: known?.object, claims: hand.reader.claimsOf(intent) };
}

/** Returns the error of a stale view: tried again at once. */
export function asStale({ reason, message, cause }: OperatorError): OperatorError {
  return new OperatorError({ reason, message, cause, retry: 'now' });
}

export function changedMeanwhile(object: AnyObject, cause?: unknown): OperatorError {
  const message = `${describeRef(object)} changed since it was read`;
  return new OperatorError({ reason: 'Conflict', message, retry: 'now', cause });
}

/**
 * Writes a field of the metadata of an object as it was read.
 * @throws OperatorError `Conflict` where it has changed since, or has gone
 */
export async function writeMetadata(
  live: AnyObject,
  written:
    { readonly finalizers: readonly string[] } | { readonly managedFields: readonly ManagedFieldsEntry[] },
  fieldManager: string,
  hand: Hand,
): Promise<AnyObject> {
  const { api, reader, writer } = hand;
  const key = keyOf(live);
  const patch: JsonPatchStep[] = [
    { op: 'test', path: '/metadata/resourceVersion', value: live.metadata.resourceVersion },
    ...Object.entries<unknown>(written).map(([name, value]) => ({
      op: 'add' as const,
      path: `/metadata/${name}`,
      value,
    })),
  ];
  const send = async () => ({ object: await api.patch(reader.resourceType(live), key, patch, fieldManager) });
  try {
    return (await reader.store(live).write(key, writer, send)).object;
  } catch (error) {
    if (!(error instanceof ApiError) || !(error.conflict || error.objectIsGone)) throw error;
    await refresh(live, hand);
    throw changedMeanwhile(live, error);
  }
}

/**
 * Writes the status of a custom resource where it differs from what is there: by server-side apply, so that conditions of others
 * stay. A failure is part of the answer; this never rejects.
 */
export async function writeStatus(write: StatusWrite, hand: Hand): Promise<Change> {
  const ref = refOf(write.target);
  try {
    if (write.status instanceof OperatorError) throw write.status;
    return { ref, action: await ensureStatus(statusTask(write, write.status, hand)) };
  } catch (error) {
    return { ref, action: 'failed', error: classify(error, `Write the status of ${describeRef(ref)}`) };
  }
}

/** Returns what writing a status would change, without a request. */
export function previewStatus(write: StatusWrite, hand: Hand): Promise<Change> {
  const action = isStatusCurrent(write, hand) ? 'unchanged' : 'configured';
  return Promise.resolve({ ref: refOf(write.target), action });
}

/** Reports whether a write would find nothing to change. */
export function isStatusCurrent(write: StatusWrite, hand: Hand): boolean {
  return !(write.status instanceof OperatorError) && isWritten(statusTask(write, write.status, hand));
}

function statusTask({ target, fieldManager, isConditional }: StatusWrite, status: object, hand: Hand): Task {
  const { apiVersion, kind, metadata } = target;
  const { namespace, name, uid, resourceVersion } = metadata;
  const version = isConditional && resourceVersion !== undefined ? { resourceVersion } : {};
  const identity = { ...(namespace && { namespace }), name, ...(uid && { uid }), ...version };
  const body = { apiVersion, kind, metadata: identity, status };
  const id = objectId(target);
  return {
    ...{ object: body, intent: body, subresource: 'status', hash: contentHash(status), hashName: '' },
    ...{ fieldManager, hand, store: hand.reader.store(target), key: keyOf(target) },
    ...{ objectId: id, applyId: `${fieldManager} ${id}` },
  };
}

/** Reports whether the status is there, by value: a status carries no hash. */
function isWritten(task: Task): boolean {
  const { store, key, intent, fieldManager, object } = task;
  const known = store.get(key);
  if (known?.object.metadata.uid !== object.metadata.uid || !known || !isCurrent(task, known)) return false;
  const { status } = known.object;
  return holds(known, ownerKey(fieldManager, 'status'), { status }, { status: intent.status });
}

async function ensureStatus(task: Task): Promise<Change['action']> {
  const { store, key, object: target, hand } = task;
  const { uid } = target.metadata;
  const known = store.get(key);
  // Its successor, if there is one, has a reconcile of its own.
  if (known?.object.metadata.uid !== uid) return 'skipped';
  if (isWritten(task)) return 'unchanged';
  try {
    rememberApply(task, (await sendApply(task, known, true)).object);
    return 'configured';
  } catch (error) {
    // Deleted meanwhile, or replaced by a namesake; or still the same, which is tried again.
    if (
      error instanceof ApiError &&
      (error.objectIsGone || error.wrongUid || (error.conflict && !error.fieldConflict))
    ) {
      // The watch may have missed it; another reconcile would create children without an owner.
      const live = await refresh(target, hand);
      if (live?.metadata.uid !== uid) return 'skipped';
    }
    throw error;
  }
}

import { OperatorError } from '../../contract/error.js';
import { areSiblings, isHashAnnotation, SHARED_HASH_PREFIX } from '../../contract/names.js';
import { describeRef, keyOf, refOf, splitKey } from '../../contract/object.js';
import type { AnyObject, FieldsV1, KubernetesObject, ManagedFieldsEntry } from '../../contract/object.js';
import type { ContributeStep } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import { canonicalJson, isContainer, isMap } from '../../values/json.js';
import { fieldsBelow, parseFieldValues, stepsOf, valuesAt, withValue } from '../../values/fields.js';
import type { FieldValues } from '../../values/fields.js';
import { appliedEntry, areKept, managedFieldsOf, recordOf, recordText } from '../../values/projections.js';
import { ApiError } from '../../client/api-error.js';
import type { Applied } from '../../client/api.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import type { Entry } from '../watch/cache.js';
import {
  checkNotTerminating,
  checkPause,
  checkRefusal,
  isCurrent,
  isDrift,
  leaveAsIs,
  outcomeOf,
  saysNothing,
  sendApply,
  taskOf,
  withUid,
  writeMetadata,
} from './apply.js';
import type { StepOutcome, Task } from './apply.js';
import { refresh } from './delete.js';
import { dropEmpty } from './managed-fields.js';
import { withoutSubtree } from './records.js';
import { failedApply, targetMissing } from './share.js';

/** Field managers of objects as they were read. */
const managers = new WeakMap<AnyObject, ReadonlySet<string | undefined>>();

/** Maximum number of characters of the values that fields had before: an annotation keeps them, and is kept in memory. */
const MAX_FORMER = 4_096;

/** Field manager of a dry run, which has applied nothing that the apply would drop. */
const PROBE_MANAGER = 'reconstruct-probe';

/** Remedies where an object is of others, who may not create it again. */
const REMEDIES = { ImmutableField: 'leave the field as it is' };

/**
 * Sets fields of objects of others.
 *
 * **Guarantees.** Nothing is created, and no other field changes. A field of another writer is taken only where the step says so, and never
 * from an autoscaler or another owner. What is no longer named, or all of it, is given up; what was taken then has the value from before,
 * unless another writer has set it since, or owns it too.
 */
export const contribute: StepHandler<ContributeStep> = {
  do: 'contribute',

  async carryOut(step, hand) {
    return { ref: refOf(step.object), ...(await ensure(step, hand)) };
  },
};

async function ensure(step: ContributeStep, hand: Hand): Promise<StepOutcome> {
  const { object, fieldManager } = step;
  const { reader } = hand;
  reader.checkServed(object);
  const store = reader.store(object);
  const key = keyOf(object);
  if (!store.get(key) && !store.followed(object.metadata.namespace)) await refresh(object, hand);
  const known = store.get(key);
  const isReleased = saysNothing(object);
  if (isReleased && (!known || known.object.metadata.deletionTimestamp)) return { action: 'unchanged' };
  if (!known) throw targetMissing(refOf(object));
  checkNotTerminating(known.object);
  const task = taskWith(step, hand, {});
  if (!isReleased) {
    if (isCurrent(task, known)) return leaveAsIs(task, known);
    const mode = step.drift ?? hand.drift;
    if (mode !== 'correct' && isDrift(task, known, false))
      return mode === 'warn'
        ? { action: 'drifted', drift: { managers: [], fields: [] } }
        : { action: 'unchanged' };
    checkRefusal(task, known);
    checkPause(task, known);
  }
  // Who may write an object may make up any number of records.
  if (isReleased && managers.get(known.object)?.has(fieldManager) === false) return { action: 'unchanged' };
  const live = await refresh(object, hand);
  if (live?.metadata.uid !== known.object.metadata.uid || !live)
    return { action: 'skipped', skippedFor: 'changed' };
  const now = store.get(key)?.object;
  if (now && now.metadata.resourceVersion === live.metadata.resourceVersion)
    managers.set(now, new Set(managedFieldsOf(live).map(({ manager }) => manager)));
  // Of an object with many writers, not all that they own is kept; and a record may be forged.
  if (isReleased && !appliedEntry(fieldManager, live)) return { action: 'unchanged' };
  if (isReleased) {
    try {
      await apply(task, await givenBack(step, live, hand), false);
    } catch (error) {
      if (!isFinal(error) || hand.isDry) throw error;
      await letGo(step, live, hand, error);
    }
    return { action: 'configured' };
  }
  const left = await givenBack(step, live, hand);
  const taking = taskWith(step, hand, formerOf(step, left));
  // What isn't kept would never be given back.
  if (!areKept({ ...left.metadata.annotations, ...taking.intent.metadata.annotations }))
    throw new OperatorError({
      reason: 'ContributionTooLarge',
      message: `${describeRef(object)} has too many records of fields that were set for another one to be kept; remove some of them`,
    });
  return take(taking, known, left, step.takes);
}

/** Returns the task that records whose fields these are, and what was there before. */
function taskWith({ object, fieldManager, owner }: ContributeStep, hand: Hand, former: FieldValues): Task {
  // Fights are those of this owner.
  const task: Task = { ...taskOf({ object, fieldManager }, hand), owner, remedies: REMEDIES };
  const { uid, recordedKey: key = owner.name } = owner;
  const hashName = SHARED_HASH_PREFIX + uid;
  if (saysNothing(object)) return { ...task, hashName };
  const record = recordText({ hash: task.hash, owner: uid, of: { groupKind: groupKind(owner), key } });
  const values = Object.keys(former).length > 0 ? FORMER + canonicalJson(former) : '';
  if (values.length > MAX_FORMER)
    throw new OperatorError({
      reason: 'ContributionTooLarge',
      message: `${describeRef(object)}: what was at ${Object.keys(former).join(', ')} before has ${values.length} characters, and its record takes ${MAX_FORMER}; name smaller fields in takes`,
    });
  const annotations = { ...object.metadata.annotations, [hashName]: record + values };
  return { ...task, hashName, intent: { ...object, metadata: { ...object.metadata, annotations } } };
}

/** Applies without force, and takes what is in the way where it may be taken. */
async function take(
  task: Task,
  known: Entry,
  live: AnyObject,
  takes: readonly string[],
): Promise<StepOutcome> {
  const seen = task.store.get(task.key) ?? known;
  try {
    await requireWhole(task, live, takes);
    const answer = await apply(task, live, false).catch(async (refusal: unknown) => {
      requireFree(task, live, takes, refusal);
      return apply(task, live, true);
    });
    return outcomeOf(task, known, answer);
  } catch (error) {
    throw await failedApply(task, seen, error);
  }
}

/**
 * Checks that what is to be taken is owned as a whole, by a dry run: only an apply shows it. Of another map or list, the parts of
 * others would be given back, too.
 * @throws OperatorError `Invalid` where it isn't
 */
async function requireWhole(
  { object, fieldManager, hand: { api, reader } }: Task,
  live: AnyObject,
  takes: readonly string[],
): Promise<void> {
  const before = appliedEntry(fieldManager, live);
  const whole = takes.filter(
    (path) => valuesAt(object, path).some(isContainer) && namedAt(before, path) === undefined,
  );
  if (whole.length === 0) return;
  const { apiVersion, kind, metadata } = object;
  const { name, namespace } = metadata;
  const identity = { apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } };
  const probe = whole.reduce<unknown>(
    (of, path) => withValue(of, stepsOf(path), valuesAt(object, path)),
    withUid(identity, live.metadata.uid),
  ) as AnyObject;
  const options = { fieldManager: PROBE_MANAGER, force: true, dryRun: true };
  const tried = await api.apply(reader.resourceType(object), probe, options);
  const entry = appliedEntry(PROBE_MANAGER, tried.object);
  const inParts = whole.find((path) => Object.keys(namedAt(entry, path) ?? {}).length > 0);
  if (inParts !== undefined)
    throw new OperatorError({
      reason: 'Invalid',
      message: `${describeRef(object)}: ${inParts} is a map or a list, of which others may own parts; name single fields of it in takes`,
    });
}

/** Sends an apply for an object as it was read; by force, only while no other has written it since. */
async function apply(task: Task, live: AnyObject, force: boolean): Promise<Applied> {
  const { uid, resourceVersion = '' } = live.metadata;
  const { metadata, ...rest } = withUid(task.intent, uid);
  const intent = { ...rest, metadata: { ...metadata, ...(force && { resourceVersion }) } } as AnyObject;
  return sendApply({ ...task, intent }, undefined, force);
}

/**
 * Checks that an apply was refused for nothing but fields that may be taken.
 * @throws OperatorError `FieldConflict` where an autoscaler, or another owner, holds one of them; else the refusal itself
 */
function requireFree(
  { object, fieldManager, hashName }: Task,
  live: AnyObject,
  takes: readonly string[],
  refusal: unknown,
): void {
  const met = refusal instanceof ApiError ? refusal.conflicts.map(({ field }) => field) : [];
  const taken = takes.filter((path) => met.includes(spelled(stepsOf(path))));
  // Tools copy annotations: ours says nothing of others.
  const ours = [...taken.map(stepsOf), ['metadata', 'annotations', hashName]].map(spelled);
  if (met.length === 0 || !met.every((field) => ours.includes(field))) throw refusal;
  const active = managedFieldsOf(live).find((entry) => {
    const { manager = '', operation, subresource, fieldsV1 } = entry;
    const isScaler = subresource === 'scale' && !/^kubectl/.test(manager);
    const applied = fieldsV1?.['f:metadata']?.['f:annotations'] ?? {};
    const isOwner =
      operation === 'Apply' && Object.keys(applied).some((name) => isHashAnnotation(name.slice(2)));
    return manager !== fieldManager && (isScaler || isOwner) && taken.some((path) => isOwnedAt(entry, path));
  });
  if (!active) return;
  const what = areSiblings(active.manager ?? '', fieldManager)
    ? 'another custom resource of this kind'
    : active.manager;
  throw new OperatorError({
    reason: 'FieldConflict',
    message: `${describeRef(object)}: ${taken.join(', ')} is held by ${what ?? 'another writer'}, which writes it again and again; remove it there, or here`,
  });
}

/** Gives the fields that are no longer named the values from before. @returns the object as it is then */
async function givenBack(
  { object, fieldManager, owner, takes }: ContributeStep,
  live: AnyObject,
  hand: Hand,
): Promise<AnyObject> {
  // A preview patches nothing.
  if (hand.isDry) return live;
  const entry = appliedEntry(fieldManager, live);
  const recorded = recordedFormer(live, SHARED_HASH_PREFIX + owner.uid);
  const paths = [...new Set([...takes, ...Object.keys(recorded)])].filter(
    (path) => valuesAt(object, path).length === 0 && isOwnedAt(entry, path),
  );
  const others = managedFieldsOf(live).filter(({ manager }) => manager !== fieldManager);
  let values: object = {};
  for (const path of paths) {
    const former = recorded[path];
    // Another that has lost the last key of a map to us seems to own all of it: it counts where it owns the field by its name.
    const isTheirs = isNamedAt(entry, path) ? isNamedAt : isOwnedAt;
    if (!former || others.some((other) => isTheirs(other, path))) continue;
    values = withValue(values, stepsOf(path), [patchTo(former[0], valuesAt(live, path)[0])]) as object;
  }
  let now = live;
  if (Object.keys(values).length > 0)
    try {
      now = await patch(live, { ...values, metadata: {} }, fieldManager, hand);
    } catch (error) {
      if (!isFinal(error)) throw error;
      reportLeft({ object, owner }, hand, error);
    }
  // The patch is no claim on the fields, and what was applied is none any more.
  const entries = managedFieldsOf(now);
  const left = entries.flatMap((one) => {
    if (one.manager !== fieldManager) return [one];
    if (one.operation === 'Update') return [];
    const segments = paths.map((path) => stepsOf(path).map((step) => `f:${step}`));
    return [{ ...one, fieldsV1: segments.reduce(withoutSubtree, one.fieldsV1 ?? {}) }];
  });
  if (paths.length === 0 && left.length === entries.length) return now;
  return writeMetadata(now, { managedFields: dropEmpty(left) }, fieldManager, hand);
}

/** Returns the merge patch, in which null removes, that makes one value of another. */
function patchTo(value: unknown, from: unknown): unknown {
  if (!isMap(value) || !isMap(from)) return value ?? null;
  const removed = Object.keys(from).map((key) => [key, null]);
  const set = Object.entries(value).map(([key, inner]) => [key, patchTo(inner, from[key])]);
  return Object.fromEntries([...removed, ...set]) as object;
}

/** Gives up fields without restoring their values, and reports that. */
async function letGo(step: ContributeStep, judged: AnyObject, hand: Hand, why: ApiError): Promise<void> {
  const { object, fieldManager, owner } = step;
  const live = await refresh(object, hand);
  if (live?.metadata.uid !== judged.metadata.uid || !live) return;
  const left = managedFieldsOf(live).filter(({ manager }) => manager !== fieldManager);
  const annotations = { [SHARED_HASH_PREFIX + owner.uid]: null };
  // An empty list would be ignored.
  const metadata = { annotations, managedFields: left.length > 0 ? left : [{}] };
  await patch(live, { metadata }, fieldManager, hand);
  reportLeft(step, hand, why);
}

function reportLeft(
  { object, owner }: Pick<ContributeStep, 'object' | 'owner'>,
  { events }: Hand,
  why: ApiError,
): void {
  const { apiVersion, kind, uid, recordedKey = owner.name } = owner;
  const note = `${describeRef(object)} keeps fields that were set for this one, since the API server refuses what was there before: ${why.said ?? ''}`;
  const event = { type: 'Warning', reason: 'NotGivenBack', action: 'Apply', note } as const;
  events.send({ apiVersion, kind, ...splitKey(recordedKey), uid }, event);
}

/** Reports whether a value is refused for what it is: what a policy forbids, or a schema lacks, may be permitted later. */
function isFinal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || error.denied || error.fieldNotInSchema) return false;
  return error.refused && error.meaning.retry === 'onChange';
}

/** Sets fields of an object as it was read. */
async function patch(
  live: AnyObject,
  { metadata, ...values }: { readonly metadata: object },
  fieldManager: string,
  { api, reader, writer }: Hand,
): Promise<AnyObject> {
  const key = keyOf(live);
  const { resourceVersion } = live.metadata;
  const body = { ...values, metadata: { ...metadata, resourceVersion } };
  const type = reader.resourceType(live);
  const send = async () => ({ object: await api.mergePatch(type, key, body, { fieldManager }) });
  return (await reader.store(live).write(key, writer, send)).object;
}

/** Returns what is at the fields that are to be taken, or was before they were. */
function formerOf({ object, fieldManager, owner, takes }: ContributeStep, live: AnyObject): FieldValues {
  const entry = appliedEntry(fieldManager, live);
  const own = SHARED_HASH_PREFIX + owner.uid;
  const recorded = recordedFormer(live, own);
  /** Returns what another owner has recorded, who holds the field now. */
  const ofOthers = (path: string): readonly unknown[] | undefined => {
    for (const name of Object.keys(live.metadata.annotations ?? {}).filter(isHashAnnotation)) {
      const uid = name === own ? undefined : recordOf(live, name)?.owner;
      const isHeld = managedFieldsOf(live).some(
        (one) => uid && one.operation === 'Apply' && one.manager?.endsWith(`:${uid}`) && isOwnedAt(one, path),
      );
      if (isHeld) return recordedFormer(live, name)[path];
    }
    return undefined;
  };
  return Object.fromEntries(
    takes.flatMap((path): [string, readonly unknown[]][] => {
      if (valuesAt(object, path).length === 0) return [];
      const known = recorded[path];
      if (isOwnedAt(entry, path)) return known ? [[path, known]] : [];
      // Another owner may want the same: then the last of them gives it back.
      return [[path, ofOthers(path) ?? valuesAt(live, path)]];
    }),
  );
}

const FORMER = ' former ';

function recordedFormer({ metadata }: KubernetesObject, annotation: string): FieldValues {
  const text = metadata.annotations?.[annotation] ?? '';
  const at = text.indexOf(FORMER);
  if (at < 0 || text.length > MAX_FORMER + 1_000) return {};
  try {
    return parseFieldValues(text.slice(at + FORMER.length)) ?? {};
  } catch {
    return {};
  }
}

function isOwnedAt(entry: ManagedFieldsEntry | undefined, path: string): boolean {
  return fieldsBelow(entry?.fieldsV1, stepsOf(path)) !== undefined;
}

/** Reports whether a field is owned by its own name, and not with a map that is owned as a whole. */
function isNamedAt(entry: ManagedFieldsEntry | undefined, path: string): boolean {
  return namedAt(entry, path) !== undefined;
}

function namedAt(entry: ManagedFieldsEntry | undefined, path: string): FieldsV1 | undefined {
  let fields = entry?.fieldsV1;
  for (const step of stepsOf(path)) fields = fields?.[`f:${step}`];
  return fields;
}

/** Spells a path as the API server does, without quotes. */
function spelled(steps: readonly string[]): string {
  return steps.map((step) => `.${step}`).join('');
}

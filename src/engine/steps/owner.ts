import { OperatorError } from '../../contract/error.js';
import { ADOPT_BY_ANNOTATION, APPLIED_HASH_ANNOTATION } from '../../contract/names.js';
import { appliedEntry, managedFieldsOf, recordOf } from '../../values/projections.js';
import { controllerOf, describeRef, groupOf, objectId, objectKey, splitKey } from '../../contract/object.js';
import type { AnyObject, ManagedFieldsEntry, Owner, OwnerReference } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Api } from '../../client/api.js';
import type { Hand } from '../plan/hand.js';
import type { Entry } from '../watch/cache.js';
import { isHandedOver, offerTo, withoutContent, withUid } from './apply.js';
import type { Task } from './apply.js';
import { deleteObject, refresh } from './delete.js';
import { ownerKey, without } from './managed-fields.js';
import type { Vanished } from './memory.js';

/*
 * Decides about ownership where the cached state alone can't: asks the API server in the few cases where a watch may
 * have missed it.
 *
 * **Guarantees.** A child isn't recreated for an owner that is gone. What a deleted namesake of the owner has left behind is
 * deleted. An object that others created just before our first apply is given back: what they had set stays as it was, and
 * the custom resource isn't among its owners. An object that we created ourselves, and whose first answer was lost, stays ours.
 *
 * **Caveats.** An object in which nothing is set, such as a bare ServiceAccount, doesn't tell who has created it. One that
 * has nothing in common with ours can't be distinguished from ours in the second in which it was created. A process that ends
 * before it gives the object back leaves it as its own.
 */

/** An object that is to be applied for its owner. */
export interface OwnedTask extends Task {
  readonly owner: Owner;
}

/**
 * Before an object is created: if it had been there and has gone, checks that its owner hasn't gone too.
 * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
 */
export async function checkOwner(task: OwnedTask): Promise<void> {
  const { owner, objectId: id } = task;
  const { vanished } = task.hand.memory;
  const known = vanished.get(id);
  if (known?.uid !== owner.uid) return;
  if (!(await isListed(task, known))) {
    const live = await readOwner(task);
    if (live?.metadata.uid !== owner.uid) throw ownerGone(owner);
  }
  vanished.delete(id);
}

/**
 * Removes what a deleted namesake of the owner has left behind, where the API server confirms that the owner is the
 * one that exists now. The garbage collector would do the same, but never learns of an owner that was replaced while
 * its watch was down. Returns what is still there.
 * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
 */
export async function removeLeftover(task: OwnedTask, known: Entry): Promise<Entry | undefined> {
  const { owner } = task;
  if (!isLeftover(task, known)) return known;
  const live = await readOwner(task);
  if (!live) throw ownerGone(owner);
  if (live.metadata.uid === owner.uid && !known.object.metadata.deletionTimestamp) {
    const { error } = await deleteObject(known.object, task.hand);
    if (error) throw error;
  }
  return task.store.get(task.key);
}

/**
 * Gives back what a first apply has taken over: an object that no watch has delivered yet, and in which nothing contradicted
 * what was applied.
 * @param answer to the apply of an object that wasn't known, and was there
 * @throws OperatorError `OwnershipConflict` once it is given back
 */
export async function giveBackIfOthersCreated(task: OwnedTask, answer: AnyObject): Promise<void> {
  const { object, owner, fieldManager, hand } = task;
  if (!isMadeByOthers(answer, fieldManager)) return;
  const ownerReferences = answer.metadata.ownerReferences?.filter(({ uid }) => uid !== owner.uid) ?? [];
  const { [APPLIED_HASH_ANNOTATION]: _, ...annotations } = answer.metadata.annotations ?? {};
  try {
    // One that was handed over may be kept.
    checkOwnership({ ...answer, metadata: { ...answer.metadata, annotations, ownerReferences } }, owner);
  } catch (conflict) {
    const { uid } = answer.metadata;
    hand.memory.takenOver.set(task.objectId, { object, fieldManager, uid });
    await giveBack(object, fieldManager, uid, hand);
    throw conflict;
  }
}

/** Gives back what couldn't be given back at once, before the object is applied again or deleted. Reports whether it was there. */
export async function finishGivingBack(id: string, hand: Hand): Promise<boolean> {
  const taken = hand.memory.takenOver.get(id);
  if (!taken) return false;
  const { object, fieldManager, uid } = taken;
  const live = await refresh(object, hand);
  const isThere = live !== undefined && live.metadata.uid === uid;
  if (isThere) await giveBack(object, fieldManager, uid, hand);
  else hand.memory.takenOver.delete(id);
  return isThere;
}

/** An apply that names nothing lets go of all that was applied, and of nothing else. */
async function giveBack(
  object: AnyObject,
  fieldManager: string,
  uid: string | undefined,
  { api, reader, writer, memory }: Hand,
): Promise<void> {
  const { namespace, name } = object.metadata;
  const nothing = withUid(withoutContent(object), uid);
  const type = reader.resourceType(object);
  const send = async () => api.apply(type, nothing, { fieldManager, force: false });
  await reader.store(object).write(objectKey(namespace, name), writer, send);
  memory.takenOver.delete(objectId(object));
}

/** Reads the owner into its store. @throws OperatorError `Conflict` where the plan was made from another generation */
async function readOwner(task: OwnedTask): Promise<AnyObject | undefined> {
  const { hand, owner } = task;
  const { reader } = hand;
  const { apiVersion, kind, name } = owner;
  const namespace = namespaceOfOwner(task);
  const metadata = { name, ...(namespace && { namespace }) };
  const known = reader.get(owner, objectKey(namespace, name))?.metadata.generation;
  const live = await refresh({ apiVersion, kind, metadata }, hand);
  const { uid, generation = known } = live?.metadata ?? {};
  if (uid !== owner.uid || generation === (known ?? generation)) return live;
  const message = `${kind} ${name} is not as it was when the plan was made`;
  throw new OperatorError({ reason: 'Conflict', message, retry: 'now' });
}

/** Number of vanished children from which on their owners are listed instead of read one by one. */
const MANY = 16;
/** Maximum number of items of a list of owners, as a multiple of the vanished children. */
const LIST_FACTOR = 10;

/**
 * Reports whether a list of the owners, asked for since the child has gone, shows this one as it is known. One list
 * serves all of many children that have gone at once.
 */
async function isListed(task: OwnedTask, { at }: Vanished): Promise<boolean> {
  const { hand, owner } = task;
  const { api, reader, memory, clock } = hand;
  const { size } = memory.vanished;
  if (size < MANY || reader.store(owner).size > LIST_FACTOR * size) return false;
  const type = reader.resourceType(owner);
  const namespace = namespaceOfOwner(task);
  const id = `${type.apiVersion} ${type.kind} ${namespace ?? ''}`;
  let list = memory.ownerLists.get(id);
  if (!list || list.at < at) {
    list = { at: clock.monotonic(), generations: generationsOf(api, type, namespace) };
    memory.ownerLists.set(id, list);
  }
  const generation = (await list.generations).get(owner.uid);
  const known = reader.get(owner, objectKey(namespace, owner.name))?.metadata.generation;
  return generation !== undefined && known !== undefined && generation <= known;
}

/** Returns generations by UID; none where owners can't be listed: then each is read. */
async function generationsOf(
  api: Api,
  type: ResourceType,
  namespace: string | undefined,
): Promise<ReadonlyMap<string, number>> {
  const scope = { type, metadataOnly: true, ...(namespace && { namespace }) };
  const found = new Map<string, number>();
  try {
    // Without a signal, so that it fails at once while the API server can't be reached.
    for await (const { items } of api.pages(scope))
      for (const { metadata } of items) found.set(metadata.uid ?? '', metadata.generation ?? 0);
  } catch {
    found.clear();
  }
  return found;
}

function namespaceOfOwner({ hand, object, owner }: OwnedTask): string | undefined {
  if (owner.recordedKey !== undefined) return splitKey(owner.recordedKey).namespace;
  return hand.reader.resourceType(owner).namespaced ? object.metadata.namespace : undefined;
}

function ownerGone({ kind, name }: OwnerReference): OperatorError {
  const message = `${kind} ${name} is gone; its children are left to the garbage collector`;
  return new OperatorError({ reason: 'OwnerGone', message, retry: 'now' });
}

/** Reports whether others have created an object, going by who has set what in it. */
function isMadeByOthers(object: AnyObject, manager: string): boolean {
  const entries = managedFieldsOf(object);
  const own = appliedEntry(manager, object);
  return entries.some(
    (entry) =>
      !entry.subresource &&
      entry.manager !== manager &&
      (shares(entry, own) || (isOlderThan(object, own) && setsMoreThanMetadata(entry))),
  );
}

/** Reports whether an entry has fields of ours: a later writer has to differ to own one, so it was there before. */
function shares({ fieldsV1 = {} }: ManagedFieldsEntry, own: ManagedFieldsEntry | undefined): boolean {
  return without(fieldsV1, own?.fieldsV1 ?? {}) !== fieldsV1;
}

/** Reports whether an object was there before our apply. One that changes nothing leaves its time; both are whole seconds of the server. */
function isOlderThan({ metadata }: AnyObject, own: ManagedFieldsEntry | undefined): boolean {
  const { creationTimestamp } = metadata;
  return creationTimestamp !== undefined && own?.time !== undefined && creationTimestamp < own.time;
}

/** Reports whether an entry sets more than metadata: controllers annotate what they come upon. */
function setsMoreThanMetadata({ fieldsV1 = {} }: ManagedFieldsEntry): boolean {
  return Object.keys(fieldsV1).some((segment) => segment !== 'f:metadata');
}

/**
 * Checks that an owner may write an object that exists.
 * @throws OperatorError `OwnershipConflict` when the object belongs to another controller, or to none and wasn't handed
 * over; `WaitingForGarbageCollection` when its owner was a namesake that is gone
 */
export function checkOwnership(object: AnyObject, owner: Owner): void {
  const controller = controllerOf(object);
  if (controller?.uid === owner.uid || isHandedOver(object, owner)) return;
  const what = describeRef(object);
  const rename = `create the ${owner.kind} under another name`;
  const recorded = recordOf(object)?.of;
  // Without its name, which those may read who can't see its namespace. What is kept may have no owner any more.
  if (!controller && recorded && !recorded.isKept)
    throw new OperatorError({
      reason: 'OwnershipConflict',
      message: `${what} exists already and belongs to another custom resource, of the kind ${recorded.groupKind}; ${rename}`,
    });
  if (!controller) {
    const { namespace } = owner.recordedKey === undefined ? object.metadata : splitKey(owner.recordedKey);
    const inside = namespace === undefined ? '' : ` -n ${namespace}`;
    const command = `reconstruct adopt ${owner.kind.toLowerCase()} ${owner.name}${inside}`;
    throw new OperatorError({
      reason: 'OwnershipConflict',
      message: `${what} exists already and has no owner; ${rename} or, where it may have the object, give "${command}" or annotate the object with ${ADOPT_BY_ANNOTATION}=${offerTo(owner, object.metadata)}`,
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

/**
 * Checks that the owner of a task may write an object that exists; where it belongs to another custom resource by its record, that
 * learns of it by an event, without the name of this one.
 * @param isApplied whether our field manager has applied it
 * @throws OperatorError as `checkOwnership`
 */
export function checkOwned({ hand, owner }: OwnedTask, object: AnyObject, isApplied: boolean): void {
  if (isOrphan(object, owner, isApplied)) return;
  try {
    checkOwnership(object, owner);
  } catch (conflict) {
    const { owner: uid, of } = recordOf(object) ?? {};
    const { apiVersion, kind } = owner;
    // A record that is forged would have us write where its forger may not.
    const isThere =
      of?.groupKind === groupKind(owner) && hand.reader.get(owner, of.key)?.metadata.uid === uid;
    if (isThere && uid !== undefined) {
      const note = `Another ${kind} asks for ${describeRef(object)}, which belongs to this one`;
      const event = { type: 'Warning', reason: 'OwnershipConflict', action: 'Apply', note } as const;
      hand.events.send({ apiVersion, kind, ...splitKey(of.key), uid }, event);
    }
    throw conflict;
  }
}

/**
 * Reports whether an object without a controller lost the reference to this very owner: it was applied for its UID. One that was
 * kept when its owner was deleted has to be handed over: a user who may create the custom resource need not have a right to it.
 * @param isApplied whether our field manager has applied it; a copy of such an object lacks that
 */
export function isOrphan(object: AnyObject, owner: Owner, isApplied = true): boolean {
  if (controllerOf(object) || !isApplied) return false;
  // No other owner applies with the manager of one that is only recorded.
  return owner.recordedKey !== undefined || recordOf(object)?.owner === owner.uid;
}

/**
 * Reports whether an object was left behind by a namesake of the owner, and by nothing else: one that was deleted, since
 * there can be only one of a name.
 */
function isLeftover(task: OwnedTask, { object, owned }: Entry): boolean {
  const { owner, fieldManager } = task;
  const controller = controllerOf(object);
  const { owner: uid, of } = recordOf(object) ?? {};
  if (!controller && uid !== undefined && of && !of.isKept) {
    const isSameName =
      of.groupKind === groupKind(owner) && of.key === objectKey(namespaceOfOwner(task), owner.name);
    const former = fieldManager.replace(owner.uid, uid);
    return isSameName && uid !== owner.uid && owned.has(ownerKey(former));
  }
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

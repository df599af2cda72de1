import type { ApplyStep } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { ADOPT_BY_ANNOTATION, recordOf } from '../../contract/names.js';
import { controllerOf, describeRef, groupOf, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, OwnerReference } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Api } from '../../client/api.js';
import { setLatest, withoutContent, withUid } from './apply-state.js';
import type { Task } from './apply-state.js';
import type { Clock } from '../../client/clock.js';
import { deleteObject, refresh } from './delete.js';
import { isAppliedBy, managedFieldsOf, ownerKey, wasAppliedBy, without } from './managed-fields.js';
import type { ManagedFieldsEntry } from './managed-fields.js';
import type { Entry } from '../watch/cache.js';
import type { StoreReader } from '../watch/cache.js';

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
  const group = isTwin(controller, owner) ? ` of ${groupOf(controller.apiVersion)}` : '';
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
export function isOrphan(
  object: AnyObject,
  { owner, fieldManager, generate }: ApplyStep,
  isApplied = wasAppliedBy(fieldManager, object),
): boolean {
  // Generated values aren't applied.
  const isOurs = isApplied || generate !== undefined;
  return !controllerOf(object) && owner !== undefined && isOurs && recordOf(object)?.owner === owner.uid;
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
function isLeftover(object: AnyObject, owner: OwnerReference): boolean {
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

/** Reports whether two have the same kind and name, in different API groups. */
function isTwin(a: OwnerReference, b: OwnerReference): boolean {
  return a.kind === b.kind && a.name === b.name && groupOf(a.apiVersion) !== groupOf(b.apiVersion);
}

/**
 * Keeps a plan from creating objects while one of its objects belongs to a custom resource of the same kind and name in
 * another API group.
 *
 * **Guarantees.** Two that are created at once don't divide the objects between them, so that neither ever had them all
 * and each waited for the other. The one that creates the first object of the plan has them; what exists already is
 * corrected as ever.
 *
 * **Assumptions.** Both plan their first object under the same type and name.
 */
export class TwinGuard {
  private met: boolean;

  constructor(
    steps: readonly ApplyStep[],
    private readonly reader: StoreReader,
  ) {
    this.met = steps.some((step) => this.isInTheWay(step));
  }

  /** A step has failed: the other may have created its object meanwhile. */
  failed(step: ApplyStep): void {
    this.met ||= this.isInTheWay(step);
  }

  /** Reports whether a step would create an object that has to wait. */
  holds(step: ApplyStep): boolean {
    return this.met && step.owner !== undefined && this.known(step) === undefined;
  }

  private isInTheWay(step: ApplyStep): boolean {
    const known = step.owner && this.known(step);
    const controller = known && controllerOf(known);
    return controller !== undefined && step.owner !== undefined && isTwin(controller, step.owner);
  }

  private known({ object }: ApplyStep): AnyObject | undefined {
    if (!this.reader.isWatched(object)) return undefined;
    const { namespace, name } = object.metadata;
    return this.reader.get(object, objectKey(namespace, name));
  }
}

/** The garbage collector may need as long as this to come to the next child. */
const REMEMBERED_MILLISECONDS = 600_000;

/** Number of vanished children from which on their owners are listed instead of read one by one. */
const MANY = 16;
/** Maximum number of items of a list of owners, as a multiple of the vanished children. */
const LIST_FACTOR = 10;

interface Vanished {
  /** UID of the owner. */
  readonly uid: string;
  readonly at: number;
}

interface OwnerList {
  readonly at: number;
  readonly generations: Promise<ReadonlyMap<string, number>>;
}

/**
 * Decides about ownership where the cached state alone can't: asks the API server in the few cases where a watch may
 * have missed it.
 *
 * **Guarantees.** A child isn't recreated for an owner that is gone. What a deleted namesake of the owner has left behind is
 * deleted. An object that others created just before our first apply is given back: what they had set stays as it was, and
 * the custom resource isn't among its owners. An object that we created ourselves, and whose first answer was lost, stays ours.
 *
 * **Caveats.** An object in which nothing is set, such as a bare ServiceAccount, doesn't tell who has created it. One that
 * has nothing in common with ours isn't told apart from ours in the second in which it was created. A process that ends
 * before it gives the object back leaves it as its own.
 */
export class Ownership {
  /**
   * Objects that have gone while their owner, as far as is known, has not; the latest at the end. Either such an object was
   * deleted by itself, and has to be recreated; or its owner is gone too, the watch has missed it, and the garbage collector
   * is at work: recreating it would keep both at it forever.
   */
  private readonly vanished = new Map<string, Vanished>();
  /** Lists by kind and namespace of owners. */
  private readonly lists = new Map<string, OwnerList>();
  /** Applies that have yet to be given back, by object, and the UID of what they have taken over. */
  private readonly toGiveBack = new Map<string, { readonly task: Task; readonly uid: string | undefined }>();

  constructor(
    private readonly api: Api,
    private readonly clock: Clock,
  ) {}

  /** An object is gone. */
  gone(object: AnyObject): void {
    if (this.toGiveBack.get(objectId(object))?.uid === object.metadata.uid)
      this.toGiveBack.delete(objectId(object));
    const uid = controllerOf(object)?.uid;
    if (uid === undefined) return;
    const at = this.clock.monotonic();
    for (const [id, before] of this.vanished) {
      if (at - before.at < REMEMBERED_MILLISECONDS) break;
      this.vanished.delete(id);
    }
    setLatest(this.vanished, objectId(object), { uid, at });
    if (this.vanished.size === 1) this.lists.clear();
  }

  /** Notes that we have deleted an object. */
  deleted(id: string): void {
    this.vanished.delete(id);
  }

  /**
   * Before an object is created: if it had been there and has gone, checks that its owner hasn't gone too.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async checkOwner(task: Task, owner: OwnerReference): Promise<void> {
    const vanished = this.vanished.get(task.objectId);
    if (vanished?.uid !== owner.uid) return;
    if (!(await this.isListed(task, owner, vanished))) {
      const live = await this.read(task, owner);
      if (live?.metadata.uid !== owner.uid) throw ownerGone(owner);
    }
    this.vanished.delete(task.objectId);
  }

  /**
   * Returns an object that exists, where the owner may write it.
   * @throws as `checkOwnership` and `collect`
   */
  async admit(task: Task, before: Entry, owner: OwnerReference): Promise<Entry | undefined> {
    const known = await this.collect(task, before, owner);
    if (!known) return undefined;
    const isApplied = known.owned.has(ownerKey(task.step.fieldManager));
    if (!isOrphan(known.object, task.step, isApplied)) checkOwnership(known.object, owner);
    return known;
  }

  /**
   * Removes what a deleted namesake of the owner has left behind, where the API server confirms that the owner is the
   * one that exists now. The garbage collector would do the same, but never learns of an owner that was replaced while
   * its watch was down. Returns what is still there.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async collect(task: Task, known: Entry, owner: OwnerReference): Promise<Entry | undefined> {
    if (!isLeftover(known.object, owner)) return known;
    const live = await this.read(task, owner);
    if (!live) throw ownerGone(owner);
    if (live.metadata.uid === owner.uid && !known.object.metadata.deletionTimestamp) {
      const { error } = await deleteObject(this.api, known.object, task.reader);
      if (error) throw error;
    }
    return task.store.get(task.key);
  }

  /**
   * Gives back what a first apply has taken over: an object that no watch has told of yet, and in which nothing contradicted
   * what was applied.
   * @param answer to the apply of an object that wasn't known, and was there
   * @throws OperatorError `OwnershipConflict` once it is given back
   */
  async giveBackIfOthersCreated(task: Task, answer: AnyObject, owner: OwnerReference): Promise<void> {
    if (!isMadeByOthers(answer, task.step.fieldManager)) return;
    const ownerReferences = answer.metadata.ownerReferences?.filter(({ uid }) => uid !== owner.uid) ?? [];
    try {
      // One that was handed over may be kept.
      checkOwnership({ ...answer, metadata: { ...answer.metadata, ownerReferences } }, owner);
    } catch (conflict) {
      this.toGiveBack.set(task.objectId, { task, uid: answer.metadata.uid });
      await this.giveBack(task, answer.metadata.uid);
      throw conflict;
    }
  }

  /** Gives back what couldn't be given back at once, before the object is applied again or deleted. Reports whether it was there. */
  async finishGivingBack(id: string): Promise<boolean> {
    const toGiveBack = this.toGiveBack.get(id);
    if (!toGiveBack) return false;
    const { task, uid } = toGiveBack;
    const live = await refresh(this.api, task.step.object, task.reader);
    const isThere = live !== undefined && live.metadata.uid === uid;
    if (isThere) await this.giveBack(task, uid);
    else this.toGiveBack.delete(id);
    return isThere;
  }

  /** An apply that names nothing lets go of all that was applied, and of nothing else. */
  private async giveBack(
    { step, reader, store, key, objectId: id }: Task,
    uid: string | undefined,
  ): Promise<void> {
    const nothing = withUid(withoutContent(step.object), uid);
    const options = { fieldManager: step.fieldManager, force: false };
    const type = reader.resourceType(step.object);
    await store.write(key, reader.writer, async () => this.api.apply(type, nothing, options));
    this.toGiveBack.delete(id);
  }

  /** Reads the owner into its store. @throws OperatorError `Conflict` where the plan was made from another generation */
  private async read({ reader, step }: Task, owner: OwnerReference): Promise<AnyObject | undefined> {
    const { apiVersion, kind, name } = owner;
    const namespace = namespaceOf(reader.resourceType(owner), step.object);
    const metadata = { name, ...(namespace && { namespace }) };
    const known = reader.get(owner, objectKey(namespace, name))?.metadata.generation;
    const live = await refresh(this.api, { apiVersion, kind, metadata }, reader);
    const { uid, generation = known } = live?.metadata ?? {};
    if (uid !== owner.uid || generation === (known ?? generation)) return live;
    const message = `${kind} ${name} is not as it was when the plan was made`;
    throw new OperatorError({ reason: 'Conflict', message, retry: 'now' });
  }

  /**
   * Reports whether a list of the owners, asked for since the child has gone, shows this one as it is known. One list
   * serves all of many children that have gone at once.
   */
  private async isListed({ reader, step }: Task, owner: OwnerReference, { at }: Vanished): Promise<boolean> {
    if (this.vanished.size < MANY || reader.store(owner).size > LIST_FACTOR * this.vanished.size)
      return false;
    const type = reader.resourceType(owner);
    const namespace = namespaceOf(type, step.object);
    const id = `${type.apiVersion} ${type.kind} ${namespace ?? ''}`;
    let list = this.lists.get(id);
    if (!list || list.at < at) {
      list = { at: this.clock.monotonic(), generations: this.generations(type, namespace) };
      this.lists.set(id, list);
    }
    const generation = (await list.generations).get(owner.uid);
    const known = reader.get(owner, objectKey(namespace, owner.name))?.metadata.generation;
    return generation !== undefined && known !== undefined && generation <= known;
  }

  /** Returns generations by UID; none where owners can't be listed: then each is read. */
  private async generations(
    type: ResourceType,
    namespace: string | undefined,
  ): Promise<ReadonlyMap<string, number>> {
    const scope = { type, metadataOnly: true, ...(namespace && { namespace }) };
    const found = new Map<string, number>();
    try {
      let page: string | undefined;
      do {
        // Without a signal, so that it fails at once while the API server can't be reached.
        const { items, continueToken } = await this.api.list(scope, page);
        for (const { metadata } of items) found.set(metadata.uid ?? '', metadata.generation ?? 0);
        page = continueToken;
      } while (page);
    } catch {
      found.clear();
    }
    return found;
  }
}

function namespaceOf({ namespaced }: ResourceType, child: AnyObject): string | undefined {
  return namespaced ? child.metadata.namespace : undefined;
}

function ownerGone({ kind, name }: OwnerReference): OperatorError {
  const message = `${kind} ${name} is gone; its children are left to the garbage collector`;
  return new OperatorError({ reason: 'OwnerGone', message, retry: 'now' });
}

/** Reports whether others have created an object, going by who has set what in it. */
function isMadeByOthers(object: AnyObject, manager: string): boolean {
  const entries = managedFieldsOf(object);
  const own = entries.find((entry) => isAppliedBy(manager, entry));
  return entries.some(
    (entry) =>
      !entry.subresource &&
      entry.manager !== manager &&
      (shares(entry, own) || (isOlderThan(object, own) && setsMoreThanMetadata(entry))),
  );
}

/** A later writer has to differ to own a field; so one that owns the same field was there before. */
function shares({ fieldsV1 = {} }: ManagedFieldsEntry, own: ManagedFieldsEntry | undefined): boolean {
  return without(fieldsV1, own?.fieldsV1 ?? {}) !== fieldsV1;
}

/** An apply that changes nothing leaves its time as it is. Both are by the API server's clock, in whole seconds. */
function isOlderThan({ metadata }: AnyObject, own: ManagedFieldsEntry | undefined): boolean {
  const { creationTimestamp } = metadata;
  return creationTimestamp !== undefined && own?.time !== undefined && creationTimestamp < own.time;
}

/** Controllers annotate what they come upon. */
function setsMoreThanMetadata({ fieldsV1 = {} }: ManagedFieldsEntry): boolean {
  return Object.keys(fieldsV1).some((segment) => segment !== 'f:metadata');
}

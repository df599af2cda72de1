import type { Change, Drift } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { controllerOf, describeRef, objectId, objectKey, refOf } from '../contract/object.js';
import type { AnyObject, OwnerReference } from '../contract/object.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Api, Applied } from './api.js';
import { ApiError, classify } from './api-error.js';
import { refusalId, refused, taskOf, withUid } from './apply-task.js';
import type { Outcome, Task } from './apply-task.js';
import type { Clock } from './clock.js';
import { driftOf } from './drift.js';
import { isAppliedBy, managedFieldsOf, without } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import type { Fights } from './fights.js';
import { checkServed } from './installed.js';
import { isHeld, isLegacy, ownerKey } from './managed-fields.js';
import type { IsLeftOver } from './managed-fields.js';
import { nodePortsOf } from './node-ports.js';
import type { NodePorts } from './node-ports.js';
import { checkNotTerminating, checkOwnership, isLeftover } from './ownership.js';
import { prune } from './prune.js';
import { refresh } from './refresh.js';
import type { Refusals } from './refusals.js';
import { Repair } from './repair.js';
import type { Settlements } from './settlements.js';
import { Sharing } from './sharing.js';
import type { Entry, StoreReader } from './cache.js';

export interface ApplierProps {
  readonly api: Api;
  readonly settlements: Settlements;
  readonly refusals: Refusals;
  readonly fights: Fights;
  readonly vanished: Vanished;
  readonly nodePorts: NodePorts;
  readonly metrics: Metrics;
}

/**
 * Brings single objects to what is wanted of them.
 *
 * **Guarantees.** No request is sent for an object whose last apply still stands, also after a restart. A body that the
 * API server has refused for good isn't sent again until it, or the object in the way, changes, or a node port that it
 * asks for becomes free. What has been deleted isn't brought back by an apply that was under way. An object that
 * belongs to somebody else isn't touched. A field of ours that somebody changes is put right at once; one that is
 * changed again and again, after a pause. What others own of an object that is shared stays theirs: see `Sharing`. What
 * we drop from an object of ours vanishes, also where `kubectl` or `helm` had made it. An object of an optional kind
 * that isn't installed is refused without a request.
 *
 * **Assumptions.** Nobody else applies with our field manager. The type of an owner is among the reader's.
 *
 * **Caveats.** What a deleted namesake of the owner has left behind is deleted and made anew. An object that somebody
 * makes between the last event and our first apply, and whose fields don't contradict ours, is ours for the moment
 * until it is given back; see `Newcomers` for what can't be told apart.
 */
export class Applier {
  private readonly repair: Repair;
  private readonly owners: Owners;
  private readonly newcomers: Newcomers;
  private readonly sharing: Sharing;

  constructor(private readonly props: ApplierProps) {
    this.repair = new Repair(props.api);
    this.owners = new Owners(props.api, props.vanished);
    this.newcomers = new Newcomers(props.api);
    this.sharing = new Sharing(props.api, props.nodePorts);
  }

  /** To be told of each change of an object. */
  changed(before: AnyObject | undefined, after: AnyObject | undefined): void {
    this.props.nodePorts.changed(before, after);
    if (!before || after) return;
    this.props.settlements.forget(objectId(before));
    this.props.vanished.gone(before);
    this.sharing.gone(objectId(before));
  }

  /** Applies one object where that is needed. A failure is part of the answer; this never rejects. */
  async apply(step: ApplyStep, reader: StoreReader): Promise<Change> {
    const ref = refOf(step.object);
    try {
      checkServed(step.object, reader);
      if (step.handOver) return { ref, action: await handOver(this.props.api, step, reader) };
      const ensure = async (task: Task): Promise<Outcome> => this.ensure(task);
      const { nodePorts } = this.props;
      if (!step.owner) return { ref, ...(await this.sharing.apply(step, reader, ensure)) };
      return { ref, ...(await ensure(taskOf(step, reader, nodePorts))) };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Apply ${describeRef(ref)}`) };
    }
  }

  private async ensure(task: Task): Promise<Outcome> {
    const { owner } = task.step;
    await this.newcomers.settleUp(task);
    let known = task.store.get(task.key) ?? (await this.look(task));
    if (known && owner && isLeftover(known.object, owner))
      known = await this.owners.collect(task, known, owner);
    if (known) {
      if (owner) checkOwnership(known.object, owner);
      checkNotTerminating(known.object);
      if (this.stands(task, known)) return this.keep(task, known);
    }
    const refusal = this.props.refusals.find(refusalId(task), refused(task, known));
    if (refusal) throw refusal;
    if (!known && owner) await this.owners.check(task, owner);
    if (known && isCorrection(task, known)) this.props.fights.checkPause(known.object, task.hash);
    return this.send(task, known);
  }

  /** While changes aren't delivered, an object that isn't known may have been made by somebody: it is looked up. */
  private async look({ step, reader, store, key }: Task): Promise<Entry | undefined> {
    if (!step.owner || store.followed(step.object.metadata.namespace)) return undefined;
    await refresh(this.props.api, step.object, reader);
    return store.get(key);
  }

  /** Whether our last apply was of the same intent, and nobody has touched a field of ours since. */
  private stands(task: Task, { object, owned }: Entry): boolean {
    const { step, store, intent, hash, hashName, objectId } = task;
    if (object.metadata.annotations?.[hashName] !== hash) return false;
    const settlement = { hash, uid: object.metadata.uid, owned: owned.get(ownerKey(step.fieldManager)) };
    return this.props.settlements.stands(objectId, step.fieldManager, settlement, () =>
      store.paths.expected(intent, settlement.owned),
    );
  }

  /** What is as it should be needs no apply. */
  private async keep(task: Task, known: Entry): Promise<Outcome> {
    this.props.fights.checkPeace(known.object);
    task.store.explained(task.key, known.object.metadata.resourceVersion);
    return { action: (await this.freeOfLeftovers(task, known)) ? 'configured' : 'unchanged' };
  }

  /** Makes what was applied last ours alone, as far as it is a legacy manager's too; whether anything was written. */
  private async freeOfLegacy({ step, reader }: Task, known: Entry | undefined): Promise<boolean> {
    if (!step.owner || !known?.sharedWithLegacy?.includes(step.fieldManager)) return false;
    const live = await refresh(this.props.api, step.object, reader);
    return live !== undefined && this.repair.dropOwners(isLegacy, step, live, reader);
  }

  /** The same after the apply, when what an autoscaler has left is of no use any more either. */
  private async freeOfLeftovers(
    { step, reader }: Task,
    known: Entry | undefined,
    seen?: AnyObject,
  ): Promise<boolean> {
    const sharing = [...(known?.sharedWithLegacy ?? []), ...(known?.sharedWithHeld ?? [])];
    if (!step.owner || !sharing.includes(step.fieldManager)) return false;
    const live = seen ?? (await refresh(this.props.api, step.object, reader));
    const isLeftOver: IsLeftOver = (entry, own) => isLegacy(entry) || isHeld(entry, own);
    return live !== undefined && this.repair.dropOwners(isLeftOver, step, live, reader);
  }

  private async send(task: Task, known: Entry | undefined): Promise<Outcome> {
    const { metrics } = this.props;
    // What this apply no longer names is ours only until then, and would stay the other's for ever.
    await this.freeOfLegacy(task, known);
    const { controller } = task.reader;
    let answer: Applied;
    try {
      answer = await this.request(task, known);
    } catch (error) {
      const failure = await this.explain(task, known, error);
      metrics.applies.inc({ controller, outcome: failure.reason });
      if (known && isRecreated(task, failure)) return this.recreate(task, known);
      throw failure;
    }
    const { object, created } = answer;
    if (task.step.owner && !known && !created) await this.newcomers.check(task, object, task.step.owner);
    const same = object.metadata.resourceVersion === known?.object.metadata.resourceVersion;
    this.settle(task, object);
    this.props.refusals.forget(refusalId(task));
    metrics.applies.inc({ controller, outcome: created ? 'created' : same ? 'unchanged' : 'changed' });
    if (created) return { action: 'created' };
    if (same) return { action: 'unchanged' };
    const drift = known && isCorrection(task, known) ? this.correct(task, known, object) : undefined;
    await this.freeOfLeftovers(task, task.store.get(task.key), object);
    return drift ? { action: 'corrected', drift } : { action: 'configured' };
  }

  /** One apply, and a second one where the first failed for what is recorded about owners. */
  private async request(task: Task, known: Entry | undefined): Promise<Applied> {
    const { step, reader, store, key, intent } = task;
    const apply = (): Promise<Applied> =>
      store.write(key, reader.writer, () =>
        this.props.api.apply(
          reader.resourceType(intent),
          known ? withUid(intent, known.object.metadata.uid) : intent,
          // What isn't known to be ours is never taken by force: somebody may have made it a moment ago.
          { fieldManager: step.fieldManager, force: step.owner !== undefined && known !== undefined },
        ),
      );
    try {
      return await apply();
    } catch (error) {
      if (!step.owner || !known || !(await this.repair.afterFailure(step, error, reader))) throw error;
      return apply();
    }
  }

  private settle({ step, store, intent, hash, objectId }: Task, object: AnyObject): void {
    const owned = store.ownedOf(object).get(ownerKey(step.fieldManager));
    const settlement = { hash, uid: object.metadata.uid, owned };
    const expected = store.paths.expected(intent, owned);
    this.props.settlements.remember(objectId, step.fieldManager, settlement, expected);
  }

  private correct({ step, hash }: Task, { drifted = [] }: Entry, object: AnyObject): Drift {
    // Who it was is known only where a watch has shown it, and not where it was found in a list.
    const drift =
      drifted.length === 0 ? { managers: [], fields: [] } : driftOf(drifted, object, step.fieldManager);
    this.props.fights.corrected(object, drift, hash);
    return drift;
  }

  /** Puts a new object in place of one in which something has to change that can't, once the new one is known to be acceptable. */
  private async recreate(task: Task, { object }: Entry): Promise<Outcome> {
    try {
      await checkAcceptable(this.props.api, task);
    } catch (error) {
      throw this.remembered(task, classify(error, `Replace ${describeRef(refOf(object))}`));
    }
    const { error } = await prune(this.props.api, { object }, task.reader);
    if (error) throw error;
    const left = task.store.get(task.key);
    if (left) checkNotTerminating(left.object);
    // It is we who have deleted it.
    this.props.vanished.forget(task.objectId);
    await this.send(task, undefined);
    return { action: 'recreated' };
  }

  /** What a failure means. One that is for good is remembered, with the object as it is known then. */
  private async explain(task: Task, known: Entry | undefined, error: unknown): Promise<OperatorError> {
    const what = `Apply ${describeRef(refOf(task.intent))}`;
    const failure = this.props.nodePorts.judged(classify(error, what), task.intent);
    const isTaken = error instanceof ApiError && !known && error.showsAnother;
    if (error instanceof ApiError && (error.code === 409 || error.wrongUid || isTaken)) {
      try {
        const live = await refresh(this.props.api, task.step.object, task.reader);
        if (live && task.step.owner) checkOwnership(live, task.step.owner);
      } catch (conflict) {
        return classify(conflict, what);
      }
      // It is ours after all, so next time it is known, and applied with force.
      if ((error.fieldConflict || isTaken) && task.step.owner) return asStale(failure);
    }
    return isRecreated(task, failure) ? failure : this.remembered(task, failure);
  }

  private remembered(task: Task, failure: OperatorError): OperatorError {
    if (failure.retry === 'onChange')
      this.props.refusals.remember(refusalId(task), refused(task, task.store.get(task.key)), failure);
    return failure;
  }
}

/**
 * Whether an apply puts right what somebody else has done: the intent is the one that was applied last. One who takes
 * off the hash leaves our other fields.
 */
function isCorrection({ hash, hashName, step }: Task, { object, owned }: Entry): boolean {
  const last = object.metadata.annotations?.[hashName];
  return last === hash || (last === undefined && owned.has(ownerKey(step.fieldManager)));
}

/** Whether a failure leads to deleting the object, and making it anew. */
function isRecreated({ step }: Task, { reason }: OperatorError): boolean {
  return step.recreate === true && step.owner !== undefined && reason === 'ImmutableField';
}

/**
 * Applies a field under the manager that it passes to, before its present one lets go of it.
 *
 * **Guarantees.** Nothing is made, and nothing is taken from anybody unless the step says so and its owner
 * controls the object. What is remembered of other applies to the same
 * object stays as it is.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 * @throws OperatorError with `retry: 'now'` where the value has moved since it was read
 */
async function handOver(api: Api, step: ApplyStep, reader: StoreReader): Promise<Change['action']> {
  const { object, fieldManager, owner } = step;
  const store = reader.store(object);
  const key = objectKey(object.metadata.namespace, object.metadata.name);
  const known = store.get(key)?.object;
  if (!known || known.metadata.deletionTimestamp) return 'skipped';
  const intent = withUid(object, known.metadata.uid);
  const isOurs = owner !== undefined && controllerOf(known)?.uid === owner.uid;
  const options = { fieldManager, force: step.force === true && isOurs };
  try {
    const { object: answer } = await store.write(key, reader.writer, () =>
      api.apply(reader.resourceType(object), intent, options),
    );
    return answer.metadata.resourceVersion === known.metadata.resourceVersion ? 'unchanged' : 'configured';
  } catch (error) {
    throw await explained(api, object, reader, error);
  }
}

/** What was moved is read, so that the next plan knows its value. */
async function explained(
  api: Api,
  object: AnyObject,
  reader: StoreReader,
  error: unknown,
): Promise<OperatorError> {
  const what = `Hand over fields of ${describeRef(refOf(object))}`;
  const failure = classify(error, what);
  if (!(error instanceof ApiError) || (error.code !== 409 && !error.wrongUid)) return failure;
  try {
    await refresh(api, object, reader);
  } catch (unanswered) {
    return classify(unanswered, what);
  }
  return asStale(failure);
}

/** The view was stale: tried again at once. */
function asStale({ reason, message, cause }: OperatorError): OperatorError {
  return new OperatorError({ reason, message, cause, retry: 'now' });
}

/** Asks whether an owner is still there, in the few cases where a watch may have missed that he isn't. */
class Owners {
  constructor(
    private readonly api: Api,
    private readonly vanished: Vanished,
  ) {}

  /**
   * Removes what a deleted namesake of the owner has left behind, where the API server confirms that the owner is the
   * one that exists now. The garbage collector would do the same, but never learns of an owner that was replaced
   * while its watch was down. Returns what is still there.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async collect(task: Task, { object }: Entry, owner: OwnerReference): Promise<Entry | undefined> {
    const { reader, store, key } = task;
    const live = await this.read(task, owner);
    if (!live) throw ownerGone(owner);
    if (live.metadata.uid === owner.uid && !object.metadata.deletionTimestamp) {
      const { error } = await prune(this.api, { object }, reader);
      if (error) throw error;
    }
    return store.get(key);
  }

  /**
   * Before an object is made: if it had been there and has gone, that its owner hasn't gone too.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async check(task: Task, owner: OwnerReference): Promise<void> {
    const { objectId } = task;
    if (!this.vanished.from(objectId, owner)) return;
    const live = await this.read(task, owner);
    this.vanished.forget(objectId);
    if (live?.metadata.uid !== owner.uid) throw ownerGone(owner);
  }

  /** Reads the owner into its store. @throws OperatorError `Conflict` where the plan was made from another generation */
  private async read({ reader, step }: Task, owner: OwnerReference): Promise<AnyObject | undefined> {
    const { apiVersion, kind, name } = owner;
    const { namespace } = step.object.metadata;
    const metadata = reader.resourceType(owner).namespaced && namespace ? { name, namespace } : { name };
    const known = reader.get(owner, objectKey(metadata.namespace, name))?.metadata.generation;
    const live = await refresh(this.api, { apiVersion, kind, metadata }, reader);
    const { uid, generation = known } = live?.metadata ?? {};
    if (uid !== owner.uid || generation === (known ?? generation)) return live;
    const message = `${kind} ${name} is not as it was when the plan was made`;
    throw new OperatorError({ reason: 'Conflict', message, retry: 'now' });
  }
}

function ownerGone({ kind, name }: OwnerReference): OperatorError {
  const message = `${kind} ${name} is gone; its children are left to the garbage collector`;
  return new OperatorError({ reason: 'OwnerGone', message, retry: 'now' });
}

/**
 * Asks the API server whether it would take an object as a new one, while the one in whose place it comes is still there.
 *
 * A dry run of a creation passes admission and validation first, and only then meets the object of that name: so
 * `AlreadyExists` says that nothing else is wrong. What the present object holds is no objection to the new one: its node
 * ports and addresses aren't asked for, and its place in a quota, which admission looks at last, is the new one's.
 * @throws ApiError with what else is wrong
 */
async function checkAcceptable(api: Api, { intent, step, reader }: Task): Promise<void> {
  const live = isService(intent) ? await refresh(api, intent, reader) : undefined;
  try {
    await api.tryCreate(reader.resourceType(intent), withoutHeld(intent, live), step.fieldManager);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const isBalancer = (live?.spec as ServiceSpec | undefined)?.type === 'LoadBalancer';
    const freed = {
      'services.nodeports': live ? nodePortsOf(live).length : 0,
      'services.loadbalancers': isBalancer ? 1 : 0,
    };
    if (!error.alreadyExists && !error.fitsQuotaWithout(freed)) throw error;
  }
}

interface ServiceSpec {
  readonly type?: string;
  readonly ports?: readonly { readonly nodePort?: number }[];
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly healthCheckNodePort?: number;
}

/** An object without the node ports and addresses that the present one has been given. */
function withoutHeld(object: AnyObject, live: AnyObject | undefined): AnyObject {
  if (!live) return object;
  const held = new Set<unknown>(nodePortsOf(live));
  const { ports, clusterIP, clusterIPs, healthCheckNodePort, ...spec } = object.spec as ServiceSpec;
  const has = live.spec as ServiceSpec;
  const addresses = clusterIPs ?? (clusterIP === undefined ? [] : [clusterIP]);
  const isHeld = addresses.every((address) => address !== 'None' && has.clusterIPs?.includes(address));
  return {
    ...object,
    spec: {
      ...spec,
      ...(ports && {
        ports: ports.map(({ nodePort, ...port }) => ({ ...port, ...(!held.has(nodePort) && { nodePort }) })),
      }),
      ...(!isHeld && { clusterIP, clusterIPs }),
      ...(healthCheckNodePort !== has.healthCheckNodePort && { healthCheckNodePort }),
    },
  };
}

function isService({ apiVersion, kind }: AnyObject): boolean {
  return apiVersion === 'v1' && kind === 'Service';
}

/**
 * Gives back what a first apply has taken over: an object that somebody made, and no watch has told of yet, when
 * nothing in it contradicted what was applied.
 *
 * **Guarantees.** What others had set stays as they had set it, and the custom resource isn't among the owners any
 * more. An object that we made ourselves, and whose first answer was lost, stays ours.
 *
 * **Caveats.** An object in which nothing is set, such as a bare ServiceAccount, doesn't tell who has made it. One that
 * has nothing in common with ours isn't told apart from ours in the second in which it was made. A process that ends
 * between the two requests leaves the object as its own.
 */
class Newcomers {
  /** By object, the UID of what has yet to be given back. */
  private readonly owed = new Map<string, string | undefined>();

  constructor(private readonly api: Api) {}

  /**
   * @param answer to the apply of an object that wasn't known, and was there
   * @throws OperatorError `OwnershipConflict` once it is given back
   */
  async check(task: Task, answer: AnyObject, owner: OwnerReference): Promise<void> {
    if (!isOthers(answer, task.step.fieldManager)) return;
    try {
      // Who hands it over doesn't mind.
      checkOwnership(withoutOwner(answer, owner), owner);
    } catch (conflict) {
      this.owed.set(task.objectId, answer.metadata.uid);
      await this.giveBack(task, answer.metadata.uid);
      throw conflict;
    }
  }

  /** Does what couldn't be done at once, if the object is still there. */
  async settleUp(task: Task): Promise<void> {
    const { step, reader, objectId } = task;
    if (!this.owed.has(objectId)) return;
    const live = await refresh(this.api, step.object, reader);
    if (live && live.metadata.uid === this.owed.get(objectId)) await this.giveBack(task, live.metadata.uid);
    else this.owed.delete(objectId);
  }

  /** An apply that names nothing lets go of all that was applied, and of nothing else. */
  private async giveBack(
    { step, reader, store, key, objectId }: Task,
    uid: string | undefined,
  ): Promise<void> {
    const { apiVersion, kind, metadata } = step.object;
    const { namespace, name } = metadata;
    const nothing = withUid({ apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }, uid);
    const options = { fieldManager: step.fieldManager, force: false };
    await store.write(key, reader.writer, () =>
      this.api.apply(reader.resourceType(step.object), nothing, options),
    );
    this.owed.delete(objectId);
  }
}

/** Whether somebody else has made an object, going by who has set what in it. */
function isOthers(object: AnyObject, manager: string): boolean {
  const entries = managedFieldsOf(object);
  const own = entries.find((entry) => isAppliedBy(manager, entry));
  return entries.some(
    (entry) =>
      !entry.subresource &&
      entry.manager !== manager &&
      (shares(entry, own) || (isOlderThan(object, own) && setsMoreThanMetadata(entry))),
  );
}

/** Who comes later has to differ to own a field; so he who owns the same one was there before. */
function shares({ fieldsV1 = {} }: ManagedFieldsEntry, own: ManagedFieldsEntry | undefined): boolean {
  return without(fieldsV1, own?.fieldsV1 ?? {}) !== fieldsV1;
}

/** An apply that changes nothing leaves its time as it is. Both are by the API server's clock, in whole seconds. */
function isOlderThan({ metadata }: AnyObject, own: ManagedFieldsEntry | undefined): boolean {
  const { creationTimestamp } = metadata as { readonly creationTimestamp?: string };
  return creationTimestamp !== undefined && own?.time !== undefined && creationTimestamp < own.time;
}

/** Controllers annotate what they come upon. */
function setsMoreThanMetadata({ fieldsV1 = {} }: ManagedFieldsEntry): boolean {
  return Object.keys(fieldsV1).some((segment) => segment !== 'f:metadata');
}

function withoutOwner(object: AnyObject, { uid }: OwnerReference): AnyObject {
  const ownerReferences = object.metadata.ownerReferences?.filter((each) => each.uid !== uid) ?? [];
  return { ...object, metadata: { ...object.metadata, ownerReferences } };
}

/** The garbage collector may need as long as this to come to the next child. */
const REMEMBERED_MILLISECONDS = 600_000;

/**
 * The objects that have gone while their owner, as far as is known, has not. Either somebody has deleted such an
 * object, and it has to be made anew; or its owner is gone too, the watch has missed it, and the garbage collector
 * is at work: making it anew would keep both at it for ever.
 */
export class Vanished {
  /** By object, the one that went last at the end. */
  private readonly owners = new Map<string, { readonly uid: string; readonly at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Objects that are remembered. */
  get size(): number {
    return this.owners.size;
  }

  /** An object is there no more. */
  gone(object: AnyObject): void {
    const uid = controllerOf(object)?.uid;
    if (uid === undefined) return;
    const now = this.clock.monotonic();
    for (const [id, { at }] of this.owners) {
      if (now - at < REMEMBERED_MILLISECONDS) break;
      this.owners.delete(id);
    }
    const id = objectId(object);
    this.owners.delete(id);
    this.owners.set(id, { uid, at: now });
  }

  /** Whether this owner had such an object, and nobody has looked since whether he is still there. */
  from(id: string, owner: OwnerReference): boolean {
    return this.owners.get(id)?.uid === owner.uid;
  }

  forget(id: string): void {
    this.owners.delete(id);
  }
}

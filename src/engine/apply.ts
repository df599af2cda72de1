import type { Change, Drift } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import type { OperatorError } from '../contract/error.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ApiError, classify } from './api-error.js';
import type { Api, Applied } from './api.js';
import { refusalId, refused, taskOf, withUid } from './apply-task.js';
import type { Outcome, Task } from './apply-task.js';
import { driftOf } from './drift.js';
import type { Fights } from './fights.js';
import { asStale, handOver } from './hand-over.js';
import { checkServed } from './installed.js';
import { isHeld, isLegacy } from './legacy-managers.js';
import type { IsLeftOver } from './legacy-managers.js';
import { ownerKey } from './managed-fields.js';
import { Newcomers } from './newcomers.js';
import type { NodePorts } from './node-ports.js';
import { Owners } from './owners.js';
import { checkNotTerminating, checkOwnership, isLeftover } from './ownership.js';
import { prune } from './prune.js';
import { checkAcceptable } from './recreate.js';
import { refresh } from './refresh.js';
import type { Refusals } from './refusals.js';
import { Repair } from './repair.js';
import type { Settlements } from './settlements.js';
import { Sharing } from './sharing.js';
import type { Entry } from './store.js';
import type { StoreReader } from './stores.js';
import type { Vanished } from './vanished.js';

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

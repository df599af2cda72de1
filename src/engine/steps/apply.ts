import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { controllerOf, describeRef, isMap, keyOf, objectId, refOf } from '../../contract/object.js';
import type { Change, Drift, FieldConflict } from '../../contract/change.js';
import type { ApplyStep, DriftMode } from '../../contract/controller.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import { isMadeFor, makeValue, presentKeys, rotationRecord } from '../../values/generated.js';
import type { GeneratedValues } from '../../contract/generated.js';
import { ADOPT_BY_ANNOTATION, GENERATED_ANNOTATION, recordOf } from '../../contract/names.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Api, Applied } from '../../client/api.js';
import { ApiError, classify } from '../../client/api-error.js';
import {
  Fights,
  isSameApply,
  Refusals,
  saysNothing,
  taskOf,
  withoutContent,
  withUid,
} from './apply-state.js';
import type { Refused, LastApply, LastApplies, Task } from './apply-state.js';
import type { Clock } from '../../client/clock.js';
import { deleteObject, refresh } from './delete.js';
import { checkServed } from '../watch/installed.js';
import {
  driftOf,
  fieldAt,
  isAppliedBy,
  isHeld,
  isLegacy,
  isUnapplied,
  itemsBeside,
  itemsInTheWay,
  managedFieldsOf,
  ownerKey,
  withApiVersion,
  withContentTaken,
  withItemsTaken,
  withOfferTaken,
  withoutOwners,
  withWalkableFields,
} from './managed-fields.js';
import type { IsLeftOver, ManagedFieldsEntry } from './managed-fields.js';
import { checkNotTerminating, checkOwnership, isHandedOver, isOrphan, Ownership } from './ownership.js';
import type { Entry, StoreReader } from '../watch/cache.js';
import { TRIES } from '../../client/retry.js';

/** Result of a step. */
type StepOutcome = Omit<Change, 'ref'>;

/** Fields that a shared intent was applied without. */
interface Reduction {
  readonly hash: string;
  readonly resourceVersion: string | undefined;
  readonly conflicts: readonly FieldConflict[];
}

export interface ApplierProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly lastApplies: LastApplies;
  readonly metrics: Metrics;
  /** Mode for objects whose steps don't give one. @default correct */
  readonly drift?: DriftMode;
  /** Generates the same values each time, for what is never stored. @default false */
  readonly placeholders?: boolean;
}

/**
 * Applies objects, and skips the request when nothing would change.
 *
 * **Guarantees.** No request is sent for an object whose last apply still stands, also after a restart. A body that the API
 * server has refused for good isn't sent again until it, or the object in the way, changes, or a claim of it (such as a node
 * port) is released. What has been deleted isn't brought back by an apply that was under way. An object of others isn't
 * touched. Drift is corrected at once; where it comes back again and again, after a pause. What others own of a shared
 * object stays theirs: where the plan says what is to be applied instead, it is in the same pass; what had to be left out is
 * tried again once the object has changed, and not before. A shared intent that says nothing gives up what was ours, and
 * creates nothing. What we drop from an object of ours vanishes, also where `kubectl` or `helm` had set it. An object of an
 * optional kind that isn't installed is refused without a request.
 *
 * **Assumptions.** No other program applies with our field manager. The type of an owner is among the reader's.
 *
 * **Caveats.** See `Ownership` for what can't be known of an object that others create just before our first apply.
 */
export class Applier {
  private readonly ownership: Ownership;
  private readonly refusals: Refusals;
  private readonly fights: Fights;
  /** Drift that is left, and what was owned then, by object and field manager. */
  private readonly left = new Map<string, { readonly seen: LastApply; readonly drift: Drift }>();
  /** Reductions by object and field manager. */
  private readonly reductions = new Map<string, Reduction>();
  /** Steps that have written the record of managers: what they know of the object was another version. */
  private readonly rewritten = new WeakSet<ApplyStep>();

  constructor(private readonly props: ApplierProps) {
    this.ownership = new Ownership(props.api, props.clock);
    this.refusals = new Refusals(props.clock);
    this.fights = new Fights(props.clock);
  }

  /** An object is gone. */
  gone(object: AnyObject): void {
    const id = objectId(object);
    this.props.lastApplies.forget(id);
    this.ownership.gone(object);
    for (const known of [this.reductions, this.left])
      for (const key of known.keys()) if (key.endsWith(` ${id}`)) known.delete(key);
  }

  /** An object has given up claims; see `Watch.claims`. */
  released(claims: readonly string[]): void {
    this.refusals.release(claims);
  }

  /** Applies one object where that is needed. A failure is part of the answer; this never rejects. */
  async apply(step: ApplyStep, reader: StoreReader): Promise<Change> {
    const ref = refOf(step.object);
    try {
      checkServed(step.object, reader);
      if (step.handOver) return { ref, action: await this.handOver(step, reader) };
      const task = taskOf(step, reader);
      if (step.generate) return { ref, ...(await this.generate(task, step.generate)) };
      return { ref, ...(await (step.owner ? this.ensure(task) : this.ensureShared(task))) };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Apply ${describeRef(ref)}`) };
    }
  }

  /** Deletes what a plan no longer renders. What was taken over from others unawares is given back instead. This never rejects. */
  async prune(object: AnyObject, reader: StoreReader): Promise<Change> {
    const ref = refOf(object);
    try {
      if (await this.ownership.finishGivingBack(objectId(object))) return { ref, action: 'configured' };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Give back ${describeRef(ref)}`) };
    }
    this.fights.wasDeleted(fightKey(objectId(object), controllerOf(object)?.uid));
    return deleteObject(this.props.api, object, reader);
  }

  private async ensure(task: Task): Promise<StepOutcome> {
    const { step, store, key } = task;
    const { owner } = step;
    await this.ownership.finishGivingBack(task.objectId);
    let known = store.get(key);
    // While changes aren't delivered, an object that isn't known may have been created by others.
    if (!known && owner && !store.followed(step.object.metadata.namespace)) {
      await refresh(this.props.api, step.object, task.reader);
      known = store.get(key);
    }
    if (known && owner) known = await this.ownership.admit(task, known, owner);
    if (known) {
      checkNotTerminating(known.object);
      if (this.isCurrent(task, known)) return this.leaveAsIs(task, known);
      const mode = step.drift ?? this.props.drift ?? 'correct';
      const isLeft = owner && mode !== 'correct' && isDrift(task, known, false);
      // An orphan is no drift: until it is taken back, it isn't a child.
      if (isLeft && controllerOf(known.object)) return this.leave(task, known, mode);
    }
    const refusal = this.refusals.find(applyId(task), refusedOf(task, known));
    if (refusal) throw refusal;
    if (!known && owner) await this.ownership.checkOwner(task, owner);
    if (!known || this.isRepeated(task, known)) this.fights.checkPause(fightId(task), task.hash);
    return this.send(task, known);
  }

  /** Applies what others share: without what they own, as the plan wants it. */
  private async ensureShared(whole: Task): Promise<StepOutcome> {
    const { step, store, key } = whole;
    const known = store.get(key);
    const ref = refOf(step.object);
    if (!known && step.shared?.mustExist) throw targetMissing(ref);
    if (saysNothing(step.object) && !known?.owned.has(ownerKey(step.fieldManager)))
      return { action: 'unchanged' };
    // Conflicts are those of this version: what others let go of meanwhile is tried again.
    const { resourceVersion } = known?.object.metadata ?? {};
    const before = this.reductions.get(applyId(whole));
    const isCurrent = before?.hash === whole.hash && before.resourceVersion === resourceVersion;
    let conflicts = isCurrent ? before.conflicts : [];
    this.reductions.delete(applyId(whole));
    for (let tries = 0; ; tries++) {
      try {
        const object = conflicts.length > 0 ? reduced(step, conflicts) : undefined;
        const outcome = await this.ensure(object ? taskOf({ ...step, object }, whole.reader) : whole);
        if (conflicts.length === 0) return outcome;
        this.reductions.set(applyId(whole), { hash: whole.hash, resourceVersion, conflicts });
        return { ...outcome, conflicts };
      } catch (error) {
        const cause = error instanceof OperatorError ? error.cause : error;
        const met = cause instanceof ApiError ? cause.conflicts : [];
        if (met.length === 0) throw error;
        const others = met.filter(({ field }) => field !== `.metadata.annotations.${whole.hashName}`);
        // A writer that has copied it would keep us from ever applying again.
        if (others.length < met.length) await this.takeOffHash(whole);
        conflicts = [...conflicts, ...others];
        if (tries === TRIES.shared || (others.length > 0 && !reduced(step, conflicts)))
          return { action: 'failed', error: classify(error, `Apply ${describeRef(ref)}`), conflicts };
      }
    }
  }

  private async takeOffHash({ step, reader, store, key, hashName }: Task): Promise<void> {
    const uid = store.get(key)?.object.metadata.uid;
    const body = { metadata: { uid, annotations: { [hashName]: null } } };
    await this.props.api.mergePatch(reader.resourceType(step.object), key, body);
    // It is another version now, so what was refused of the last one doesn't count any more.
    await refresh(this.props.api, step.object, reader);
  }

  /** Reports whether the live object still matches the last apply, which was of the same intent. */
  private isCurrent(task: Task, { object, owned }: Entry): boolean {
    const { step, store, intent, hash, hashName } = task;
    if (recordOf(object, hashName)?.hash !== hash) return false;
    const applied = { hash, uid: object.metadata.uid, owned: owned.get(ownerKey(step.fieldManager)) };
    return this.props.lastApplies.isCurrent(task.objectId, step.fieldManager, applied, () =>
      store.paths.expected(intent, applied.owned),
    );
  }

  private async leaveAsIs(task: Task, known: Entry): Promise<StepOutcome> {
    this.fights.checkPeace(fightId(task));
    if (this.left.size > 0) this.left.delete(applyId(task));
    task.store.dropDriftRecord(task.key, known.object.metadata.resourceVersion);
    if (known.sharedWithLegacy ?? known.sharedWithHeld) this.fights.checkPause(fightId(task), task.hash);
    const managers = await this.freeOfLeftovers(task, known);
    if (managers.length === 0) return { action: 'unchanged' };
    this.fights.corrected(fightId(task), known.object, { managers, fields: [] }, task.hash);
    return { action: 'configured' };
  }

  /**
   * Leaves an object that differs from the same intent. Whether another writer has changed fields of ours, and which, is found
   * by one dry run of the apply: the API server may only have recorded something else than what was sent.
   */
  private async leave(task: Task, known: Entry, mode: Exclude<DriftMode, 'correct'>): Promise<StepOutcome> {
    if (mode === 'ignore') return { action: 'unchanged' };
    const { step, reader, store, hash } = task;
    const { fieldManager } = step;
    const { uid } = known.object.metadata;
    const manager = ownerKey(fieldManager);
    const before = this.left.get(applyId(task));
    if (isSameApply(before?.seen, { hash, uid, owned: known.owned.get(manager) }))
      return { action: 'drifted', ...(before && { drift: before.drift }), isKnown: true };
    const live = await refresh(this.props.api, step.object, reader);
    if (!live) return { action: 'skipped', skippedFor: 'changed' };
    const options = { fieldManager, force: true, dryRun: true };
    const owned = store.paths.owned(live).get(manager);
    let drift: Drift = { managers: [], fields: [] };
    try {
      const body = withUid(task.intent, uid);
      const { object } = await this.props.api.apply(reader.resourceType(body), body, options);
      if (store.paths.owned(object).get(manager) === owned) {
        this.rememberApply(task, live);
        return { action: 'unchanged' };
      }
      drift = driftOf(managedFieldsOf(live), object, fieldManager);
    } catch (error) {
      // What can't be applied any more was changed by others all the same.
      if (!(error instanceof ApiError) || !(error.dryRunUnsupported || error.refused)) throw error;
    }
    this.left.set(applyId(task), { seen: { hash, uid, owned }, drift });
    store.dropDriftRecord(task.key, known.object.metadata.resourceVersion);
    return { action: 'drifted', drift };
  }

  private async send(task: Task, known: Entry | undefined): Promise<StepOutcome> {
    const { metrics } = this.props;
    const { controller } = task.reader;
    // A field that this apply drops would stay with a legacy manager forever, so its claim is removed first.
    if (known) await this.freeOf(isLegacy, task, known.sharedWithLegacy);
    let answer: Applied;
    try {
      answer = await this.request(task, known);
    } catch (error) {
      const seen = this.rewritten.has(task.step) ? task.store.get(task.key) : known;
      const failure = await this.judge(task, seen, error);
      metrics.applies.inc({ controller, outcome: failure.reason });
      if (seen && isRecreated(task, failure)) return this.recreate(task, seen);
      throw failure;
    }
    const { object, created } = answer;
    if (task.step.owner && !known && !created)
      await this.ownership.giveBackIfOthersCreated(task, object, task.step.owner);
    const same = object.metadata.resourceVersion === known?.object.metadata.resourceVersion;
    const isCorrection = known && isDrift(task, known);
    const isRepeated = known && this.isRepeated(task, known);
    this.rememberApply(task, object);
    this.refusals.forget(applyId(task));
    metrics.applies.inc({ controller, outcome: created ? 'created' : same ? 'unchanged' : 'changed' });
    if (created) {
      this.fights.wasCreated(fightId(task), object, task.hash);
      return { action: 'created' };
    }
    if (same) return { action: 'unchanged' };
    const drift = isRepeated ? this.correct(task, known, object) : undefined;
    const after = task.store.get(task.key);
    if (after) await this.freeOfLeftovers(task, after, object);
    return isCorrection && drift ? { action: 'corrected', drift } : { action: 'configured' };
  }

  /** Sends one apply, and a second one where the first failed for what is recorded about owners. */
  private async request(task: Task, known: Entry | undefined): Promise<Applied> {
    const { step, reader, store, intent } = task;
    const body = known ? withUid(intent, known.object.metadata.uid) : intent;
    // What isn't known to be ours is never taken by force: others may have created it a moment ago.
    const options = {
      fieldManager: step.fieldManager,
      force: step.owner !== undefined && known !== undefined,
    };
    const type = reader.resourceType(intent);
    const send = async (): Promise<Applied> =>
      store.write(task.key, reader.writer, async () => this.props.api.apply(type, body, options));
    try {
      return await (isAdopted(task, known) ? this.adopt(task, send) : send());
    } catch (error) {
      const undo = step.owner && known && (await this.repair(step, error, reader));
      if (!undo) throw error;
      try {
        return await send();
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
  private async adopt({ step, reader }: Task, send: () => Promise<Applied>): Promise<Applied> {
    const { object, fieldManager } = step;
    let live = await refresh(this.props.api, object, reader);
    if (!live || withWalkableFields(live) !== live) return send();
    // Where nothing is recorded, the first apply has the API server record what is there: one of nothing does.
    if (managedFieldsOf(live).length === 0) {
      const nothing = withUid(withoutContent(object), live.metadata.uid);
      const options = { fieldManager, force: false };
      live = (await this.props.api.apply(reader.resourceType(object), nothing, options)).object;
    }
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
      if (!isRecorded) live = await this.writeManagedFields(step, live, record, reader);
      current = record;
      try {
        return await send();
      } catch (error) {
        failure = error;
        if (!(error instanceof ApiError) || !error.refused || error.wrongUid) break;
      }
    }
    throw failure;
  }

  private rememberApply({ step, store, intent, hash, objectId: id }: Task, object: AnyObject): void {
    const owned = store.ownedOf(object).get(ownerKey(step.fieldManager));
    const applied: LastApply = { hash, uid: object.metadata.uid, owned };
    const expected = store.paths.expectedAfter(object, step.fieldManager, intent, owned);
    this.props.lastApplies.remember(id, step.fieldManager, applied, expected);
  }

  private correct(task: Task, { drifted = [] }: Entry, object: AnyObject): Drift {
    // Who it was is known only where a watch has shown it, and not where it was found in a list.
    const drift =
      drifted.length === 0 ? { managers: [], fields: [] } : driftOf(drifted, object, task.step.fieldManager);
    this.fights.corrected(fightId(task), object, drift, task.hash);
    return drift;
  }

  /**
   * Reports whether an apply repeats the last one of this process: it corrects drift, or another process of ours has applied
   * something else meanwhile. The second is no drift, as where an edit returns to what was there before that process led; but
   * two that lead at once would go on for ever.
   */
  private isRepeated(task: Task, known: Entry): boolean {
    const { uid } = known.object.metadata;
    return isDrift(task, known) || this.props.lastApplies.wasLast(uid, task.step.fieldManager, task.hash);
  }

  /** Deletes and creates an object in which an immutable field has to change, once a dry run of the new one was accepted. */
  private async recreate(task: Task, known: Entry): Promise<StepOutcome> {
    const { object } = known;
    try {
      await checkAcceptable(this.props.api, task);
    } catch (error) {
      throw this.remembered(task, known, classify(error, `Replace ${describeRef(refOf(object))}`));
    }
    const { error } = await deleteObject(this.props.api, object, task.reader);
    if (error) throw error;
    const left = task.store.get(task.key);
    if (left) checkNotTerminating(left.object);
    this.ownership.deleted(task.objectId);
    await this.send(task, undefined);
    return { action: 'recreated' };
  }

  /** Returns what a failure means. One that is for good is remembered. */
  private async judge(task: Task, known: Entry | undefined, error: unknown): Promise<OperatorError> {
    const { step, reader } = task;
    const what = `Apply ${describeRef(refOf(task.intent))}`;
    const failure = this.refusals.judged(classify(error, what), reader.claimsOf(task.intent));
    const isTaken = error instanceof ApiError && !known && error.showsAnother;
    if (error instanceof ApiError && (error.conflict || error.wrongUid || isTaken)) {
      try {
        const live = await refresh(this.props.api, step.object, reader);
        if (live && step.owner && !isOrphan(live, step)) checkOwnership(live, step.owner);
      } catch (conflict) {
        return classify(conflict, what);
      }
      // It is ours after all, so next time it is known, and applied with force.
      if ((error.fieldConflict || isTaken) && step.owner) return asStale(failure);
    }
    return isRecreated(task, failure) ? failure : this.remembered(task, known, failure);
  }

  /** @param known what was judged: it may have changed since */
  private remembered(task: Task, known: Entry | undefined, failure: OperatorError): OperatorError {
    if (failure.retry === 'onChange') this.refusals.remember(applyId(task), refusedOf(task, known), failure);
    return failure;
  }

  /**
   * Applies a field under the manager that it passes to, before its present one lets go of it.
   *
   * **Guarantees.** Nothing is created, and nothing is taken from others. What is remembered of other applies to the same
   * object stays as it is.
   *
   * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
   * @throws OperatorError with `retry: 'now'` where the value has moved since it was read
   */
  private async handOver(step: ApplyStep, reader: StoreReader): Promise<Change['action']> {
    const { object, fieldManager } = step;
    const store = reader.store(object);
    const key = keyOf(object);
    const known = store.get(key)?.object;
    if (!known || known.metadata.deletionTimestamp) return 'skipped';
    const options = { fieldManager, force: false };
    const what = `Hand over fields of ${describeRef(refOf(object))}`;
    try {
      const body = withUid(object, known.metadata.uid);
      const type = reader.resourceType(object);
      const send = async (): Promise<Applied> => this.props.api.apply(type, body, options);
      const { object: answer } = await store.write(key, reader.writer, send);
      return answer.metadata.resourceVersion === known.metadata.resourceVersion ? 'unchanged' : 'configured';
    } catch (error) {
      const failure = classify(error, what);
      if (!(error instanceof ApiError) || (!error.conflict && !error.wrongUid)) throw failure;
      // Read, so that the next plan knows its value.
      await refresh(this.props.api, object, reader);
      throw asStale(failure);
    }
  }

  /**
   * Makes the values that a Secret lacks, or all of them for a rotation.
   *
   * **Guarantees.** A value that was stored is replaced by a rotation alone, once, whatever answer is lost and however late
   * the cache is: a Secret is created only where there is none, and changed only as it was read for that.
   */
  private async generate(task: Task, values: GeneratedValues): Promise<StepOutcome> {
    const { step, reader, store, key, intent } = task;
    const { api, metrics } = this.props;
    const { controller } = reader;
    const type = reader.resourceType(intent);
    let known = store.get(key);
    if (known && step.owner) known = await this.ownership.collect(task, known, step.owner);
    const refusal = this.refusals.find(applyId(task), refusedOf(task, known));
    if (refusal) throw refusal;
    this.fights.checkPause(fightId(task), task.hash);
    const write = async (
      send: () => Promise<AnyObject>,
      outcome: 'created' | 'changed',
    ): Promise<AnyObject> => {
      const { object } = await store.write(key, reader.writer, async () => ({ object: await send() }));
      metrics.applies.inc({ controller, outcome });
      return object;
    };
    const by = { fieldManager: step.fieldManager };
    try {
      if (!known) {
        const made = Object.keys(values);
        if (step.owner) await this.ownership.checkOwner(task, step.owner);
        const object = { ...intent, data: this.made(made, values) };
        await write(async () => api.create(type, object, by), 'created');
        return ofStored({ action: 'created', made }, () => {
          this.fights.wasCreated(fightId(task), step.object, task.hash);
        });
      }
    } catch (error) {
      if (!(error instanceof ApiError) || !error.alreadyExists) throw this.judgedValues(task, known, error);
    }
    const live = await refresh(api, step.object, reader);
    if (!live) throw changedMeanwhile(step.object);
    if (step.owner && !isOrphan(live, step)) checkOwnership(live, step.owner);
    checkNotTerminating(live);
    const body = lacking(live, task, values);
    if (!body) return { action: 'unchanged' };
    // Whether a Secret was restored is judged by the plan, of the version that it has seen.
    const isSeen = known?.object.metadata.resourceVersion === live.metadata.resourceVersion;
    if (!body.drift && !isSeen) throw changedMeanwhile(step.object);
    try {
      const data = this.made(body.names, values);
      const stored = await write(
        async () => api.mergePatch(type, key, { ...body.patch, data }, by),
        'changed',
      );
      if (lacking(stored, task, values)) throw notKept(stored);
      const { drift, names: made } = body;
      return ofStored({ action: 'configured', made }, () => {
        if (drift) this.fights.corrected(fightId(task), step.object, drift, task.hash);
      });
    } catch (error) {
      if (!(error instanceof ApiError) || (!error.conflict && !error.objectIsGone))
        throw this.judgedValues(task, store.get(key), error);
      await refresh(api, step.object, reader);
      throw changedMeanwhile(step.object, error);
    }
  }

  private made(names: readonly string[], values: GeneratedValues): Readonly<Record<string, string>> {
    const random = this.props.placeholders ? () => 0 : (below: number): number => randomInt(below);
    const encoded = (name: string): string =>
      Buffer.from(makeValue(values[name] ?? {}, random)).toString('base64');
    return Object.fromEntries(names.map((name) => [name, encoded(name)]));
  }

  private judgedValues(task: Task, known: Entry | undefined, error: unknown): OperatorError {
    const failure = classify(error, `Make the values of ${describeRef(refOf(task.intent))}`);
    this.props.metrics.applies.inc({ controller: task.reader.controller, outcome: failure.reason });
    return this.remembered(task, known, failure);
  }

  /** Takes what was applied from leftovers, also from those of an autoscaler, which are obsolete after the apply. */
  private async freeOfLeftovers(task: Task, known: Entry, seen?: AnyObject): Promise<readonly string[]> {
    const sharing = [...(known.sharedWithLegacy ?? []), ...(known.sharedWithHeld ?? [])];
    return this.freeOf((entry, own) => isLegacy(entry) || isHeld(entry, own), task, sharing, seen);
  }

  /** Makes what was applied last ours alone, as far as leftovers own it too. @returns the managers that it was taken from */
  private async freeOf(
    isLeftOver: IsLeftOver,
    { step, reader }: Task,
    sharing: readonly string[] = [],
    seen?: AnyObject,
  ): Promise<readonly string[]> {
    if (!step.owner || !sharing.includes(step.fieldManager)) return [];
    const live = seen ?? (await refresh(this.props.api, step.object, reader));
    const left = live && withoutOwners(isLeftOver, live, step.fieldManager);
    if (!left) return [];
    await this.writeManagedFields(step, live, left, reader);
    const taken = managedFieldsOf(live).filter((entry) => isLeftOver(entry, step.fieldManager));
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
  private async repair(
    step: ApplyStep,
    error: unknown,
    reader: StoreReader,
  ): Promise<(() => Promise<unknown>) | undefined> {
    if (!(error instanceof ApiError)) return undefined;
    const { duplicateValue, fieldNotInSchema, refusedFields } = error;
    const { fieldManager, object } = step;
    const beside = refusedFields.every((path) => fieldAt(object, path) === undefined) ? refusedFields : [];
    if (!duplicateValue && !fieldNotInSchema && beside.length === 0) return undefined;
    const live = await refresh(this.props.api, object, reader);
    if (!live || withWalkableFields(live) !== live) return undefined;
    const write = async (fields: readonly ManagedFieldsEntry[]) => {
      const repaired = await this.writeManagedFields(step, live, fields, reader);
      return async () => this.writeManagedFields(step, repaired, managedFieldsOf(live), reader);
    };
    if (!fieldNotInSchema) {
      const items = duplicateValue
        ? itemsInTheWay(live, object, duplicateValue.field, duplicateValue.value)
        : beside.every((path) => isUnapplied(live, path))
          ? beside
          : [];
      return items.length === 0 ? undefined : write(withItemsTaken(live, fieldManager, items));
    }
    const own = managedFieldsOf(live).find((entry) => isAppliedBy(fieldManager, entry));
    if (!own || own.apiVersion === object.apiVersion) return undefined;
    return write(withApiVersion(live, fieldManager, object.apiVersion));
  }

  /** Writes nothing but `metadata.managedFields`, and only as it was seen. */
  private async writeManagedFields(
    step: ApplyStep,
    live: AnyObject,
    managedFields: readonly ManagedFieldsEntry[],
    reader: StoreReader,
  ): Promise<AnyObject> {
    const { object, fieldManager } = step;
    const { api } = this.props;
    const key = keyOf(live);
    this.rewritten.add(step);
    const patch = [
      { op: 'test', path: '/metadata/resourceVersion', value: live.metadata.resourceVersion },
      { op: 'replace', path: '/metadata/managedFields', value: managedFields },
    ] as const;
    try {
      const send = async () => ({
        object: await api.patch(reader.resourceType(object), key, patch, fieldManager),
      });
      return (await reader.store(object).write(key, reader.writer, send)).object;
    } catch (error) {
      if (!(error instanceof ApiError) || error.denied || ![404, 409, 422].includes(error.code)) throw error;
      await refresh(api, object, reader);
      throw changedMeanwhile(object, error);
    }
  }
}

function changedMeanwhile(object: AnyObject, cause?: unknown): OperatorError {
  const message = `${describeRef(refOf(object))} changed since it was read`;
  return new OperatorError({ reason: 'Conflict', message, retry: 'now', cause });
}

/** Returns the outcome of values that were stored, also where that makes the object contested: the event names them. */
function ofStored(outcome: StepOutcome, count: () => void): StepOutcome {
  try {
    count();
    return outcome;
  } catch (error) {
    return { ...outcome, action: 'failed', error: classify(error, '') };
  }
}

function notKept(secret: AnyObject): OperatorError {
  const what = `values, owner, labels or annotation ${GENERATED_ANNOTATION}`;
  const message = `${describeRef(refOf(secret))} was stored without all of its ${what}, as by a mutating webhook; exclude the Secret from the webhook`;
  return new OperatorError({ reason: 'Refused', message });
}

/** Returns which values a Secret lacks, and the patch of its metadata; nothing where all is as it should be. */
function lacking(
  live: AnyObject,
  { step, intent }: Task,
  values: GeneratedValues,
): { readonly names: readonly string[]; readonly patch: object; readonly drift?: Drift } | undefined {
  const { apiVersion, kind, metadata } = live;
  const { namespace, name, uid, resourceVersion, labels = {}, ownerReferences = [] } = metadata;
  const [was, wanted] = [live, intent].map((object) => object.metadata.annotations?.[GENERATED_ANNOTATION]);
  // Values that were there before ours are kept until the next rotation.
  const isRotation = was !== undefined && !isMadeFor(wanted, was);
  const present = presentKeys(values, isMap(live.data) ? live.data : {});
  const names = Object.keys(values).filter((name) => isRotation || !present.includes(name));
  const isOwned = controllerOf(live)?.uid === step.owner?.uid;
  const wantedLabels = Object.entries(intent.metadata.labels ?? {});
  const isLabelled = wantedLabels.every(([label, text]) => labels[label] === text);
  const fields = [
    ...names.map((name) => `.data.${name}`),
    ...(isOwned ? [] : ['.metadata.ownerReferences']),
    ...(isLabelled ? [] : ['.metadata.labels']),
    ...(was === undefined ? [`.metadata.annotations.${GENERATED_ANNOTATION}`] : []),
  ];
  if (fields.length === 0) return undefined;
  const owners = [...ownerReferences, ...(isOwned || !step.owner ? [] : [step.owner])];
  const annotations = {
    ...intent.metadata.annotations,
    ...(isHandedOver(live, step.owner) && { [ADOPT_BY_ANNOTATION]: null }),
    [GENERATED_ANNOTATION]: isRotation ? rotationRecord(wanted ?? '', was) : (was ?? wanted ?? ''),
  };
  const changes = { labels: intent.metadata.labels, annotations, ownerReferences: owners };
  // Refused with a conflict where it has changed since.
  const identity = { namespace, name, uid, resourceVersion };
  const patch = { apiVersion, kind, metadata: { ...identity, ...changes } };
  return { names, patch, ...(!isRotation && { drift: { managers: [], fields } }) };
}

/**
 * Reports whether an object differs from what was applied to it last: the intent is that of the hash on the object. A writer
 * that removes the hash leaves our other fields.
 * @param isBareOurs an object of which we own fields, and that has lost the hash, counts too
 */
function isDrift(task: Task, known: Entry, isBareOurs = true): boolean {
  const { hash, hashName, step } = task;
  const last = recordOf(known.object, hashName)?.hash;
  const isOurs = isBareOurs && known.owned.has(ownerKey(step.fieldManager)) && !isAdopted(task, known);
  return last === hash || (last === undefined && isOurs);
}

/** An object that was created again is the same one, for as long as its owner is. */
function fightKey(id: string, ownerUid = ''): string {
  return `${id} ${ownerUid}`;
}

function fightId({ step, objectId: id }: Task): string {
  return fightKey(id, step.owner?.uid);
}

function applyId({ step, objectId: id }: Task): string {
  return `${step.fieldManager} ${id}`;
}

function refusedOf(task: Task, known: Entry | undefined): Refused {
  const { hash, step } = task;
  return { hash, owner: step.owner?.uid, inTheWay: known?.object, claims: task.reader.claimsOf(task.intent) };
}

function isAdopted({ step: { owner } }: Task, known: Entry | undefined): boolean {
  return known !== undefined && isHandedOver(known.object, owner);
}

/** Reports whether a failure leads to deleting the object, and creating it again. */
function isRecreated({ step }: Task, { reason }: OperatorError): boolean {
  return step.recreate === true && step.owner !== undefined && reason === 'ImmutableField';
}

/** The view was stale: tried again at once. */
function asStale({ reason, message, cause }: OperatorError): OperatorError {
  return new OperatorError({ reason, message, cause, retry: 'now' });
}

function targetMissing(ref: ObjectRef): OperatorError {
  const message = `${describeRef(ref)} isn't there, and others have to create it`;
  return new OperatorError({ reason: 'TargetMissing', message });
}

/** Returns what the plan wants to apply instead, where others own fields. */
function reduced(step: ApplyStep, conflicts: readonly FieldConflict[]): AnyObject | undefined {
  return fromPlan(refOf(step.object), () => step.shared?.onConflict?.(conflicts));
}

/**
 * Calls a function of a plan for an object.
 * @throws OperatorError that names a bug of the kind, where it throws or returns another object
 */
export function fromPlan(ref: ObjectRef, make: () => AnyObject | undefined): AnyObject | undefined {
  try {
    const object = make();
    if (object && objectId(object) !== objectId(ref))
      throw new TypeError(`it gave ${describeRef(refOf(object))}`);
    return object;
  } catch (cause) {
    const message = `What to apply of ${describeRef(ref)} can't be worked out: ${messageOf(cause)}`;
    throw new OperatorError({ reason: 'ReconcileFailed', message, retry: 'backoff', isBug: true, cause });
  }
}

/**
 * Asks the API server whether it would take an object as a new one, while the one in whose place it comes is still there.
 *
 * A dry run of a creation passes admission and validation first, and only then meets the object of that name: so
 * `AlreadyExists` says that nothing else is wrong. What the present object itself holds, such as a node port that both name
 * or the last place in a quota, counts as an objection.
 * @throws ApiError with what else is wrong
 */
async function checkAcceptable(api: Api, { intent, step, reader }: Task): Promise<void> {
  try {
    await api.tryCreate(reader.resourceType(intent), intent, step.fieldManager);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.alreadyExists) throw error;
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { Change, ChangeSet } from '../../contract/change.js';
import type { Controller, TypeRef, Watch } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import { describeRef, objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { Plan } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import { setLatest } from '../../values/latest.js';
import { thrownReading } from '../../values/origin.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { ApiError, askedDelay, isThrottled, mostPause } from '../../client/api-error.js';
import type { Clock } from '../../client/clock.js';
import { REQUEUE } from '../../client/retry.js';
import type { PlanOutcome, StatusPolicy } from '../plan/interpret.js';
import { refusalMilliseconds } from '../steps/memory.js';
import type { Memory } from '../steps/memory.js';
import { sameButVersion } from '../watch/cache.js';
import { KIND_NOT_INSTALLED, mayBeDoubtful, textsOf } from '../watch/reader.js';
import type { ChangeSource } from '../watch/cache.js';
import type { StoreReader } from '../watch/reader.js';
import type { Lane, Queue } from './work-queue.js';

/** The reason of a reconcile that took too long. */
export const TIMEOUT_REASON = 'ReconcileTimeout';

const LACKING_KIND: ReadonlySet<string> = new Set(['KindNotServed', KIND_NOT_INSTALLED]);
const UNREACHED: ReadonlySet<string> = new Set(['Unreachable', 'ServerOverloaded']);

/** Number of keys within a second that are a burst: far more than people change, far fewer than a rollout of everything. */
const BURST_KEYS = 32;
const BURST_MILLISECONDS = 1_000;

/** Delay of a status: a Deployment that rolls changes its own many times a second, and each may cost a write of ours. */
const STATUS_DELAY_MILLISECONDS = 100;
/** Delay of a status in a burst: statuses would delay what is to be created, and are fewer when they are written later. */
const STATUS_DELAY_IN_A_BURST_MILLISECONDS = 1_000;

export interface WakesProps {
  readonly controller: Controller;
  readonly reader: StoreReader;
  readonly queue: Queue;
  readonly workers: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly memory: Pick<Memory, 'gone' | 'refusals'>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** A plan, and the time that it was made for. */
export interface MadePlan {
  readonly plan: Plan;
  readonly plannedFor: Date;
  /** The same by the monotonic clock. */
  readonly plannedAt: number;
}

/** State of a key that fails. */
interface Failing {
  /** Times in a row that it was taken again at once. */
  immediate: number;
  /** Times in a row that an overloaded server has refused it, or gave no answer. */
  throttled: number;
  /** Last line that was logged, so that a failure that stays the same is logged once. */
  message?: string;
}

/**
 * Decides when each key of a controller is taken: which keys a change concerns, and how soon, and when a key is taken again
 * after a reconcile; see docs/engine.md.
 *
 * **Guarantees.** The time that a plan asks for is met at the latest, whether it has failed or not. After a failure the
 * pause is at least what the errors have asked for. `Retry-After` holds for its request, at the gate, and not for the key.
 */
export class Wakes implements StatusPolicy {
  /** Keys that changes of an object, or the release of a claim, wake, by its ID; and the IDs by key. */
  private readonly keysByBlocker = new Map<string, Set<string>>();
  private readonly blockersByKey = new Map<string, readonly string[]>();
  /** Times at which the last keys were changed, by the monotonic clock, in that order. */
  private readonly changedAt = new Map<string, number>();
  /** Since when statuses have been deferred, by key. */
  private readonly deferredSince = new Map<string, number>();
  private readonly failing = new Map<string, Failing>();
  /** Keys whose last failure was that a kind isn't served. */
  private readonly lackingKind = new Set<string>();
  /** Keys whose last failure was that the server gave no answer, or couldn't serve the request. */
  private readonly unreached = new Set<string>();
  /** Time at which a kind was served last, or the server back, by the monotonic clock. */
  private betterAt = -Infinity;

  constructor(private readonly props: WakesProps) {
    const { controller, reader } = props;
    for (const watch of controller.watches) reader.storeOf(watch).onChange(this.changed.bind(this, watch));
  }

  /** Something that no watch shows has changed: all keys are taken again, behind those with changes. */
  all(): void {
    const { controller, reader, queue } = this.props;
    const keys = new Set<string>();
    for (const watch of controller.watches)
      for (const object of reader.storeOf(watch).objects())
        if (reader.belongsTo(watch, object)) this.collect(keys, watch, object, []);
    for (const key of keys) queue.add(key, 'initial');
  }

  /** A complete list of a kind has come: keys that have lacked one are taken again, as if they had never failed. */
  kindServed(type: TypeRef): void {
    if (this.watchesOf(type).length > 0) this.takeAgain(this.lackingKind, 'initial');
  }

  /**
   * Holds the queue while it is unknown what there is of a kind. Of an optional kind whose objects are its own, only plans that name an
   * object of it are withheld, when they are carried out.
   */
  setUncertain(type: TypeRef, reason: string, isDoubtful: boolean): void {
    const depends = this.watchesOf(type).some((watch) => !mayBeDoubtful(watch));
    if (depends && isDoubtful) this.props.queue.hold(reason);
    else this.props.queue.release(reason);
  }

  /** While the server can't be reached nothing is begun; what it has failed doesn't wait for the end of its pause when it is back. */
  serverUnreachable(isUnreachable: boolean): void {
    const { queue } = this.props;
    if (isUnreachable) {
      queue.hold('server');
      return;
    }
    this.takeAgain(this.unreached, 'child');
    queue.release('server');
  }

  /**
   * Has the key woken by changes of the objects that may be in the way of its plan, and by the release of what they claim: no watch
   * need map one of another owner to the key. A foreign step's is mapped.
   * @param changes where it was carried out: then, of the steps that have failed, or weren't tried, alone
   */
  waitFor(key: string, { steps }: Plan, changes?: ChangeSet): void {
    const ids: string[] = [];
    let index = 0;
    for (const step of steps) {
      if (step.do === 'barrier') continue;
      const { action, skippedFor, waitsFor } = changes?.[index++] ?? { action: 'failed' };
      const isDone = action === 'skipped' ? Boolean(skippedFor ?? waitsFor) : action !== 'failed';
      if (!isDone && !step.do.includes('/'))
        ids.push(objectId(step.object), ...this.props.reader.claimsOf(step.object));
    }
    for (const id of this.blockersByKey.get(key) ?? []) {
      const keys = this.keysByBlocker.get(id);
      if (keys?.delete(key) && keys.size === 0) this.keysByBlocker.delete(id);
    }
    this.blockersByKey.delete(key);
    if (ids.length > 0) this.blockersByKey.set(key, ids);
    for (const id of ids) this.keysByBlocker.set(id, (this.keysByBlocker.get(id) ?? new Set()).add(key));
  }

  /**
   * Reports whether a status may be deferred: in a burst, children come first. A user waits for them all, and a status that is
   * written once things have calmed down is one write instead of several. So does the status of a custom resource that has been
   * edited meanwhile: it is out of date, and the edit would wait for it. A key that was taken for its status gets it, and so does
   * one whose status has been deferred for as long as it may.
   */
  mayDeferStatus(key: string): boolean {
    const { queue, workers } = this.props;
    if (queue.laneOf(key) === 'status' || this.deferrableFor(key) === 0) return false;
    return queue.isToBeTaken(key, 'change') || this.isBurst || queue.urgentDepth > workers;
  }

  /** Reports whether these failures usually pass by themselves when the key is taken again soon. */
  isTransient(key: string, errors: readonly OperatorError[]): boolean {
    return (
      this.isStaleView(key, errors) ||
      ((this.failing.get(key)?.throttled ?? 0) < REQUEUE.unreportedFailures &&
        errors.every(
          (error) => isThrottledOrUnanswered(error) && askedDelay(error.cause) <= REQUEUE.unreportedPause,
        ))
    );
  }

  /**
   * The plan was carried out, or as much of it as could be.
   * @param fields of log lines
   */
  reconciled(
    key: string,
    { plan, plannedFor, plannedAt }: MadePlan,
    outcome: PlanOutcome,
    fields: object,
  ): void {
    const { controller, clock, metrics, queue } = this.props;
    const { changes, statusChanges, statusDeferred } = outcome;
    const { next } = outcome.conclusion;
    // What a kind may have got wrong comes before anything is forgotten.
    const requeueIn =
      next === 'now' || !next ? undefined : requeueDelay(next, plannedFor, clock.monotonic() - plannedAt);
    // Failures that hold for many objects, such as a missing right, are one.
    const errors = new Map<string, OperatorError>();
    const skipped = new Set<string | undefined>();
    const all: readonly Partial<Change>[] = [...changes, ...statusChanges];
    for (const { error } of [plan, outcome, ...all]) if (error) errors.set(error.message, error);
    for (const { skippedFor } of changes) skipped.add(skippedFor);
    let result = requeueIn === undefined ? 'success' : 'requeue_after';
    if (errors.size > 0) {
      result = this.failed(key, [...errors.values()], plannedAt, fields);
      // Nothing else may ever show it.
      if (skipped.has('changed')) queue.addAfter(key, REQUEUE.changed);
    } else {
      this.lackingKind.delete(key);
      this.unreached.delete(key);
      if (skipped.has('changed')) {
        if (!this.retryAtOnce(key)) queue.addRateLimited(key);
        result = 'requeue';
      } else {
        queue.forget(key);
        this.failing.delete(key);
      }
    }
    metrics.reconciles.inc({ controller: controller.name, result });
    if (requeueIn !== undefined) queue.addAfter(key, requeueIn);
    const isPaced = skipped.has('paced');
    if (next === 'now' || (isPaced && changes.some(({ action }) => action === 'deleted')))
      queue.addAgain(key);
    // The pace is so slow that it wasn't even its turn.
    else if (isPaced) queue.addAfter(key, REQUEUE.paced);
    if (!statusDeferred) this.deferredSince.delete(key);
    if (statusDeferred !== 'busy') return;
    if (!this.deferredSince.has(key)) this.deferredSince.set(key, clock.monotonic());
    queue.addWithin(key, this.deferrableFor(key) ?? 0, 'status');
  }

  /** The kind, or the engine itself, has thrown. Returns the pause until the next try, in milliseconds. */
  threw(key: string): number {
    const { metrics, queue } = this.props;
    const { name: controller } = this.props.controller;
    const pause = queue.addRateLimited(key);
    metrics.reconcilePanics.inc({ controller });
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    metrics.queueRetries.inc({ name: controller, controller });
    return pause;
  }

  private watchesOf(type: TypeRef): Watch[] {
    return this.props.controller.watches.filter((watch) => groupKind(watch.type) === groupKind(type));
  }

  /** A store has changed. */
  private changed(
    watch: Watch,
    before: AnyObject | undefined,
    after: AnyObject | undefined,
    { list, writers = [] }: ChangeSource,
  ): void {
    const { queue, controller, reader, memory, clock } = this.props;
    if (before && !after && !watch.readOnly) memory.gone(before);
    const object = after ?? before;
    if (!object || !reader.belongsTo(watch, object)) return;
    if (watch.readOnly && sameButVersion(before, after)) return;
    const [first] = controller.watches;
    const isCustomResource = watch === first;
    const isSameIntent = hasSameIntent(before, after);
    // With an equal status, something has changed that isn't kept, e.g. the owner of a field.
    const isStatus = isSameIntent && !isDeepStrictEqual(before?.status, after?.status);
    const canWait = !list && (isStatus || (!isCustomResource && watch.readOnly === true));
    const lane = list ? 'initial' : canWait ? 'status' : isCustomResource ? 'change' : 'child';
    // Each key once: an idle worker takes it at the first add.
    const keys = new Set<string>();
    const resources = first && watch.concerns ? reader.storeOf(first).objects() : [];
    if (before) this.collect(keys, watch, before, resources);
    if (after) this.collect(keys, watch, after, resources);
    if (before && watch.claims) this.release(keys, watch, before, after);
    const mayBeOwn = after && !list && (isStatus || !isCustomResource);
    const settle = list || (isStatus && isCustomResource) ? undefined : controller.settle;
    const writing = new Set<string | undefined>();
    if (mayBeOwn) for (const writer of writers) if (writer.controller === controller) writing.add(writer.key);
    for (const key of keys) {
      const isOwn = writing.has(key);
      // Else a message that is new each time would loop.
      if (isOwn && isCustomResource) continue;
      if (settle) queue.addDebounced(key, settle, lane);
      else if (isOwn) queue.addWithin(key, REQUEUE.ownWrite, 'status');
      else if (canWait)
        queue.addWithin(key, isCustomResource ? REQUEUE.foreignStatus : this.statusDelay, lane);
      else queue.add(key, lane);
      // One key that changes all the time is no burst.
      if (!canWait && !isOwn && !list) setLatest(this.changedAt, key, clock.monotonic(), BURST_KEYS);
    }
  }

  /** @param resources those that the object may concern */
  private collect(keys: Set<string>, watch: Watch, object: AnyObject, resources: readonly AnyObject[]): void {
    for (const key of this.textsFrom(watch, 'mapsTo', object)) keys.add(key);
    const [first = watch] = this.props.controller.watches;
    for (const resource of resources)
      if (this.isConcerned(watch, object, resource))
        for (const key of this.textsFrom(first, 'mapsTo', resource)) keys.add(key);
    for (const key of this.keysByBlocker.get(objectId(object)) ?? []) keys.add(key);
  }

  private isConcerned(watch: Watch, object: AnyObject, resource: AnyObject): boolean {
    try {
      return watch.concerns?.(object, resource) ?? false;
    } catch (error) {
      this.reportBug([resource, object], 'matched with what it may be concerned by', error);
      return false;
    }
  }

  /** Calls a function of the kind for one object: what it throws keeps no other from being looked at. */
  private textsFrom(watch: Watch, name: 'mapsTo' | 'claims', object: AnyObject): readonly string[] {
    try {
      return textsOf(name, name === 'claims' ? (watch.claims?.(object) ?? []) : watch.mapsTo(object));
    } catch (error) {
      this.reportBug([object], name === 'mapsTo' ? 'mapped' : 'asked for claims', error);
      return [];
    }
  }

  /** @param read objects that the function reads, the one that is named first */
  private reportBug(read: readonly [AnyObject, ...AnyObject[]], what: string, error: unknown): void {
    const message = `${describeRef(read[0])} can't be ${what}, which is a bug of the kind`;
    this.props.log.error({ err: thrownReading(read, error) }, message);
  }

  /** Takes the keys that wait for what an object claims no more. */
  private release(keys: Set<string>, watch: Watch, before: AnyObject, after: AnyObject | undefined): void {
    const has = after ? this.textsFrom(watch, 'claims', after) : [];
    const released = this.textsFrom(watch, 'claims', before).filter((claim) => !has.includes(claim));
    if (released.length > 0) this.props.memory.refusals.release(released);
    for (const claim of released) for (const key of this.keysByBlocker.get(claim) ?? []) keys.add(key);
  }

  /** Whether more is to be created or corrected than usual. */
  private get isBurst(): boolean {
    if (this.changedAt.size < BURST_KEYS) return false;
    const [oldest = -Infinity] = this.changedAt.values();
    return this.props.clock.monotonic() - oldest < BURST_MILLISECONDS;
  }

  private get statusDelay(): number {
    return this.isBurst ? STATUS_DELAY_IN_A_BURST_MILLISECONDS : STATUS_DELAY_MILLISECONDS;
  }

  /** Returns for how much longer the status of a key may be deferred, in milliseconds; undefined where it isn't deferred. */
  private deferrableFor(key: string): number | undefined {
    const since = this.deferredSince.get(key);
    if (since === undefined) return undefined;
    return Math.max(0, since + this.statusDelay - this.props.clock.monotonic());
  }

  /** Plans the next try, logs failures and counts them. Returns the result of the reconcile, for metrics. */
  private failed(key: string, errors: readonly OperatorError[], plannedAt: number, fields: object): string {
    const { controller, queue } = this.props;
    const pause = this.scheduleRetry(key, errors);
    if (pause === 0)
      this.props.log.debug(
        { ...fields, errors: errors.map(({ message }) => message) },
        'the view was stale, retrying',
      );
    else this.reportFailure(controller.name, key, errors, pause, fields);
    const lacksKind = errors.some(({ reason }) => LACKING_KIND.has(reason));
    const isUnreached = errors.some(({ reason }) => UNREACHED.has(reason));
    this.lackingKind[lacksKind ? 'add' : 'delete'](key);
    this.unreached[isUnreached ? 'add' : 'delete'](key);
    // The kind or the server was back before the plan was carried out, and won't wake the key again.
    if ((lacksKind || isUnreached) && this.betterAt > plannedAt) queue.addAgain(key);
    return pause === 0 ? 'requeue' : 'error';
  }

  private reportFailure(
    controller: string,
    key: string,
    errors: readonly OperatorError[],
    pause: number,
    fields: object,
  ): void {
    const { metrics, log } = this.props;
    metrics.reconcileErrors.inc({ controller });
    if (errors.some(({ retry }) => retry === 'onChange')) metrics.terminalReconcileErrors.inc({ controller });
    if (errors.some(({ isBug }) => isBug)) metrics.reconcilePanics.inc({ controller });
    if (errors.some(({ reason }) => reason === TIMEOUT_REASON)) metrics.reconcileTimeouts.inc({ controller });
    metrics.queueRetries.inc({ name: controller, controller });
    const message = errors.map((error) => error.message).join('; ');
    const failing = this.failingState(key);
    const level = failing.message === message ? 'debug' : 'warn';
    failing.message = message;
    const retryMilliseconds = Math.round(pause);
    for (const { reason, message: error, isBug, cause } of errors) {
      const stack = isBug ? { err: cause } : {};
      log[level]({ ...fields, reason, error, retryMilliseconds, ...stack }, 'reconcile failed');
    }
  }

  private failingState(key: string): Failing {
    const known = this.failing.get(key) ?? { immediate: 0, throttled: 0 };
    this.failing.set(key, known);
    return known;
  }

  /** Reports whether the key is taken again at once after these failures. */
  private isStaleView(key: string, errors: readonly OperatorError[]): boolean {
    return (
      (this.failing.get(key)?.immediate ?? 0) < REQUEUE.immediateTries &&
      errors.every((error) => error.retry === 'now' && pauseAskedBy(error) === 0)
    );
  }

  /** Takes the key again at once, and reports whether it does: not where that hasn't helped several times in a row. */
  private retryAtOnce(key: string): boolean {
    if (this.failingState(key).immediate++ >= REQUEUE.immediateTries) return false;
    this.props.queue.addAgain(key);
    return true;
  }

  private takeAgain(keys: Set<string>, lane: Lane): void {
    const { queue, clock } = this.props;
    this.betterAt = clock.monotonic();
    for (const key of keys) {
      queue.forget(key);
      queue.add(key, lane);
    }
    keys.clear();
  }

  /** Plans the next try. Returns the pause in milliseconds. */
  private scheduleRetry(key: string, errors: readonly OperatorError[]): number {
    const { queue } = this.props;
    if (this.isStaleView(key, errors) && this.retryAtOnce(key)) return 0;
    const failing = this.failingState(key);
    failing.immediate = 0;
    const isNews = errors.some(({ cause }) => !(cause instanceof ApiError && cause.isRepeated));
    if (!errors.every(isThrottledOrUnanswered)) failing.throttled = 0;
    else if (isNews) failing.throttled++;
    const paused = errors.filter(({ cause }) => askedDelay(cause) > 0);
    const others = errors.filter((error) => !paused.includes(error));
    const pause = others.length > 0 ? this.backOff(key, others) : Infinity;
    // A retry would send these again too, so the longer backoff decides.
    if (others.some(({ retry }) => retry !== 'onChange') || paused.length === 0) return pause;
    // No failure that backs off: the pause is known. The gate holds what is refused for longer; all else of the plan goes on.
    const soonest = Math.max(REQUEUE.refused, Math.min(...paused.map(pauseAskedBy)));
    queue.addAfter(key, soonest);
    return Math.min(pause, soonest);
  }

  private backOff(key: string, errors: readonly OperatorError[]): number {
    const { queue, random } = this.props;
    const asked = Math.max(...errors.map(pauseAskedBy));
    const reasons = errors.map(({ reason }) => reason);
    if (errors.some(({ retry }) => retry !== 'onChange'))
      return queue.addRateLimited(key, asked, mostPause(reasons));
    const pause = Math.min(refusalMilliseconds(reasons) * (1 + random() / 2), mostPause(reasons));
    const delay = Math.max(pause, asked);
    queue.addAfter(key, delay);
    return delay;
  }
}

/**
 * Reports whether an object asks for the same as before, its status aside. Its generation shows, so of an object that has
 * none this can't be known; where another schema of the CRD changes the spec, the generation stays.
 */
function hasSameIntent(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  if (!before || after?.metadata.generation === undefined) return false;
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.generation === b.generation &&
    a.uid === b.uid &&
    a.deletionTimestamp === b.deletionTimestamp &&
    isDeepStrictEqual(before.spec, after.spec) &&
    isDeepStrictEqual(a.labels, b.labels) &&
    isDeepStrictEqual(a.annotations, b.annotations) &&
    isDeepStrictEqual(a.ownerReferences, b.ownerReferences)
  );
}

/** Reports whether the server had too much to do for the request, or gave no answer, as while it is restarted. */
function isThrottledOrUnanswered({ cause, reason }: OperatorError): boolean {
  return isThrottled(cause) || reason === 'Unreachable';
}

function pauseAskedBy({ retryAfterMilliseconds, cause }: OperatorError): number {
  return Math.max(retryAfterMilliseconds, askedDelay(cause));
}

/** A time that is past is met after a pause, so that a kind that always gives one doesn't spin; one that came meanwhile is met soon. */
function requeueDelay(at: Date, plannedFor: Date, passed: number): number {
  const delay = at.getTime() - plannedFor.getTime();
  if (Number.isNaN(delay)) throw new TypeError('next is not a valid date');
  if (delay <= 0) return REQUEUE.past;
  return delay > passed ? delay - passed : REQUEUE.missed;
}

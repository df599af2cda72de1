import type { OperatorError } from '../../contract/error.js';
import type { Logger, LogLevel } from '../../telemetry/logger.js';
import type { Plan } from '../../contract/plan.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { ApiError, askedDelay, isThrottled, mostPause } from '../../client/api-error.js';
import { refusalMilliseconds } from '../steps/memory.js';
import type { PlanOutcome } from '../plan/interpret.js';
import type { Clock } from '../../client/clock.js';
import { KIND_NOT_INSTALLED } from '../watch/installed.js';
import type { Lane, Queue, QueueMetrics } from './work-queue.js';
import { REQUEUE } from '../../client/retry.js';

/** Log of one reconcile. */
interface LeveledLog {
  /** Returns nothing where lines of this level aren't written. */
  at(level: LogLevel): Logger | undefined;
}

/** The reason of a reconcile that took too long. */
export const TIMEOUT_REASON = 'ReconcileTimeout';
/** The reason of one that was ended because this process may no longer write. */
export const INTERRUPTED_REASON = 'Interrupted';

const LACKING_KIND: ReadonlySet<string> = new Set(['KindNotServed', KIND_NOT_INSTALLED]);

/** A plan, and the time that it was made for. */
export interface MadePlan {
  readonly plan: Plan;
  readonly plannedFor: Date;
  /** The same by the monotonic clock. */
  readonly plannedAt: number;
}

export interface RequeueProps {
  readonly controller: string;
  readonly queue: Queue;
  readonly queueMetrics: QueueMetrics;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Metrics;
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
 * Decides, after a reconcile, when its key is taken again, and logs why.
 *
 * **Guarantees.** The time that a plan asks for is met at the latest, whether it has failed or not. After a failure the
 * pause is at least what the errors have asked for. `Retry-After` holds for its request, at the gate, and not for the key.
 */
export class Requeue {
  private readonly failing = new Map<string, Failing>();
  /** Keys whose last failure was that a kind isn't served. */
  private readonly lackingKind = new Set<string>();
  /** Keys whose last failure was that the server gave no answer, or couldn't serve the request. */
  private readonly unreached = new Set<string>();
  /** Time at which a kind was served last, or the server back, by the monotonic clock. */
  private betterAt = -Infinity;

  constructor(private readonly props: RequeueProps) {}

  /** A kind is served, maybe since a moment ago: keys that have lacked one are taken again, as if they had never failed. */
  kindServed(): void {
    this.takeAgain(this.lackingKind, 'initial');
  }

  /** The server is back: what it has failed doesn't wait for the end of its pause. */
  serverReached(): void {
    this.takeAgain(this.unreached, 'child');
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

  /** The plan was carried out, or as much of it as could be. */
  afterReconcile(
    key: string,
    { plan, plannedFor, plannedAt }: MadePlan,
    outcome: PlanOutcome,
    log: LeveledLog,
  ): void {
    const { controller, clock, metrics, queue } = this.props;
    const { changes, statusChanges, conclusion, error } = outcome;
    const skipped = new Set(changes.map(({ skippedFor }) => skippedFor));
    const { next } = conclusion;
    // What a kind may have got wrong comes before anything is forgotten.
    const requeueIn =
      next === 'now' ? undefined : requeueDelay(next, plannedFor, clock.monotonic() - plannedAt);
    const hasChanged = skipped.has('changed');
    const errors = distinct([plan.error, error, ...[...changes, ...statusChanges].map(({ error }) => error)]);
    const lacksKind = errors.some(({ reason }) => LACKING_KIND.has(reason));
    const isUnreached = errors.some(
      ({ reason }) => reason === 'Unreachable' || reason === 'ServerOverloaded',
    );
    note(this.lackingKind, key, lacksKind);
    note(this.unreached, key, isUnreached);
    if (errors.length > 0) {
      this.reportFailure(key, errors, this.scheduleRetry(key, errors), log);
      // The kind or the server was back before the plan was carried out, and won't wake the key again.
      if ((lacksKind || isUnreached) && this.betterAt > plannedAt) queue.addAgain(key);
      // Nothing else may ever show it.
      if (hasChanged) queue.addAfter(key, REQUEUE.changed);
    } else if (hasChanged) {
      if (!this.retryAtOnce(key)) queue.addRateLimited(key);
      metrics.reconciles.inc({ controller, result: 'requeue' });
    } else {
      queue.forget(key);
      this.failing.delete(key);
      const result = requeueIn === undefined ? 'success' : 'requeue_after';
      metrics.reconciles.inc({ controller, result });
    }
    if (requeueIn !== undefined) queue.addAfter(key, requeueIn);
    const isPaced = skipped.has('paced');
    if (next === 'now' || (isPaced && changes.some(({ action }) => action === 'deleted')))
      queue.addAgain(key);
    // The pace is so slow that it wasn't even its turn.
    else if (isPaced) queue.addAfter(key, REQUEUE.paced);
  }

  /** The kind, or the engine itself, has thrown. Returns the pause until the next try, in milliseconds. */
  afterException(key: string): number {
    const { controller, metrics, queue, queueMetrics } = this.props;
    const pause = queue.addRateLimited(key);
    metrics.reconcilePanics.inc({ controller });
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    queueMetrics.retried();
    return pause;
  }

  /** Logs and counts failures, after which the key is taken again when the pause is over. */
  private reportFailure(key: string, errors: readonly OperatorError[], pause: number, log: LeveledLog): void {
    const { controller, metrics, queueMetrics } = this.props;
    const is = (test: (error: OperatorError) => boolean): boolean => errors.some(test);
    if (pause === 0) {
      metrics.reconciles.inc({ controller, result: 'requeue' });
      const messages = errors.map(({ message }) => message);
      log.at('debug')?.debug({ errors: messages }, 'the view was stale, retrying');
      return;
    }
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    if (is(({ retry }) => retry === 'onChange')) metrics.terminalReconcileErrors.inc({ controller });
    if (is(({ isBug }) => isBug)) metrics.reconcilePanics.inc({ controller });
    if (is(({ reason }) => reason === TIMEOUT_REASON)) metrics.reconcileTimeouts.inc({ controller });
    queueMetrics.retried();
    const message = errors.map((error) => error.message).join('; ');
    const failing = this.failingState(key);
    const level = failing.message === message ? 'debug' : 'warn';
    failing.message = message;
    const retryMilliseconds = Math.round(pause);
    for (const { reason, message: text, isBug, cause } of errors) {
      const stack = isBug ? { err: cause } : {};
      log.at(level)?.[level]({ reason, error: text, retryMilliseconds, ...stack }, 'reconcile failed');
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

/** Reports whether the server had too much to do for the request, or gave no answer, as while it is restarted. */
function isThrottledOrUnanswered({ cause, reason }: OperatorError): boolean {
  return isThrottled(cause) || reason === 'Unreachable';
}

function note(keys: Set<string>, key: string, isIn: boolean): void {
  if (isIn) keys.add(key);
  else if (keys.size > 0) keys.delete(key);
}

/** Joins failures that hold for many objects, such as a missing right. */
function distinct(errors: readonly (OperatorError | undefined)[]): OperatorError[] {
  const byMessage = new Map<string, OperatorError>();
  for (const error of errors) if (error) byMessage.set(error.message, error);
  return [...byMessage.values()];
}

function pauseAskedBy({ retryAfterMilliseconds, cause }: OperatorError): number {
  return Math.max(retryAfterMilliseconds, askedDelay(cause));
}

/** A time that is past is met after a pause, so that a kind that always gives one doesn't spin; one that came meanwhile is met soon. */
function requeueDelay(at: Date | undefined, plannedFor: Date, passed: number): number | undefined {
  if (at === undefined) return undefined;
  const delay = at.getTime() - plannedFor.getTime();
  if (Number.isNaN(delay)) throw new TypeError('next is not a valid date');
  if (delay <= 0) return REQUEUE.past;
  return delay > passed ? delay - passed : REQUEUE.missed;
}

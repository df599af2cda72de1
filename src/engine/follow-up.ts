import { randomUUID } from 'node:crypto';
import type { Plan } from '../contract/controller.js';
import type { OperatorError } from '../contract/error.js';
import { splitKey } from '../contract/object.js';
import type { Logger, LogLevel } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ApiError, askedDelay, isThrottled, mostPause } from './api-error.js';
import type { Outcome } from './carry-out.js';
import type { Clock } from './clock.js';
import { TIMEOUT_REASON } from './in-flight.js';
import { KIND_NOT_INSTALLED } from './installed.js';
import type { Lane, Queue, QueueMetrics } from './work-queue.js';
import { refusalMilliseconds } from './refusals.js';

/** Stale views mend themselves at once, as a rule; one that doesn't is treated as a failure. */
const IMMEDIATE_RETRIES = 5;

/** A plan that asks for a time that had passed when it was made is made again after this. */
const PAST_REQUEUE_MILLISECONDS = 1_000;

/** A time that came while the plan was carried out is met after this, so that a kind that always asks for one doesn't loop. */
const MISSED_REQUEUE_MILLISECONDS = 20;

/** An object that was to be deleted has changed, while something else has failed: it is judged again after this. */
const CHANGED_MILLISECONDS = 1_000;

/** Nothing could be deleted for the pace: it is tried again after this. */
const PACED_MILLISECONDS = 1_000;

/** So many refusals in a row by a server that has too much to do aren't told: the next try succeeds, as a rule. */
const UNTOLD_REFUSALS = 3;
/** One that asks for a longer pause is told at once. */
const UNTOLD_MILLISECONDS = 5_000;
/** Where many objects of a plan are refused, each until another time, it is carried out at most so often. */
const REFUSED_MILLISECONDS = 100;

const LACKING_KIND: ReadonlySet<string> = new Set(['KindNotServed', KIND_NOT_INSTALLED]);

/** A plan, and the time that it was made for. */
export interface MadePlan {
  readonly plan: Plan;
  readonly plannedFor: Date;
  /** The same by the monotonic clock. */
  readonly plannedAt: number;
}

export interface FollowUpProps {
  readonly controller: string;
  readonly queue: Queue;
  readonly queueMetrics: QueueMetrics;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Metrics;
}

/**
 * Decides, after a reconcile, when its key is taken again, and tells why.
 *
 * **Guarantees.** The time that a plan asks for is met at the latest, whether it has failed or not. After a failure the
 * pause is at least what the errors have asked for. `Retry-After` holds for its request, at the gate, and not for the key.
 */
export class FollowUp {
  private readonly immediateRetries = new Map<string, number>();
  /** The last failure of a key, so that one that stays the same isn't told again and again. */
  private readonly told = new Map<string, string>();

  /** Keys whose last failure was that a kind isn't served. */
  private readonly lackingKind = new Set<string>();
  /** Keys whose last failure was that the server gave no answer, or couldn't serve the request. */
  private readonly unreached = new Set<string>();
  /** How often in a row a key was refused by a server that has too much to do. */
  private readonly refusals = new Map<string, number>();

  constructor(private readonly props: FollowUpProps) {}

  /** A kind is served, maybe since a moment ago: whoever has lacked one is taken again, as if it had never failed. */
  kindServed(): void {
    this.takeAgain(this.lackingKind, 'initial');
  }

  /** The server is back: what it has failed doesn't wait for the end of its pause. */
  serverReached(): void {
    this.takeAgain(this.unreached, 'child');
  }

  /** Whether these failures pass by themselves, as a rule, when the key is taken again soon. */
  mayPass(key: string, errors: readonly OperatorError[]): boolean {
    return (
      this.willLookAgain(key, errors) ||
      ((this.refusals.get(key) ?? 0) < UNTOLD_REFUSALS &&
        errors.every(({ cause }) => isThrottled(cause) && askedDelay(cause) <= UNTOLD_MILLISECONDS))
    );
  }

  /** Whether the key is taken again at once after these failures: they are of a stale view, which that mends as a rule. */
  private willLookAgain(key: string, errors: readonly OperatorError[]): boolean {
    return (
      (this.immediateRetries.get(key) ?? 0) < IMMEDIATE_RETRIES &&
      errors.every((error) => error.retry === 'now' && pauseAskedBy(error) === 0)
    );
  }

  /** The plan was carried out, or as much of it as could be; it was made for the time `plannedFor`. */
  ended(key: string, { plan, plannedFor, plannedAt }: MadePlan, outcome: Outcome, log: ReconcileLog): void {
    const { controller, clock, metrics, queue } = this.props;
    // What a kind may throw comes before anything is forgotten.
    const requeueIn = requeueDelay(requeueTime(plan, outcome), plannedFor, clock.monotonic() - plannedAt);
    const again = plan.again?.(outcome.changes) ?? false;
    const hasChanged = outcome.changes.some(({ skippedFor }) => skippedFor === 'changed');
    const errors = distinct([
      plan.error,
      outcome.statusError,
      ...[...outcome.changes, ...outcome.statusChanges].map(({ error }) => error),
    ]);
    if (errors.some(({ reason }) => LACKING_KIND.has(reason))) this.lackingKind.add(key);
    else if (this.lackingKind.size > 0) this.lackingKind.delete(key);
    if (errors.some(({ reason }) => reason === 'Unreachable' || reason === 'ServerOverloaded'))
      this.unreached.add(key);
    else if (this.unreached.size > 0) this.unreached.delete(key);
    if (errors.length > 0) {
      this.failed(key, errors, this.retry(key, errors), log);
      // Nothing else may ever tell of it.
      if (hasChanged) queue.addAfter(key, CHANGED_MILLISECONDS);
    } else if (hasChanged) {
      if (!this.lookAgain(key)) queue.addRateLimited(key);
      metrics.reconciles.inc({ controller, result: 'requeue' });
    } else {
      queue.forget(key);
      this.immediateRetries.delete(key);
      this.refusals.delete(key);
      this.told.delete(key);
      const result = requeueIn === undefined ? 'success' : 'requeue_after';
      metrics.reconciles.inc({ controller, result });
    }
    if (requeueIn !== undefined) queue.addAfter(key, requeueIn);
    const isPaced = outcome.changes.some(({ skippedFor }) => skippedFor === 'paced');
    const hasDeleted = outcome.changes.some(({ action }) => action === 'deleted');
    if (again || (isPaced && hasDeleted)) queue.addAgain(key);
    // The pace is so slow that it wasn't even one's turn.
    else if (isPaced) queue.addAfter(key, PACED_MILLISECONDS);
  }

  /** The kind, or the engine itself, has thrown. Returns the pause until the next try, in milliseconds. */
  threw(key: string): number {
    const { controller, metrics, queue, queueMetrics } = this.props;
    const pause = queue.addRateLimited(key);
    metrics.reconcilePanics.inc({ controller });
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    queueMetrics.retried();
    return pause;
  }

  /** Logs and counts failures, after which the key is taken again when the pause is over. */
  private failed(key: string, errors: readonly OperatorError[], pause: number, log: ReconcileLog): void {
    const { controller, metrics, queueMetrics } = this.props;
    if (pause === 0) {
      metrics.reconciles.inc({ controller, result: 'requeue' });
      log
        .at('debug')
        ?.debug({ errors: errors.map(({ message }) => message) }, 'The view was stale, trying again');
      return;
    }
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    if (errors.some(({ retry }) => retry === 'onChange')) metrics.terminalReconcileErrors.inc({ controller });
    if (errors.some(({ isBug }) => isBug)) metrics.reconcilePanics.inc({ controller });
    if (errors.some(({ reason }) => reason === TIMEOUT_REASON)) metrics.reconcileTimeouts.inc({ controller });
    queueMetrics.retried();
    const message = errors.map((error) => error.message).join('; ');
    const level = this.told.get(key) === message ? 'debug' : 'warn';
    this.told.set(key, message);
    const retryMilliseconds = Math.round(pause);
    for (const { reason, message, isBug, cause } of errors) {
      const stack = isBug ? { err: cause } : {};
      log.at(level)?.[level]({ reason, error: message, retryMilliseconds, ...stack }, 'Reconcile failed');
    }
  }

  /** Takes the key again at once, unless that hasn't helped several times in a row. */
  private lookAgain(key: string): boolean {
    const tries = this.immediateRetries.get(key) ?? 0;
    this.immediateRetries.set(key, tries + 1);
    if (tries >= IMMEDIATE_RETRIES) return false;
    this.props.queue.addAgain(key);
    return true;
  }

  private takeAgain(keys: Set<string>, lane: Lane): void {
    const { queue } = this.props;
    for (const key of keys) {
      queue.forget(key);
      queue.add(key, lane);
    }
    keys.clear();
  }

  /** Plans the next try. Returns the pause in milliseconds. */
  private retry(key: string, errors: readonly OperatorError[]): number {
    const { queue } = this.props;
    if (this.willLookAgain(key, errors) && this.lookAgain(key)) return 0;
    this.immediateRetries.delete(key);
    const isNews = errors.some(({ cause }) => cause instanceof ApiError && !cause.isRepeated);
    if (isNews && errors.every(({ cause }) => isThrottled(cause)))
      this.refusals.set(key, (this.refusals.get(key) ?? 0) + 1);
    const refused = errors.filter(({ cause }) => askedDelay(cause) > 0);
    const others = errors.filter((error) => !refused.includes(error));
    const pause = others.length > 0 ? this.backOff(key, others) : Infinity;
    // Failures that back off would be sent again with what was refused, so that waits for them.
    if (others.some(({ retry }) => retry !== 'onChange') || refused.length === 0) return pause;
    // No failure that backs off: the pause is known. The gate holds what is refused for longer; all else of the plan goes on.
    const soonest = Math.max(REFUSED_MILLISECONDS, Math.min(...refused.map(pauseAskedBy)));
    queue.addAfter(key, soonest);
    return Math.min(pause, soonest);
  }

  private backOff(key: string, errors: readonly OperatorError[]): number {
    const { queue, random } = this.props;
    const asked = Math.max(...errors.map(pauseAskedBy));
    if (errors.some(({ retry }) => retry !== 'onChange'))
      return queue.addRateLimited(key, asked, mostPause(errors.map(({ reason }) => reason)));
    const delay = Math.max(
      refusalMilliseconds(errors.map(({ reason }) => reason)) * (1 + random() / 2),
      asked,
    );
    queue.addAfter(key, delay);
    return delay;
  }
}

/** What holds for many objects, such as a missing right, is one failure. */
function distinct(errors: readonly (OperatorError | undefined)[]): OperatorError[] {
  const byMessage = new Map<string, OperatorError>();
  for (const error of errors) if (error) byMessage.set(error.message, error);
  return [...byMessage.values()];
}

function pauseAskedBy({ retryAfterMilliseconds, cause }: OperatorError): number {
  return Math.max(retryAfterMilliseconds, askedDelay(cause));
}

function requeueTime({ requeueAt }: Plan, { changes }: Outcome): Date | undefined {
  return typeof requeueAt === 'function' ? requeueAt(changes) : requeueAt;
}

/** A time that had passed already would be met at once, and then again; one that came meanwhile is met soon. */
function requeueDelay(at: Date | undefined, plannedFor: Date, passed: number): number | undefined {
  if (at === undefined) return undefined;
  const delay = at.getTime() - plannedFor.getTime();
  if (Number.isNaN(delay)) throw new TypeError('requeueAt is not a valid date');
  if (delay <= 0) return PAST_REQUEUE_MILLISECONDS;
  return delay > passed ? delay - passed : MISSED_REQUEUE_MILLISECONDS;
}

/**
 * The log of one reconcile. After a start most reconciles have nothing to tell, so what marks the lines as those of
 * one reconcile is made for the first line that is written.
 */
export class ReconcileLog {
  private child: Logger | undefined;

  constructor(
    private readonly parent: Logger,
    private readonly key: string,
  ) {}

  /** Nothing where lines of this level aren't written. */
  at(level: LogLevel): Logger | undefined {
    if (!this.parent.isLevelEnabled(level)) return undefined;
    return (this.child ??= this.parent.child({ ...splitKey(this.key), reconcileId: randomUUID() }));
  }
}

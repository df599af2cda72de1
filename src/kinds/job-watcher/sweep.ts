import type { Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { EventProps, ForeignStep } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import type { Propagation } from '../../client/api.js';
import { ApiError, askedDelay } from '../../client/api-error.js';
import { sleep } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import { REFUSAL_MILLISECONDS } from '../../client/retry.js';
import type { Hand, StepHandler } from '../../engine/plan/hand.js';
import { deleteObject } from '../../engine/steps/delete.js';
import { refusalMilliseconds, setLatest } from '../../engine/steps/memory.js';
import { Deletions } from './deletions.js';

/** An object of others to be deleted, by a rule that was made for it. */
export interface SweepStep extends ForeignStep {
  readonly do: 'job-watcher/sweep';
  /** Object as known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
  readonly propagation: Propagation;
  /** Sent as an event of the object before it goes. */
  readonly announce: EventProps;
  /**
   * Written to the log, in one line for each request, with namespace, name, UID and outcome: `deleted`, `gone` (it
   * wasn't there any more), `changed` (it isn't as it was seen), or the reason of the failure.
   */
  readonly audit: Readonly<Record<string, unknown>>;
  /** Time for which the plan was made, in milliseconds since the epoch. */
  readonly plannedFor: number;
}

/** Time for which a plan sweeps at a stretch: then its status is written, and it goes on. */
const STRETCH_MILLISECONDS = 30_000;

/** Sweep of one plan. */
interface Stretch {
  /** Time by the monotonic clock. */
  readonly begin: number;
  /** Whether the rest is left for the next plan. */
  isOver: boolean;
  /** Whether the API server gave no answer: the others wouldn't get one either, and each would be announced. */
  isUnreachable: boolean;
}

/**
 * Deletes what the plans of one controller sweep, which have no other steps.
 *
 * **Guarantees.** Only what is as it was seen is deleted: what has changed since is `skipped`, and the key is taken again. Events are
 * sent before, and every request leaves one line in the log. Once the signal has aborted, nothing more is sent, also by those
 * that waited for their turn. What may not be deleted isn't tried again for ten minutes: where a right is missing, nothing of its type
 * in its namespace; where something else refuses it, that object, as long as it stays as it is. After 30 s the rest is left
 * for the next plan, which follows as soon as the status is written.
 */
export class Sweeper implements StepHandler<SweepStep> {
  readonly do = 'job-watcher/sweep';
  readonly deletions = new Deletions();
  private readonly bucket: TokenBucket;
  private readonly refusals = new SweepRefusals();
  private stretch: Stretch = { begin: 0, isOver: false, isUnreachable: false };

  /** @param perSecond deletions a second, over all plans */
  constructor(perSecond: number) {
    this.bucket = new TokenBucket(perSecond);
  }

  async carryOut(step: SweepStep, hand: Hand, before: readonly Change[]): Promise<Change> {
    const { clock, signal, stopping } = hand;
    const ref = refOf(step.object);
    if (before.length === 0) this.stretch = { begin: clock.monotonic(), isOver: false, isUnreachable: false };
    const { stretch } = this;
    if (stretch.isUnreachable) return { ref, action: 'skipped' };
    const refusal = this.refusals.find(step.object, clock);
    if (refusal) return { ref, action: 'failed', error: refusal };
    stretch.isOver ||= clock.monotonic() + this.bucket.wait(clock) > stretch.begin + STRETCH_MILLISECONDS;
    const wait = stretch.isOver ? 0 : this.bucket.take(clock);
    if (wait > 0) await sleep(clock, wait, AbortSignal.any([signal, stopping]));
    stretch.isOver ||= stopping.aborted;
    if (stretch.isOver || signal.aborted) return { ref, action: 'skipped', skippedFor: 'paced' };
    const change = await this.delete(step, hand);
    stretch.isUnreachable = change.error?.reason === 'Unreachable';
    return change;
  }

  preview({ object }: SweepStep): Promise<Change> {
    return Promise.resolve({ ref: refOf(object), action: 'deleted' });
  }

  /** Never rejects. */
  private async delete(step: SweepStep, hand: Hand): Promise<Change> {
    const { object, propagation, announce, plannedFor } = step;
    const { clock } = hand;
    const { uid = '' } = object.metadata;
    const ref = refOf(object);
    hand.events.send({ ...ref, uid }, announce);
    const { action, error } = await deleteObject(object, hand, propagation);
    if (action === 'deleted')
      this.deletions.add(object, Math.round(plannedFor + clock.monotonic() - this.stretch.begin));
    const hasChanged = error?.cause instanceof ApiError && error.cause.conflict;
    const change: Change = hasChanged
      ? { ref, action: 'skipped', skippedFor: 'changed' }
      : { ref, action, ...(error && { error: this.refusals.note(object, error, clock) }) };
    audit(step, change, hand);
    return change;
  }
}

/** The line's own `kind` is that of the controller. */
function audit({ object, audit: more }: SweepStep, { ref, action, error }: Change, { log }: Hand): void {
  const outcome = error?.reason ?? { unchanged: 'gone', skipped: 'changed' }[action as string] ?? action;
  const { kind, namespace, name } = ref;
  log[error ? 'warn' : 'info'](
    { ...more, objectKind: kind, namespace, name, uid: object.metadata.uid ?? '', outcome },
    error
      ? `${describeRef(ref)} couldn't be deleted: ${outcome}`
      : `deletion of ${describeRef(ref)}: ${outcome}`,
  );
}

/** Limits the rate per second; a second's worth that wasn't used may be made up for at once. */
class TokenBucket {
  private tokens: number | undefined;
  private at = 0;

  constructor(private readonly perSecond: number) {}

  /** Takes one, and returns in how many milliseconds it may be used; 0 at once. */
  take(clock: Clock): number {
    const left = this.fill(clock) - 1;
    this.tokens = left;
    return Math.max(0, (-left / this.perSecond) * 1000);
  }

  /** Returns in how many milliseconds the next could be used. */
  wait(clock: Clock): number {
    return Math.max(0, ((1 - this.fill(clock)) / this.perSecond) * 1000);
  }

  private fill(clock: Clock): number {
    const now = clock.monotonic();
    const most = Math.max(1, this.perSecond);
    const grown = (this.tokens ?? most) + ((now - this.at) / 1000) * this.perSecond;
    this.at = now;
    return (this.tokens = Math.min(most, grown));
  }
}

/** Refused deletions, so that they aren't tried again and again. */
class SweepRefusals {
  /** Failures by right (type and namespace) or by object and version. */
  private readonly refusals = new Map<string, { readonly until: number; readonly error: OperatorError }>();

  find(object: AnyObject, clock: Clock): OperatorError | undefined {
    const now = clock.monotonic();
    for (const [id, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(id);
    }
    for (const id of [`later ${versionId(object)}`, rightId(object), versionId(object)]) {
      const refusal = this.refusals.get(id);
      if (refusal && refusal.until > now) return refusal.error;
    }
    return undefined;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  note(object: AnyObject, error: OperatorError, clock: Clock): OperatorError {
    const { cause, reason, message, retry } = error;
    const remember = (id: string, refusal: OperatorError, milliseconds: number): void => {
      setLatest(this.refusals, id, { until: clock.monotonic() + milliseconds, error: refusal });
    };
    const asked = askedDelay(cause);
    // Until the time that the API server has asked for, it isn't announced again either.
    if (asked > 0) remember(`later ${versionId(object)}`, error, asked);
    // A policy says so with 403 or, unless configured otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    // No watch shows that a right was granted, and an API server that has just begun to serve refuses everyone.
    if (cause.lacksRight) remember(rightId(object), refused, refusalMilliseconds([reason]));
    else remember(versionId(object), refused, REFUSAL_MILLISECONDS);
    return refused;
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}

import type { Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, keyOf, objectId, refOf } from '../../contract/object.js';
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
import { setLatest } from '../../values/latest.js';
import { refusalMilliseconds } from '../../engine/steps/memory.js';

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

/** Maximum number of names of which deletions are remembered, and of refusals. */
const MAX_REMEMBERED = 10_000;

/** Time for which a deletion is remembered. */
export const DELETIONS_KEPT_MILLISECONDS = 24 * 3_600_000;

/** Maximum number of deletions that are remembered of a name. */
const MAX_OF_NAME = 3;

/** A deletion that was carried out. */
export interface Deletion {
  readonly uid: string;
  /** Milliseconds since the epoch, by the clock that counts. */
  readonly at: number;
}

/** Last deletions by name, those of 24 hours. A restart forgets them. */
export class Deletions {
  private readonly byKey = new Map<string, readonly Deletion[]>();

  add(object: AnyObject, at: number): void {
    const { uid = '' } = object.metadata;
    const before = this.of(keyOf(object), at);
    // A finalizer kept it, and it was deleted twice.
    if (before.some((deletion) => deletion.uid === uid)) return;
    setLatest(this.byKey, keyOf(object), [...before, { uid, at }].slice(-MAX_OF_NAME), MAX_REMEMBERED);
  }

  /** Returns what was deleted under a name, oldest first. @param key namespace and name */
  of(key: string, now: number): readonly Deletion[] {
    const known = this.byKey.get(key) ?? [];
    return known.filter(({ at }) => now - at < DELETIONS_KEPT_MILLISECONDS);
  }
}

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
 * that waited for their turn. Where a right is missing, nothing of its type in its namespace is tried again for as long as the retry
 * policy says; where something else refuses it, that object isn't for ten minutes, as long as it stays as it is. After 30 s the rest is left
 * for the next plan, which follows as soon as the status is written.
 */
export class Sweeper implements StepHandler<SweepStep> {
  readonly do = 'job-watcher/sweep';
  readonly deletions = new Deletions();
  /** Refused deletions by right (type and namespace) or by object and version, so that they aren't tried again and again. */
  private readonly refusals = new Map<string, { readonly until: number; readonly error: OperatorError }>();
  /** Time until which deletions are given out; as all times, by the monotonic clock. */
  private takenUntil = -Infinity;
  private stretch: Stretch = { begin: 0, isOver: false, isUnreachable: false };

  /** @param perSecond deletions a second, over all plans; a second's worth that wasn't used may be made up for at once */
  constructor(private readonly perSecond: number) {}

  async carryOut(step: SweepStep, hand: Hand, before: readonly Change[]): Promise<Change> {
    const { clock, signal, stopping } = hand;
    const ref = refOf(step.object);
    if (before.length === 0) this.stretch = { begin: clock.monotonic(), isOver: false, isUnreachable: false };
    const { stretch } = this;
    if (stretch.isUnreachable) return { ref, action: 'skipped' };
    const refusal = this.refusalOf(step.object, clock);
    if (refusal) return { ref, action: 'failed', error: refusal };
    const now = clock.monotonic();
    const pace = 1000 / this.perSecond;
    const wait = Math.max(0, this.takenUntil + pace - now - 1000);
    stretch.isOver ||= now + wait > stretch.begin + STRETCH_MILLISECONDS;
    if (!stretch.isOver) {
      this.takenUntil = Math.max(this.takenUntil, now) + pace;
      if (wait > 0) await sleep(clock, wait, AbortSignal.any([signal, stopping]));
      stretch.isOver = stopping.aborted;
    }
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
      : { ref, action, ...(error && { error: this.noted(object, error, clock) }) };
    audit(step, change, hand);
    return change;
  }

  private refusalOf(object: AnyObject, clock: Clock): OperatorError | undefined {
    const known = [rightId(object), versionId(object)].map((id) => this.refusals.get(id));
    return known.find((refusal) => refusal && refusal.until > clock.monotonic())?.error;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  private noted(object: AnyObject, error: OperatorError, clock: Clock): OperatorError {
    const { cause, reason, message, retry } = error;
    const remember = (id: string, known: OperatorError, milliseconds: number): OperatorError => {
      const refusal = { until: clock.monotonic() + milliseconds, error: known };
      setLatest(this.refusals, id, refusal, MAX_REMEMBERED);
      return known;
    };
    // A policy says so with 403 or, unless configured otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) {
      // Until the time that the API server has asked for, it isn't announced again either.
      const asked = askedDelay(cause);
      return asked > 0 ? remember(versionId(object), error, asked) : error;
    }
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    // No watch shows that a right was granted, and an API server that has just begun to serve refuses everyone.
    return cause.lacksRight
      ? remember(rightId(object), refused, refusalMilliseconds([reason]))
      : remember(versionId(object), refused, Math.max(REFUSAL_MILLISECONDS, askedDelay(cause)));
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

/** Names what a missing right concerns. */
function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}

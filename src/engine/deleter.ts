import type { Change } from '../contract/change.js';
import type { Plan, DeleteStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Api } from './api.js';
import { ApiError, askedDelay } from './api-error.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import type { EventRecorder } from './events.js';
import { prune } from './prune.js';
import { REFUSAL_MILLISECONDS, refusalMilliseconds } from './refusals.js';
import type { Steps } from './steps.js';
import type { StoreReader } from './cache.js';

/** So long a plan deletes at a stretch where it is paced: then its status is written, and it goes on. */
const STRETCH_MILLISECONDS = 30_000;

export interface DeleterProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  /** For audits. */
  readonly log: Logger;
}

/**
 * Deletes what the plans of one controller say, one after another.
 *
 * **Guarantees.** Only what is as it was seen is deleted. What is announced is told before, and every request that was
 * audited leaves one line in the log. Once the signal has aborted, nothing more is sent, also by who waited for his
 * turn.
 */
export class Deleter {
  private readonly bucket: TokenBucket;
  private readonly refusals: DeleteRefusals;
  private readonly stopping = new AbortController();

  constructor(private readonly props: DeleterProps) {
    this.bucket = new TokenBucket(props.clock);
    this.refusals = new DeleteRefusals(props.clock);
  }

  /** Nobody waits for his turn any more: whoever does leaves the rest for another time. */
  stop(): void {
    this.stopping.abort();
  }

  /** What became of each, in the plan's order. */
  async carryOut(plan: Plan, reader: StoreReader, steps: Steps, signal: AbortSignal): Promise<Change[]> {
    const { clock } = this.props;
    const changes: Change[] = [];
    const until = clock.monotonic() + STRETCH_MILLISECONDS;
    let over = false;
    for (const step of plan.delete) {
      const ref = refOf(step.object);
      const refusal = step.foreign && this.refusals.find(step.object);
      if (refusal) {
        changes.push({ ref, action: 'failed', error: refusal });
        continue;
      }
      const rate = plan.deletesPerSecond;
      if (rate !== undefined && !steps.ended) {
        over ||= clock.monotonic() + this.bucket.wait(rate) > until;
        if (!over) await this.turn(rate, signal);
        over ||= this.stopping.signal.aborted;
        if (over) {
          changes.push({ ref, action: 'skipped', skippedFor: 'paced' });
          continue;
        }
      }
      changes.push(await steps.take(ref, async () => this.delete(step, reader)));
    }
    return changes;
  }

  private async turn(rate: number, signal: AbortSignal): Promise<void> {
    const wait = this.bucket.take(rate);
    if (wait > 0) await sleep(this.props.clock, wait, AbortSignal.any([signal, this.stopping.signal]));
  }

  /** Never rejects. */
  private async delete(step: DeleteStep, reader: StoreReader): Promise<Change> {
    const { object, announce, audit } = step;
    const { uid = '' } = object.metadata;
    const ref = refOf(object);
    if (announce) this.props.recorder.send({ ...ref, uid }, announce);
    const change = await prune(this.props.api, step, reader);
    const error = change.error && step.foreign ? this.refusals.note(object, change.error) : change.error;
    if (change.action === 'deleted') reader.deleted(object);
    if (audit) this.record(ref, uid, audit, change);
    return error ? { ...change, error } : change;
  }

  /** The line's own `kind` is that of the controller. */
  private record(ref: ObjectRef, uid: string, audit: object, change: Change): void {
    const outcome = outcomeOf(change);
    const what = describeRef(ref);
    const { kind, namespace, name } = ref;
    this.props.log[change.error ? 'warn' : 'info'](
      { ...audit, objectKind: kind, namespace, name, uid, outcome },
      change.error ? `${what} couldn't be deleted: ${outcome}` : `Deletion of ${what}: ${outcome}`,
    );
  }
}

function outcomeOf({ action, error }: Change): string {
  if (error) return error.reason;
  return { deleted: 'deleted', unchanged: 'gone', skipped: 'changed' }[action as string] ?? action;
}

/** Paces what is done to so many a second; a second's worth that wasn't used may be made up for at once. */
class TokenBucket {
  private tokens: number | undefined;
  private at = 0;

  constructor(private readonly clock: Clock) {}

  /** Takes one, and says in how many milliseconds it may be used; 0 at once. */
  take(perSecond: number): number {
    this.fill(perSecond);
    this.tokens = (this.tokens ?? 0) - 1;
    return Math.max(0, (-this.tokens / perSecond) * 1000);
  }

  /** In how many milliseconds the next could be used. */
  wait(perSecond: number): number {
    this.fill(perSecond);
    return Math.max(0, ((1 - (this.tokens ?? 0)) / perSecond) * 1000);
  }

  private fill(perSecond: number): void {
    const now = this.clock.monotonic();
    const most = Math.max(1, perSecond);
    const grown = (this.tokens ?? most) + ((now - this.at) / 1000) * perSecond;
    this.tokens = Math.min(most, grown);
    this.at = now;
  }
}

interface Refusal {
  readonly until: number;
  readonly error: OperatorError;
}

/** What we may not delete, so that it isn't asked for again and again. */
class DeleteRefusals {
  /** By type and namespace; the one that is over first comes first, here and in `byVersion`. */
  private readonly byRight = new Map<string, Refusal>();
  /** By object and version. */
  private readonly byVersion = new Map<string, Refusal>();
  /** By object and version, what the API server has asked to send later: until then it isn't announced again either. */
  private readonly putOff = new Map<string, Refusal>();

  constructor(private readonly clock: Clock) {}

  find(object: AnyObject): OperatorError | undefined {
    for (const refusals of [this.byRight, this.byVersion, this.putOff]) this.forgetPast(refusals);
    const putOff = this.putOff.get(versionId(object));
    if (putOff && putOff.until > this.clock.monotonic()) return putOff.error;
    return (this.byRight.get(rightId(object)) ?? this.byVersion.get(versionId(object)))?.error;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  note(object: AnyObject, error: OperatorError): OperatorError {
    const { cause, reason, message, retry } = error;
    const asked = askedDelay(cause);
    if (asked > 0) this.remember(this.putOff, versionId(object), error, asked);
    // A policy says so with 403 or, unless told otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    // Nothing tells that a right was granted, and an API server that has just begun to serve refuses everybody.
    if (cause.lacksRight)
      this.remember(this.byRight, rightId(object), refused, refusalMilliseconds([reason]));
    else this.remember(this.byVersion, versionId(object), refused, REFUSAL_MILLISECONDS);
    return refused;
  }

  private remember(
    refusals: Map<string, Refusal>,
    id: string,
    error: OperatorError,
    milliseconds: number,
  ): void {
    refusals.delete(id);
    refusals.set(id, { until: this.clock.monotonic() + milliseconds, error });
  }

  private forgetPast(refusals: Map<string, Refusal>): void {
    const now = this.clock.monotonic();
    for (const [id, { until }] of refusals) {
      if (until > now) break;
      refusals.delete(id);
    }
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}

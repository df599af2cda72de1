import type { Change } from '../contract/change.js';
import type { Plan } from '../contract/controller.js';
import type { DeleteStep } from '../contract/delete-step.js';
import { describeRef, refOf } from '../contract/object.js';
import type { ObjectRef } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import type { Api } from './api.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import { DeleteRefusals } from './delete-refusals.js';
import type { EventRecorder } from './events.js';
import { prune } from './prune.js';
import type { Steps } from './steps.js';
import type { StoreReader } from './stores.js';
import { TokenBucket } from './token-bucket.js';

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

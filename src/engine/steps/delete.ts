import type { Change, ChangeSet } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, keyOf, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { Propagation, Sweep, SweepStep } from '../../contract/sweep.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Api } from '../../client/api.js';
import { ApiError, askedDelay, classify } from '../../client/api-error.js';
import { refusalMilliseconds, setLatest } from './apply-state.js';
import { sleep } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import type { EventRecorder } from '../loop/events.js';
import type { StoreReader } from '../watch/cache.js';
import { REFUSAL_MILLISECONDS } from '../../client/retry.js';

/**
 * Reads an object that isn't as it was known to be, so that the next try is well founded. Returns it, or nothing if it
 * is gone: then the store lets go of the one that it knew before, and not of a successor that has come meanwhile.
 * @throws when there is no answer
 */
export async function refresh(
  api: Api,
  object: Pick<AnyObject, 'apiVersion' | 'kind' | 'metadata'>,
  reader: StoreReader,
): Promise<AnyObject | undefined> {
  const store = reader.store(object);
  const key = keyOf(object);
  const known = store.get(key)?.object.metadata.uid;
  try {
    return await store.read(key, async () => api.get(reader.resourceType(object), key));
  } catch (error) {
    if (!(error instanceof ApiError) || !error.objectIsGone) throw error;
    if (known !== undefined) store.gone(key, known);
    return undefined;
  }
}

/**
 * Reports whether what a plan deletes has to stay for now: an apply has failed, or waits, that might be of what takes its
 * place, or stops using it. A contested object that is there was applied as it is wanted, and differs by what another writer does
 * to it since.
 */
export function holdsDeletionsBack(applied: ChangeSet, reader: StoreReader): boolean {
  const isThere = (ref: ObjectRef): boolean =>
    reader.store(ref).get(objectKey(ref.namespace, ref.name)) !== undefined;
  return applied.some(
    ({ ref, action, error, waitsFor }) =>
      waitsFor !== undefined ||
      (action === 'failed' && !(error?.reason === 'FieldContested' && isThere(ref))),
  );
}

/**
 * Deletes one object as it was seen. Where it has changed since, nothing is deleted and the plan is made again.
 * A failure is part of the answer; this never rejects.
 *
 * The API server takes the finalizers `foregroundDeletion` and `orphan` off before it compares the version, and so refuses a version
 * that is unchanged, each time: such an object is deleted by its UID.
 * @see https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
 */
export async function deleteObject(
  api: Api,
  object: AnyObject,
  reader: StoreReader,
  propagation?: Propagation,
): Promise<Change> {
  const ref = refOf(object);
  const store = reader.store(object);
  const key = keyOf(object);
  try {
    const terminating = await api.delete(reader.resourceType(object), object, propagation);
    if (terminating) store.written(terminating);
    else store.gone(key, object.metadata.uid);
    return { ref, action: 'deleted' };
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) {
      store.gone(key, object.metadata.uid);
      // As far as can be known, the first try has got through, and its answer was lost.
      return { ref, action: error.isSecondTry ? 'deleted' : 'unchanged' };
    }
    const failure = classify(error, `Delete ${describeRef(ref)}`);
    // Without it, the next plan would delete the same old version.
    const live =
      failure.retry === 'now' ? await refresh(api, object, reader).catch(() => undefined) : undefined;
    const { resourceVersion, ...metadata } = object.metadata;
    const isAsSeen =
      live?.metadata.uid === metadata.uid && live?.metadata.resourceVersion === resourceVersion;
    return live && isAsSeen && resourceVersion !== undefined
      ? deleteObject(api, { ...object, metadata }, reader, propagation)
      : { ref, action: 'failed', error: failure };
  }
}

/** Runs steps until going on is pointless. */
export interface StepRunner {
  run(ref: ObjectRef, step: () => Promise<Change>): Promise<Change>;
}

/** Milliseconds for which a plan sweeps at a stretch: then its status is written, and it goes on. */
const STRETCH_MILLISECONDS = 30_000;

export interface SweeperProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  /** For audits. */
  readonly log: Logger;
}

/**
 * Carries the sweeps of one controller out.
 *
 * **Guarantees.** Only what is as it was seen is deleted. Announcements are sent before, and every audited request leaves
 * one line in the log. Once the signal has aborted, nothing more is sent, also by those that waited for their turn.
 */
export class Sweeper {
  private readonly bucket: TokenBucket;
  private readonly refusals: SweepRefusals;
  private readonly stopping = new AbortController();

  constructor(private readonly props: SweeperProps) {
    this.bucket = new TokenBucket(props.clock);
    this.refusals = new SweepRefusals(props.clock);
  }

  /** Ends every wait for a turn; what is left is left for another time. */
  stop(): void {
    this.stopping.abort();
  }

  /** Returns what became of each step, in the order of the sweep. */
  async carryOut(
    sweep: Sweep,
    reader: StoreReader,
    steps: StepRunner,
    signal: AbortSignal,
  ): Promise<Change[]> {
    const { clock } = this.props;
    const { deletesPerSecond: rate } = sweep;
    const changes: Change[] = [];
    const until = clock.monotonic() + STRETCH_MILLISECONDS;
    const cancelled = AbortSignal.any([signal, this.stopping.signal]);
    let over = false;
    // The others wouldn't get an answer either, and each would be announced.
    let isUnreachable = false;
    for (const step of sweep.steps) {
      const ref = refOf(step.object);
      if (isUnreachable) {
        changes.push({ ref, action: 'skipped' });
        continue;
      }
      const refusal = this.refusals.find(step.object);
      if (refusal) {
        changes.push({ ref, action: 'failed', error: refusal });
        continue;
      }
      if (!signal.aborted) {
        over ||= clock.monotonic() + this.bucket.wait(rate) > until;
        const wait = over ? 0 : this.bucket.take(rate);
        if (wait > 0) await sleep(clock, wait, cancelled);
        over ||= this.stopping.signal.aborted;
        if (over) {
          changes.push({ ref, action: 'skipped', skippedFor: 'paced' });
          continue;
        }
      }
      const change = await steps.run(ref, async () => this.delete(step, reader));
      isUnreachable = change.error?.reason === 'Unreachable';
      changes.push(change);
    }
    return changes;
  }

  /** Never rejects. */
  private async delete(step: SweepStep, reader: StoreReader): Promise<Change> {
    const { object, propagation, announce, audit } = step;
    const { uid = '' } = object.metadata;
    const ref = refOf(object);
    if (announce) this.props.recorder.send({ ...ref, uid }, announce);
    const { action, error } = await deleteObject(this.props.api, object, reader, propagation);
    if (action === 'deleted') reader.deleted(object);
    const hasChanged = error?.cause instanceof ApiError && error.cause.conflict;
    const change: Change = hasChanged
      ? { ref, action: 'skipped', skippedFor: 'changed' }
      : { ref, action, ...(error && { error: this.refusals.note(object, error) }) };
    if (audit) this.record(change, uid, audit);
    return change;
  }

  /** The line's own `kind` is that of the controller. */
  private record({ ref, action, error }: Change, uid: string, audit: object): void {
    const outcome = error?.reason ?? { unchanged: 'gone', skipped: 'changed' }[action as string] ?? action;
    const { kind, namespace, name } = ref;
    this.props.log[error ? 'warn' : 'info'](
      { ...audit, objectKind: kind, namespace, name, uid, outcome },
      error
        ? `${describeRef(ref)} couldn't be deleted: ${outcome}`
        : `deletion of ${describeRef(ref)}: ${outcome}`,
    );
  }
}

/** Limits the rate per second; a second's worth that wasn't used may be made up for at once. */
class TokenBucket {
  private tokens: number | undefined;
  private at = 0;

  constructor(private readonly clock: Clock) {}

  /** Takes one, and returns in how many milliseconds it may be used; 0 at once. */
  take(perSecond: number): number {
    const left = this.fill(perSecond) - 1;
    this.tokens = left;
    return Math.max(0, (-left / perSecond) * 1000);
  }

  /** Returns in how many milliseconds the next could be used. */
  wait(perSecond: number): number {
    return Math.max(0, ((1 - this.fill(perSecond)) / perSecond) * 1000);
  }

  private fill(perSecond: number): number {
    const now = this.clock.monotonic();
    const most = Math.max(1, perSecond);
    const grown = (this.tokens ?? most) + ((now - this.at) / 1000) * perSecond;
    this.at = now;
    return (this.tokens = Math.min(most, grown));
  }
}

/** Remembers refused deletions, so that they aren't tried again and again. */
class SweepRefusals {
  /** Failures by right (type and namespace) or by object and version. */
  private readonly refusals = new Map<string, { readonly until: number; readonly error: OperatorError }>();

  constructor(private readonly clock: Clock) {}

  find(object: AnyObject): OperatorError | undefined {
    const now = this.clock.monotonic();
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
  note(object: AnyObject, error: OperatorError): OperatorError {
    const { cause, reason, message, retry } = error;
    const asked = askedDelay(cause);
    // Until the time that the API server has asked for, it isn't announced again either.
    if (asked > 0) this.remember(`later ${versionId(object)}`, error, asked);
    // A policy says so with 403 or, unless configured otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    // Nothing tells that a right was granted, and an API server that has just begun to serve refuses everyone.
    if (cause.lacksRight) this.remember(rightId(object), refused, refusalMilliseconds([reason]));
    else this.remember(versionId(object), refused, REFUSAL_MILLISECONDS);
    return refused;
  }

  private remember(id: string, error: OperatorError, milliseconds: number): void {
    setLatest(this.refusals, id, { until: this.clock.monotonic() + milliseconds, error });
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}

import type { ChangeSet } from '../../contract/change.js';
import { rfc3339Seconds } from '../../contract/conditions.js';
import { OperatorError } from '../../contract/error.js';
import { objectId, objectKey } from '../../contract/object.js';
import type { SweepStep } from '../../contract/sweep.js';
import { conditionsOf, refusedConditions } from './conditions.js';
import type { KeptJob } from './keep-job.js';
import type { DueJob, WatcherPass } from './pass.js';
import type { JobWatcherStatus } from './spec.js';
import { MAX_CANDIDATES, statusOf, timeOf } from './status.js';
import type { StatusOutput } from './status.js';
import type { ReadWatcher, Watcher } from './watcher.js';

const REFUSED_FREQUENCY_SECONDS = 60;

/**
 * Errors of Jobs whose deletion has failed, each as long as it stays as it is: others come before them, so that no
 * number of them keeps the others from being deleted.
 */
export type Failures = WeakMap<KeptJob, OperatorError>;

/** What became of the deletions of one watcher. */
export interface RunOutcome {
  readonly deleted: readonly DueJob[];
  readonly failed: readonly { readonly due: DueJob; readonly error: OperatorError }[];
}

/** What was done for a watcher since its status was written. */
export interface Done {
  /** Milliseconds since the epoch: when the first of these runs began, and when the last ended. */
  readonly startedAt: number;
  readonly finishedAt: number;
  /** UIDs of Jobs. */
  readonly deleted: ReadonlySet<string>;
  readonly failed: ReadonlySet<string>;
}

/** What all reports of one plan have in common. */
export interface PlanContext {
  /** Milliseconds since the epoch, by the clock that counts. */
  readonly now: number;
  /** The API server's clock counts, since ours is too far off. */
  readonly isSkewed: boolean;
  /** When the last of these deletions was done; `now` where there is none. */
  readonly finishedAt: (deleted: readonly DueJob[]) => number;
}

/** What was made of a watcher last. */
interface Told extends StatusOutput {
  /** Without the failures of before. */
  readonly tried: RunOutcome;
}

/**
 * What is told of one watcher once a plan was carried out, and remembered of it until the next. What runs have done and
 * no status tells yet is among that, since a status is written once per `frequency` at most. Nothing is decided by it but
 * when a run with limits may follow the last, and a status the last; a restart may forget it.
 */
export class Report {
  /** Number of the plan that computed its status last; 0 before there was one. */
  turn = 0;
  private done: Done | undefined;
  private toldAt: number | undefined;
  /** A status that tells all of `done`, and was to be written, and when. */
  private offer: { readonly status: JobWatcherStatus; readonly at: number } | undefined;
  private inputs: readonly unknown[] = [];
  private changes: ChangeSet | undefined;
  private told: Told | undefined;

  /** What the plan has found. @default - the spec can't work, and nothing was looked at */
  pass: WatcherPass | undefined;

  constructor(
    public read: ReadWatcher,
    private context: PlanContext,
    private readonly failures: Failures,
  ) {}

  /** Begins a plan, and forgets what the status that is there now tells. */
  begin(read: ReadWatcher, context: PlanContext): void {
    // What a user has edited comes before what follows from others.
    if (read.cr.metadata.generation !== this.read.cr.metadata.generation) this.turn = 0;
    [this.read, this.context] = [read, context];
    this.pass = this.changes = undefined;
    if (!this.offer || !tellsTheRunOf(this.offer.status, read.cr.status)) return;
    this.toldAt = this.offer.at;
    this.done = undefined;
    this.offer = undefined;
  }

  /** A run with limits is followed by the next after `frequency`; a spec that was changed is judged at once. */
  opensAt({ limits, dryRun, frequencySeconds }: Watcher): number {
    if (!limits || dryRun) return -Infinity;
    const { metadata, status = {} } = this.read.cr;
    const { lastStarted, lastRun, observedGeneration } = status;
    if (!this.done && observedGeneration !== metadata.generation) return -Infinity;
    const hasRun = lastRun !== undefined && lastRun.deleted + lastRun.failed > 0;
    return (this.done?.startedAt ?? (hasRun ? timeOf(lastStarted) : -Infinity)) + frequencySeconds * 1000;
  }

  /** Whether its status has to be computed: what it is made of has changed, or it may be told now. */
  get isNew(): boolean {
    const { now } = this.context;
    return now >= (this.told?.dueAt ?? Infinity) || !isSame(this.inputs, this.inputsNow());
  }

  /** Whether it has to be told, in its turn. What couldn't be written is told with each plan. */
  get isPending(): boolean {
    return this.isNew || this.told?.isNews === true;
  }

  /** When what is held back may be told. @default - nothing is held back */
  get dueAt(): number | undefined {
    return this.told?.dueAt;
  }

  /** Status, events and samples of a plan agree, however often each is asked for. */
  after(changes: ChangeSet): Told {
    if (this.told && this.changes === changes) return this.told;
    const { read, pass } = this;
    const { now, finishedAt } = this.context;
    const dryRun = read.watcher instanceof OperatorError || read.watcher.dryRun;
    const outcome = outcomeOf(dryRun ? [] : (pass?.due ?? []), changes);
    const tried = this.remember(outcome);
    this.add(tried, now, finishedAt(tried.deleted));
    const gone = new Set(outcome.deleted.map(({ job }) => job));
    const suspects = new Set([...(pass?.failed ?? []), ...outcome.failed.map(({ due }) => due)]);
    const failed = [...suspects].flatMap((due) => {
      const error = gone.has(due.job) ? undefined : this.failures.get(due.job);
      return error ? [{ due, error }] : [];
    });
    const output = this.output({ deleted: outcome.deleted, failed });
    if (output.isNews) this.offer = { status: output.status, at: now };
    this.inputs = this.inputsNow();
    this.changes = changes;
    return (this.told = { ...output, tried });
  }

  /** Without what an outcome repeats: a failure that is the last one itself was remembered by the engine, and not tried. */
  private remember({ deleted, failed }: RunOutcome): RunOutcome {
    const news = failed.filter(({ due, error }) => this.failures.get(due.job) !== error);
    for (const { due, error } of news) {
      // Where nobody has answered, nothing was said of the Job.
      if (error.reason !== 'Unreachable' && error.reason !== 'NotLeading') this.failures.set(due.job, error);
    }
    return { deleted, failed: news };
  }

  /** Doubled calls for the same Jobs count once. */
  private add({ deleted, failed }: RunOutcome, startedAt: number, finishedAt: number): void {
    if (deleted.length + failed.length === 0) return;
    const before = this.done;
    const gone = new Set([...(before?.deleted ?? []), ...deleted.map(({ job }) => job.metadata.uid)]);
    const failures = [...(before?.failed ?? []), ...failed.map(({ due: { job } }) => job.metadata.uid)];
    this.done = {
      startedAt: before?.startedAt ?? startedAt,
      finishedAt,
      deleted: gone,
      failed: new Set(failures.filter((uid) => !gone.has(uid))),
    };
    this.offer = undefined;
  }

  /** What its status is made of, which `done` never changes alone. */
  private inputsNow(): readonly unknown[] {
    const { read, pass, context } = this;
    if (!pass) return [read.cr, read.watcher];
    const { namespaces, matched, finished, skipped, due, failed, exceeded, overlaps, nextDeletion } = pass;
    return [
      ...[
        read.cr,
        read.watcher,
        context.isSkewed,
        namespaces.size,
        matched,
        finished,
        ...skipped.entries(),
      ].flat(),
      ...[exceeded?.due, nextDeletion, overlaps.most, ...overlaps.names],
      ...[...due.slice(0, MAX_CANDIDATES), ...failed].map(({ job }) => job),
    ];
  }

  private output(outcome: RunOutcome): StatusOutput {
    const { read, pass, done, toldAt, context } = this;
    const { cr, watcher } = read;
    const { now, isSkewed } = context;
    if (watcher instanceof OperatorError) {
      const conditions = refusedConditions(watcher);
      const frequencySeconds = REFUSED_FREQUENCY_SECONDS;
      return statusOf({
        cr,
        now,
        conditions,
        frequencySeconds,
        deletedBefore: 0,
        dryRun: false,
        isUrgent: false,
      });
    }
    return statusOf({
      ...{ cr, now, toldAt, pass, done, dryRun: watcher.dryRun, frequencySeconds: watcher.frequencySeconds },
      conditions: pass ? conditionsOf(watcher, pass, outcome, isSkewed) : [],
      deletedBefore: (done?.deleted.size ?? 0) - outcome.deleted.length,
      isUrgent: watcher.limits !== undefined && done !== undefined,
    });
  }
}

/** What a change set says of what was due. A Job that was gone already counts as neither. */
export function outcomeOf(due: readonly DueJob[], changes: ChangeSet): RunOutcome {
  const deleted: DueJob[] = [];
  const failed: { due: DueJob; error: OperatorError }[] = [];
  if (due.length === 0 || changes.length === 0) return { deleted, failed };
  const byId = new Map(due.map((one) => [objectId(one.job), one] as const));
  for (const { ref, action, error } of changes) {
    const one = byId.get(objectId(ref));
    if (!one) continue;
    if (action === 'deleted') deleted.push(one);
    else if (action === 'failed' && error) failed.push({ due: one, error });
  }
  return { deleted, failed };
}

function tellsTheRunOf({ lastStarted, lastRun }: JobWatcherStatus, status?: JobWatcherStatus): boolean {
  return (
    lastStarted !== undefined &&
    lastStarted === status?.lastStarted &&
    lastRun?.deleted === status.lastRun?.deleted &&
    lastRun?.failed === status.lastRun?.failed
  );
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

/** The deletion of a Job as it was judged, with what is told of it before and after. */
export function deleteStep({ job, watcher, finish, dueAt }: DueJob): SweepStep {
  const finishedAt = isoSeconds(finish.at);
  const ttlSeconds = (dueAt - finish.at) / 1000;
  return {
    object: job,
    propagation: watcher.propagation,
    announce: {
      type: 'Normal',
      reason: 'TTLExpired',
      action: 'Delete',
      note: `${nameFor(job, watcher)} deletes it: it ${finish.outcome} at ${finishedAt}, and its TTL is ${ttlSeconds} s`,
    },
    audit: { watcher: watcher.key, finish: finish.outcome, finishedAt, ttlSeconds, dueAt: isoSeconds(dueAt) },
  };
}

/** Users of a Job's namespace needn't be allowed to know names in others; the log has them. */
function nameFor({ metadata }: DueJob['job'], { key, namespace }: DueJob['watcher']): string {
  return namespace === metadata.namespace ? `JobWatcher ${key}` : 'A JobWatcher of another namespace';
}

export function jobKey({ job: { metadata } }: Pick<DueJob, 'job'>): string {
  return objectKey(metadata.namespace, metadata.name);
}

/** Later ones have no form that the API server takes, and a Job may say that it finished at any time. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** RFC 3339 in UTC, whole seconds. */
export function isoSeconds(milliseconds: number): string {
  return rfc3339Seconds(new Date(Math.min(milliseconds, LAST_TIME)));
}

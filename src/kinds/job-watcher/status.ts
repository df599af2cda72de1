import { isDeepStrictEqual } from 'node:util';
import type { ChangeSet } from '../../contract/change.js';
import { dateConditions } from '../../author/conditions.js';
import { OperatorError } from '../../contract/error.js';
import { objectId } from '../../contract/object.js';
import { given } from '../common.js';
import type { KeptJob } from './job.js';
import { isSameList } from './matching.js';
import { CONDITION_TYPES, conditionsOf, hasTried } from './messages.js';
import { isoSeconds, jobKey, type DueJob, type WatcherPass } from './pass.js';
import type { JobWatcherStatus, RunCounts } from './spec.js';
import type { ReadWatcher, Watcher } from './watcher.js';

/**
 * Errors of Jobs whose deletion has failed, each as long as it stays as it is: others come before them, so that no
 * number of them keeps the others from being deleted.
 */
export type Failures = WeakMap<KeptJob, OperatorError>;

/** Common part of all reports of one plan. */
export interface PlanContext {
  /** Milliseconds since the epoch, by the clock that counts. */
  readonly now: number;
  /** Whether the API server's clock counts, since ours is too far off. */
  readonly isSkewed: boolean;
  /** Returns when the last of these deletions was done; `now` where there is none. */
  readonly finishedAt: (deleted: readonly DueJob[]) => number;
}

/** Work done for a watcher since its status was written. */
interface Done {
  /** Milliseconds since the epoch: when the first of these runs began, with limits the last, and when the last ended. */
  readonly startedAt: number;
  readonly finishedAt: number;
  /** UIDs of Jobs. */
  readonly deleted: ReadonlySet<string>;
  readonly failed: ReadonlySet<string>;
}

/** A status, and whether it is to be written. */
interface Output {
  readonly status: JobWatcherStatus;
  /** Whether the status differs from the one that is there. */
  readonly isNews: boolean;
  /** Time from which the held back status may be written. @default - nothing is held back */
  readonly dueAt?: number;
}

/** Outcome of a plan for one watcher. */
export interface Result extends Output {
  readonly deleted: readonly DueJob[];
  readonly errors: readonly OperatorError[];
}

const MAX_CANDIDATES = 20;

const REFUSED_FREQUENCY_SECONDS = 60;

/**
 * Status of one watcher from plan to plan: written when a condition changes, and else once per `frequency` at most, where a
 * run has deleted or failed, or where the numbers have changed. What runs have done since is remembered here. Nothing is
 * decided by it but when a run with limits may follow the last, and a status the last; a restart may forget it.
 */
export class Report {
  /** Number of the plan that computed its status last; 0 before there was one. */
  turn = 0;
  /** Findings of the plan. @default - the spec can't work, and nothing was looked at */
  pass: WatcherPass | undefined;
  private done: Done | undefined;
  /** Time at which a status was written last. */
  private writtenAt = -Infinity;
  /** A status that has all of `done`, and was to be written, and when. */
  private offer: { readonly status: JobWatcherStatus; readonly at: number } | undefined;
  private inputs: readonly unknown[] = [];
  private result: Result | undefined;

  constructor(
    public read: ReadWatcher,
    private context: PlanContext,
    private readonly failures: Failures,
  ) {}

  /** Begins a plan, and forgets what the status that is there now has. */
  begin(read: ReadWatcher, context: PlanContext): void {
    // An edit of a user comes before what follows from others.
    if (read.cr.metadata.generation !== this.read.cr.metadata.generation) this.turn = 0;
    [this.read, this.context] = [read, context];
    this.pass = undefined;
    if (!this.offer || !isOfSameRun(this.offer.status, read.cr.status)) return;
    this.writtenAt = this.offer.at;
    this.done = this.offer = undefined;
  }

  /** Returns when a run with limits may follow the last: after `frequency`, but at once where the spec has changed. */
  opensAt({ limits, dryRun, frequencySeconds }: Watcher): number {
    if (!limits || dryRun) return -Infinity;
    const { metadata, status = {} } = this.read.cr;
    const { lastStarted, lastRun, observedGeneration } = status;
    if (!this.done && observedGeneration !== metadata.generation) return -Infinity;
    const last = lastRun && hasTried(lastRun) ? timeOf(lastStarted) : -Infinity;
    return (this.done?.startedAt ?? last) + frequencySeconds * 1000;
  }

  /** Whether its status has to be computed: what it is made of has changed, or it may be written now. */
  get isNew(): boolean {
    return this.context.now >= (this.dueAt ?? Infinity) || !isSameList(this.inputs, this.inputsNow());
  }

  /** Whether it has to be written, in its turn. What couldn't be written is tried with each plan. */
  get isPending(): boolean {
    return this.isNew || this.result?.isNews === true;
  }

  get dueAt(): number | undefined {
    return this.result?.dueAt;
  }

  /** Jobs that the plan is to delete; a plan may take a part of them. */
  get due(): readonly DueJob[] {
    const { watcher } = this.read;
    return watcher instanceof OperatorError || watcher.dryRun ? [] : (this.pass?.due ?? []);
  }

  /** Returns what a plan has led to, and remembers it. */
  after(changes: ChangeSet): Result {
    const { context, failures, pass } = this;
    const deleted: DueJob[] = [];
    const failed: DueJob[] = [];
    const errors: OperatorError[] = [];
    const due = new Map(changes.length > 0 ? this.due.map((one) => [objectId(one.job), one]) : []);
    for (const { ref, action, error } of due.size > 0 ? changes : []) {
      const one = due.get(objectId(ref));
      if (!one) continue;
      if (action === 'deleted') deleted.push(one);
      // A refusal that the engine remembers is the same error, and nothing was tried.
      if (!error || failures.get(one.job) === error) continue;
      failed.push(one);
      errors.push(error);
      // Without an answer, nothing was said of the Job.
      if (error.reason !== 'Unreachable' && error.reason !== 'NotLeading') failures.set(one.job, error);
    }
    if (deleted.length + failed.length > 0) this.add(deleted, failed, context.finishedAt(deleted));
    const gone = new Set(deleted.map(({ job }) => job));
    const stuck = new Set([...(pass?.failed ?? []), ...failed].map(({ job }) => job));
    const standing = [...stuck].flatMap((job) => (gone.has(job) ? [] : (failures.get(job) ?? [])));
    const output = this.output(deleted.length, standing);
    if (output.isNews) this.offer = { status: output.status, at: context.now };
    this.inputs = this.inputsNow();
    return (this.result = { ...output, deleted, errors });
  }

  /** Doubled calls for the same Jobs count once. */
  private add(deleted: readonly DueJob[], failed: readonly DueJob[], finishedAt: number): void {
    const { done = { startedAt: this.context.now, deleted: [], failed: [] } } = this;
    const uids = (jobs: readonly DueJob[]): string[] => jobs.map(({ job }) => job.metadata.uid);
    const gone = new Set([...done.deleted, ...uids(deleted)]);
    const stuck = [...done.failed, ...uids(failed)].filter((uid) => !gone.has(uid));
    const isLimited = [...deleted, ...failed].some(({ watcher }) => watcher.limits);
    const startedAt = isLimited ? this.context.now : done.startedAt;
    this.done = { startedAt, finishedAt, deleted: gone, failed: new Set(stuck) };
    this.offer = undefined;
  }

  /** Returns the parts that its status is made of; `done` never changes it alone. */
  private inputsNow(): readonly unknown[] {
    const { read, pass, context } = this;
    if (!pass) return [read.cr, read.watcher];
    const { namespaces, matched, finished, skipped, due, failed, exceeded, overlaps, nextDeletion } = pass;
    return [
      ...[read.cr, read.watcher, context.isSkewed, overlaps.id],
      ...[namespaces.size, matched, finished, exceeded, nextDeletion],
      ...[...skipped].flat(),
      ...[...due.slice(0, MAX_CANDIDATES), ...failed].map(({ job }) => job),
    ];
  }

  private output(deletedNow: number, errors: readonly OperatorError[]): Output {
    const { pass, done, writtenAt } = this;
    const { cr, watcher } = this.read;
    const { now, isSkewed } = this.context;
    const { generation } = cr.metadata;
    const before = ownPart(cr.status ?? {});
    const accepted = watcher instanceof OperatorError ? undefined : watcher;
    const conditions = conditionsOf(watcher, pass, errors, isSkewed);
    const candidates = accepted?.dryRun ? (pass?.due ?? []).slice(0, MAX_CANDIDATES).map(jobKey) : [];
    const status: JobWatcherStatus = {
      ...(generation !== undefined && { observedGeneration: generation }),
      ...this.run(before, (done?.deleted.size ?? 0) - deletedNow),
      ...(pass?.nextDeletion !== undefined && { nextDeletion: isoSeconds(pass.nextDeletion) }),
      ...(candidates.length > 0 && { dryRunCandidates: candidates }),
      conditions: dateConditions(conditions, before.conditions ?? [], new Date(now), generation),
    };
    if (isDeepStrictEqual(status, before)) return { status: before, isNews: false };
    const { frequencySeconds = REFUSED_FREQUENCY_SECONDS, limits } = accepted ?? {};
    const opensAt = Math.max(timeOf(before.lastFinished), writtenAt) + frequencySeconds * 1000;
    // The time of the next run with limits depends on the last.
    const isUrgent = limits !== undefined && done !== undefined;
    if (now < opensAt && !isUrgent && isDeepStrictEqual(verdictsOf(status), verdictsOf(before)))
      return { status: before, isNews: false, dueAt: opensAt };
    return { status, isNews: true };
  }

  /**
   * Returns the last run that is worth reporting: this one, or the one before.
   * @param deletedBefore how many of the deletions in `done` came before the pass, which saw those Jobs no more
   */
  private run(before: JobWatcherStatus, deletedBefore: number): Partial<JobWatcherStatus> {
    const { pass, done } = this;
    const { watcher } = this.read;
    const { now } = this.context;
    const last = given(before, 'lastStarted', 'lastFinished', 'lastRun');
    // When the next run with limits may come is known by the last alone.
    const isHeld = !(watcher instanceof OperatorError) && now < this.opensAt(watcher);
    if (!pass || (!done && isHeld)) return last;
    const reasons = [...pass.skipped].sort(([a], [b]) => (a < b ? -1 : 1));
    const counts: RunCounts = {
      namespaces: pass.namespaces.size,
      // Those that were deleted are among the ones that matched.
      matched: pass.matched + deletedBefore,
      finished: pass.finished + deletedBefore,
      deleted: done?.deleted.size ?? 0,
      failed: done?.failed.size ?? 0,
      ...(reasons.length > 0 && { skipped: Object.fromEntries(reasons) }),
    };
    if (!done && last.lastRun && isLeftBy(last.lastRun, counts)) return last;
    const startedAt = done?.startedAt ?? now;
    return {
      lastStarted: isoSeconds(startedAt),
      lastFinished: isoSeconds(Math.max(done?.finishedAt ?? now, startedAt)),
      lastRun: counts,
    };
  }
}

/** Reports whether the numbers are those that a run has left behind, so that there is nothing new: failures are still due. */
function isLeftBy(
  { namespaces, matched, finished, deleted, skipped = {} }: RunCounts,
  now: RunCounts,
): boolean {
  return (
    now.matched === matched - deleted &&
    now.finished === finished - deleted &&
    (deleted > 0 || now.namespaces === namespaces) &&
    isDeepStrictEqual(now.skipped ?? {}, skipped)
  );
}

function isOfSameRun({ lastStarted, lastRun }: JobWatcherStatus, status: JobWatcherStatus = {}): boolean {
  return (
    lastStarted !== undefined &&
    lastStarted === status.lastStarted &&
    lastRun?.deleted === status.lastRun?.deleted &&
    lastRun?.failed === status.lastRun?.failed
  );
}

/** Leaves out conditions of others, and sorts ours: they are a map in truth, whose order says nothing. */
function ownPart(status: JobWatcherStatus): JobWatcherStatus {
  if (!status.conditions) return status;
  const { conditions } = status;
  return {
    ...status,
    conditions: CONDITION_TYPES.flatMap((type) => conditions.find((one) => one.type === type) ?? []),
  };
}

function verdictsOf({ observedGeneration, conditions = [] }: JobWatcherStatus): readonly unknown[] {
  return [observedGeneration, ...conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`)];
}

/** Long ago where there is none. */
function timeOf(text: string | undefined): number {
  const time = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(time) ? -Infinity : time;
}

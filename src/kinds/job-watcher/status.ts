import { isDeepStrictEqual } from 'node:util';
import type { ChangeSet } from '../../contract/change.js';
import { dateConditions } from '../../author/status.js';
import type { OperatorError } from '../../contract/error.js';
import { keyOf, objectId } from '../../contract/object.js';
import { given } from '../common.js';
import type { KeptJob } from './job.js';
import { isSameList } from './matching.js';
import { CONDITION_TYPES, conditionsOf, hasTried } from './messages.js';
import { isoSeconds, type DueJob, type WatcherPass } from './pass.js';
import type { JobWatcherStatus, LiveWatcher, RunCounts } from './spec.js';
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
  /** Returns when a Job was deleted that the plan has deleted. */
  readonly deletedAt: (one: DueJob) => number;
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

/** Outcome of a plan for one watcher. */
export interface Result {
  readonly status: JobWatcherStatus;
  /** Whether the status differs from the one that is there, and is to be written. */
  readonly isNews: boolean;
  /** Time from which a status that is held back may be written. @default - nothing is held back */
  readonly dueAt?: number;
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
export class Report implements ReadWatcher {
  cr!: LiveWatcher;
  watcher: Watcher | undefined;
  error: OperatorError | undefined;
  /** Number of the plan that computed its status last; 0 before there was one. */
  turn = 0;
  /** Findings of the plan. @default - the spec can't work, and nothing was looked at */
  pass: WatcherPass | undefined;
  private context!: PlanContext;
  private done: Done | undefined;
  /** Time at which a status was written last. */
  private writtenAt = -Infinity;
  /** A status that has all of `done`, and was to be written, and when. */
  private offer: { readonly status: JobWatcherStatus; readonly at: number } | undefined;
  private inputs: readonly unknown[] = [];
  private result: Result | undefined;

  constructor(private readonly failures: Failures) {}

  /** Begins a plan, and forgets what the status that is there now has. */
  begin({ cr, watcher, error }: ReadWatcher, context: PlanContext): void {
    // An edit of a user comes before what follows from others.
    if (this.result && cr.metadata.generation !== this.cr.metadata.generation) this.turn = 0;
    [this.cr, this.watcher, this.error, this.context] = [cr, watcher, error, context];
    this.pass = undefined;
    if (!this.offer || !isOfSameRun(this.offer.status, cr.status)) return;
    this.writtenAt = this.offer.at;
    this.done = this.offer = undefined;
  }

  /** Time from which a run with limits may follow the last: after `frequency`, but at once where the spec has changed. */
  get opensAt(): number {
    const { watcher, done } = this;
    if (!watcher?.limits || watcher.dryRun) return -Infinity;
    const { metadata, status = {} } = this.cr;
    const { lastStarted, lastRun, observedGeneration } = status;
    if (!done && observedGeneration !== metadata.generation) return -Infinity;
    const last = lastRun && hasTried(lastRun) ? timeOf(lastStarted) : -Infinity;
    return (done?.startedAt ?? last) + watcher.frequencySeconds * 1000;
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
    return this.watcher?.dryRun ? [] : (this.pass?.due ?? []);
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
    if (deleted.length + failed.length > 0) this.add(deleted, failed);
    const gone = new Set(deleted.map(({ job }) => job));
    const stuck = new Set([...(pass?.failed ?? []), ...failed].map(({ job }) => job));
    const standing = [...stuck].flatMap((job) => (gone.has(job) ? [] : (failures.get(job) ?? [])));
    const output = this.output(deleted.length, standing);
    if (output.isNews) this.offer = { status: output.status, at: context.now };
    this.inputs = this.inputsNow();
    return (this.result = { ...output, deleted, errors });
  }

  /** Doubled calls for the same Jobs count once. */
  private add(deleted: readonly DueJob[], failed: readonly DueJob[]): void {
    const { now, deletedAt } = this.context;
    const { done = { startedAt: now, deleted: [], failed: [] }, watcher } = this;
    const uids = (jobs: readonly DueJob[]): string[] => jobs.map(({ job }) => job.metadata.uid);
    const gone = new Set([...done.deleted, ...uids(deleted)]);
    const stuck = [...done.failed, ...uids(failed)].filter((uid) => !gone.has(uid));
    const startedAt = watcher?.limits ? now : done.startedAt;
    const finishedAt = Math.max(now, ...deleted.map(deletedAt));
    this.done = { startedAt, finishedAt, deleted: gone, failed: new Set(stuck) };
    this.offer = undefined;
  }

  /** Returns the parts that its status is made of; `done` never changes it alone. */
  private inputsNow(): readonly unknown[] {
    const { cr, watcher, error, pass, context } = this;
    if (!pass) return [cr, error?.message];
    const { namespaces, matched, finished, skipped, due, failed, exceeded, overlaps, nextDeletion } = pass;
    return [
      ...[cr, watcher, context.isSkewed, overlaps.id],
      ...[namespaces.size, matched, finished, exceeded, nextDeletion],
      ...[...skipped].flat(),
      ...[...due.slice(0, MAX_CANDIDATES), ...failed].map(({ job }) => job),
    ];
  }

  private output(deletedNow: number, errors: readonly OperatorError[]): Omit<Result, 'deleted' | 'errors'> {
    const { cr, watcher, pass, done, writtenAt } = this;
    const { now, isSkewed } = this.context;
    const { generation } = cr.metadata;
    const before = ownPart(cr.status ?? {});
    const conditions = conditionsOf(this, errors, isSkewed);
    const candidates = watcher?.dryRun ? (pass?.due ?? []).slice(0, MAX_CANDIDATES) : [];
    const status: JobWatcherStatus = {
      ...(generation !== undefined && { observedGeneration: generation }),
      ...this.run(before, (done?.deleted.size ?? 0) - deletedNow),
      ...(pass?.nextDeletion !== undefined && { nextDeletion: isoSeconds(pass.nextDeletion) }),
      ...(candidates.length > 0 && { dryRunCandidates: candidates.map(({ job }) => keyOf(job)) }),
      conditions: dateConditions(conditions, before.conditions ?? [], new Date(now), generation),
    };
    if (isDeepStrictEqual(status, before)) return { status: before, isNews: false };
    const { frequencySeconds = REFUSED_FREQUENCY_SECONDS, limits } = watcher ?? {};
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
    const { now } = this.context;
    const last = given(before, 'lastStarted', 'lastFinished', 'lastRun');
    // When the next run with limits may come is known by the last alone.
    if (!pass || (!done && now < this.opensAt)) return last;
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
  return text === undefined ? -Infinity : Date.parse(text);
}

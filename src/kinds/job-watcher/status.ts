import { isDeepStrictEqual } from 'node:util';
import { dateConditions } from '../../contract/conditions.js';
import type { Condition, ConditionProps } from '../../contract/conditions.js';
import { CONDITION_TYPES } from './conditions.js';
import type { WatcherPass } from './pass.js';
import { isoSeconds, jobKey } from './report.js';
import type { Done } from './report.js';
import type { JobWatcherStatus, RunCounts } from './spec.js';
import type { LiveWatcher } from './watcher.js';

/** What a status is made of. */
export interface StatusInput {
  readonly cr: LiveWatcher;
  /** Milliseconds since the epoch, as everything here. */
  readonly now: number;
  readonly conditions: readonly ConditionProps[];
  /** @default - the spec can't work, and nothing was looked at */
  readonly pass?: WatcherPass | undefined;
  /** @default - nothing was done since the last status */
  readonly done?: Done | undefined;
  /** How many of the deletions in `done` came before the pass, which saw those Jobs no more. */
  readonly deletedBefore: number;
  readonly dryRun: boolean;
  /** Between two writes, unless a condition changes. */
  readonly frequencySeconds: number;
  /** @default - no status was written since the start, and the end of the last run has to do */
  readonly toldAt?: number | undefined;
  /** The run has to be told at once, since the time of the next depends on it. */
  readonly isUrgent: boolean;
}

export interface StatusOutput {
  readonly status: JobWatcherStatus;
  /** Whether it tells something new; if not, it is the one that is there. */
  readonly isNews: boolean;
  /** When what is held back now may be told. @default - nothing is held back */
  readonly dueAt?: number;
}

export const MAX_CANDIDATES = 20;

/**
 * The status of a watcher: written when a condition changes, and else once per `frequency` at most, where a run has
 * deleted or failed, or where the numbers are others than before.
 */
export function statusOf(input: StatusInput): StatusOutput {
  const { cr, now } = input;
  const before = written(cr.status ?? {});
  const status = newStatus(input, before);
  if (sameStatus(status, before)) return { status: before, isNews: false };
  const toldAt = Math.max(timeOf(before.lastFinished), input.toldAt ?? -Infinity);
  const opensAt = toldAt + input.frequencySeconds * 1000;
  if (!input.isUrgent && !conditionsChanged(status, before) && now < opensAt)
    return { status: before, isNews: false, dueAt: opensAt };
  return { status, isNews: true };
}

function newStatus(input: StatusInput, before: JobWatcherStatus): JobWatcherStatus {
  const { cr, now, pass } = input;
  const { generation } = cr.metadata;
  const conditions = dateConditions(input.conditions, before.conditions ?? [], new Date(now), generation);
  const candidates = pass && input.dryRun ? pass.due.slice(0, MAX_CANDIDATES).map(jobKey) : undefined;
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...runOf(input, before),
    ...(pass?.nextDeletion !== undefined && { nextDeletion: isoSeconds(pass.nextDeletion) }),
    ...(candidates && candidates.length > 0 && { dryRunCandidates: candidates }),
    conditions,
  };
}

/** The last run that is worth telling: this one, or the one before. */
function runOf(
  { now, pass, done, deletedBefore }: StatusInput,
  { lastStarted, lastFinished, lastRun }: JobWatcherStatus,
): Pick<JobWatcherStatus, 'lastStarted' | 'lastFinished' | 'lastRun'> {
  const told = {
    ...(lastStarted !== undefined && { lastStarted }),
    ...(lastFinished !== undefined && { lastFinished }),
    ...(lastRun && { lastRun }),
  };
  if (!pass) return told;
  const counts = countsOf(pass, done, deletedBefore);
  if (!done && lastRun && isLeftBy(lastRun, counts)) return told;
  return {
    lastStarted: isoSeconds(done?.startedAt ?? now),
    lastFinished: isoSeconds(Math.max(done?.finishedAt ?? now, done?.startedAt ?? now)),
    lastRun: counts,
  };
}

/** Those that were deleted are among the ones that matched. */
function countsOf(
  { namespaces, matched, finished, skipped }: WatcherPass,
  done: Done | undefined,
  deletedBefore: number,
): RunCounts {
  const reasons = [...skipped].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    namespaces: namespaces.size,
    ...{ matched: matched + deletedBefore, finished: finished + deletedBefore },
    ...{ deleted: done?.deleted.size ?? 0, failed: done?.failed.size ?? 0 },
    ...(reasons.length > 0 && { skipped: Object.fromEntries(reasons) }),
  };
}

/** Whether the numbers are those that a run has left behind, so that there is nothing new: what failed is still due. */
function isLeftBy(run: RunCounts, now: RunCounts): boolean {
  const { deleted } = run;
  return (
    now.matched === run.matched - deleted &&
    now.finished === run.finished - deleted &&
    (deleted > 0 || now.namespaces === run.namespaces) &&
    isDeepStrictEqual(now.skipped ?? {}, run.skipped ?? {})
  );
}

const FIELDS = [
  'observedGeneration',
  'lastStarted',
  'lastFinished',
  'nextDeletion',
  'lastRun',
  'dryRunCandidates',
] as const;

/** Of the status that is there, what is ours. */
function written(status: JobWatcherStatus): JobWatcherStatus {
  const fields = FIELDS.filter((field) => status[field] !== undefined).map((field) => [field, status[field]]);
  const conditions = status.conditions?.filter(({ type }) => CONDITION_TYPES.has(type));
  return { ...Object.fromEntries(fields), ...(conditions && { conditions }) } as JobWatcherStatus;
}

function sameStatus(a: JobWatcherStatus, b: JobWatcherStatus): boolean {
  return (
    FIELDS.every((field) => isDeepStrictEqual(a[field], b[field])) &&
    isDeepStrictEqual(conditionsBy(a, ...TOLD), conditionsBy(b, ...TOLD))
  );
}

function conditionsChanged(a: JobWatcherStatus, b: JobWatcherStatus): boolean {
  const verdicts = (status: JobWatcherStatus): unknown => conditionsBy(status, 'status', 'reason');
  return a.observedGeneration !== b.observedGeneration || !isDeepStrictEqual(verdicts(a), verdicts(b));
}

const TOLD = ['status', 'reason', 'message', 'observedGeneration'] as const;

function conditionsBy({ conditions = [] }: JobWatcherStatus, ...fields: (keyof Condition)[]): unknown {
  return Object.fromEntries(
    conditions.map((condition) => [condition.type, fields.map((field) => condition[field])]),
  );
}

/** Long ago where there is none. */
export function timeOf(text: string | undefined): number {
  const time = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(time) ? -Infinity : time;
}

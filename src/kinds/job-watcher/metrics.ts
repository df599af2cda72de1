import type { Metric, Sample } from '../../contract/controller.js';
import type { WatcherPass } from './pass.js';
import { REASONS } from './reasons.js';
import type { RunOutcome } from './report.js';

const DELETED = 'reconstruct_jobs_deleted_total';
const ERRORS = 'reconstruct_jobs_delete_errors_total';
const SKIPPED = 'reconstruct_jobs_skipped';
const PENDING = 'reconstruct_jobs_pending';
const LAG = 'reconstruct_jobs_deletion_lag_seconds';

export const metrics: readonly Metric[] = [
  {
    ...{ type: 'counter', name: DELETED, labels: ['outcome'] },
    help: 'Jobs that were deleted by JobWatchers, by how they had finished: completed or failed',
  },
  {
    ...{ type: 'counter', name: ERRORS, labels: ['reason'] },
    help: 'Deletions of Jobs that failed, by reason',
  },
  {
    ...{ type: 'gauge', name: SKIPPED, labels: ['reason'] },
    help: 'Jobs that JobWatchers match and leave, by reason; once for each watcher but those that others decide for',
  },
  { type: 'gauge', name: PENDING, help: 'Jobs that are due and have yet to be deleted' },
  {
    ...{ type: 'histogram', name: LAG, buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600] },
    help: 'From when a Job was due to its deletion, which a backlog, limits and the pace of deletions delay',
  },
];

/** What a plan has done and found. */
export interface Measured {
  readonly passes: readonly WatcherPass[];
  readonly outcomes: readonly RunOutcome[];
  /** Jobs that were due when the plan was made. */
  readonly due: number;
  /** When each of the deleted Jobs was, in milliseconds since the epoch. */
  readonly deletedAt: (job: RunOutcome['deleted'][number]) => number;
}

export function samplesOf({ passes, outcomes, due, deletedAt }: Measured): Sample[] {
  const deletions = outcomes.flatMap(({ deleted }) => deleted);
  const failures = outcomes.flatMap(({ failed }) => failed);
  return [
    ...deletions.flatMap((one) => [
      { metric: DELETED, labels: { outcome: one.finish.outcome }, value: 1 },
      { metric: LAG, value: Math.max(0, deletedAt(one) - one.dueAt) / 1000 },
    ]),
    ...failures.map(({ error }) => ({ metric: ERRORS, labels: { reason: error.reason }, value: 1 })),
    ...REASONS.filter((reason) => reason !== 'DecidedByOther').map((reason) => ({
      ...{ metric: SKIPPED, labels: { reason } },
      value: passes.reduce((sum, { skipped }) => sum + (skipped.get(reason) ?? 0), 0),
    })),
    { metric: PENDING, value: Math.max(0, due - deletions.length) },
  ];
}

import { sumBy, whereLeading } from './alert.js';
import type { Alert } from './alert.js';

/** Tried again at once; what is refused for good is counted once, and not with each look. */
const PASSING = ['Conflict', 'Unreachable', 'ServerOverloaded'];

/** Of the Jobs that JobWatchers delete. */
export const jobAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructJobDeletionLag', severity: 'warning', for: '15m' },
    expr: (query) =>
      `histogram_quantile(0.9, ${sumBy(['le'], `rate(${query('reconstruct_jobs_deletion_lag_seconds_bucket')}[15m])`)}) > 300`,
    summary: 'Jobs are deleted long after they were due',
    description: 'One Job in ten is deleted {{ $value | humanizeDuration }} too late, or later.',
  },
  {
    ...{ name: 'ReconstructJobsPending', severity: 'warning' },
    expr: (query) =>
      whereLeading(query, `min_over_time(${query('reconstruct_jobs_pending')}[30m]) > 0`) +
      ` unless on (namespace, job) ${sumBy([], `increase(${query('reconstruct_jobs_deletion_lag_seconds_count')}[30m])`)} > 0`,
    summary: 'Jobs are due, and none is deleted',
    description: '{{ $value }} Jobs or more have been due for half an hour, and none was deleted.',
  },
  {
    ...{ name: 'ReconstructJobDeletionErrors', severity: 'warning' },
    expr: (query) => {
      const errors = query('reconstruct_jobs_delete_errors_total', `reason!~"${PASSING.join('|')}"`);
      // A counter that begins at 1 has not increased.
      const begun = `${sumBy(['reason'], errors)} unless ${sumBy(['reason'], `${errors} offset 1h`)}`;
      return `${sumBy(['reason'], `increase(${errors}[1h])`)} > 0 or (${begun})`;
    },
    summary: 'Jobs can not be deleted',
    description: 'Deletions of Jobs fail: {{ $labels.reason }}.',
  },
];

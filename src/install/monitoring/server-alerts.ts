import { maxBy } from './alert.js';
import type { Alert } from './alert.js';

/** Between the operator and the API server. */
export const serverAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructApiServerUnreachable', severity: 'critical', for: '5m' },
    expr: (query) => `${maxBy(['pod'], query('reconstruct_server_paused', 'reason="unreachable"'))} == 1`,
    summary: 'The operator can not reach the API server',
    description: '{{ $labels.pod }} has no answer from the API server, and holds its requests back.',
  },
  {
    ...{ name: 'ReconstructApiServerOverloaded', severity: 'warning', for: '15m' },
    expr: (query) =>
      maxBy(['pod'], `avg_over_time(${query('reconstruct_server_paused', 'reason="overloaded"')}[15m])`) +
      ' > 0.5',
    summary: 'The API server asks the operator to wait',
    description:
      '{{ $labels.pod }} was held back for {{ $value | humanizePercentage }} of the last 15 minutes.',
  },
  {
    ...{ name: 'ReconstructWatchSilent', severity: 'warning', for: '1m' },
    expr: (query) =>
      `${maxBy(['pod', 'name'], query('reconstruct_watch_silence_seconds'))} > 150` +
      ` unless on (namespace, pod) ${maxBy(['pod'], query('reconstruct_server_paused'))} == 1`,
    summary: 'A watch is silent: the operator may be blind',
    description:
      '{{ $labels.pod }} has heard nothing of {{ $labels.name }} for {{ $value | humanizeDuration }}.',
  },
];

import { maxBy, sumBy } from './alert.js';
import type { Alert } from './alert.js';

const rate = (selected: string): string => `rate(${selected}[15m])`;

/** Between the operator and the API server. */
export const serverAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructApiServerUnreachable', severity: 'critical', for: '5m' },
    expr: (query) => `${maxBy(['pod'], query('reconstruct_server_unreachable'))} == 1`,
    summary: 'The operator can not reach the API server',
    description: '{{ $labels.pod }} has no answer from the API server, and holds its requests back.',
  },
  {
    ...{ name: 'ReconstructApiServerOverloaded', severity: 'warning', for: '15m' },
    expr: (query) =>
      sumBy(['pod'], rate(query('rest_client_requests_total', 'code=~"429|503|504"'))) +
      ` / ${sumBy(['pod'], rate(query('rest_client_requests_total')))} > 0.2`,
    summary: 'The API server refuses much of what the operator sends',
    description:
      '{{ $value | humanizePercentage }} of what {{ $labels.pod }} has sent was answered with 429, 503 or 504.',
  },
  {
    ...{ name: 'ReconstructWatchSilent', severity: 'warning', for: '1m' },
    expr: (query) =>
      `${maxBy(['pod', 'name'], query('reconstruct_watch_silence_seconds'))} > 150` +
      ` unless on (namespace, pod) ${maxBy(['pod'], query('reconstruct_server_unreachable'))} == 1`,
    summary: 'A watch is silent: the operator may be blind',
    description:
      '{{ $labels.pod }} has heard nothing of {{ $labels.name }} for {{ $value | humanizeDuration }}.',
  },
];

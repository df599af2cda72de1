import { sumBy, whereLeading } from './alert.js';
import type { Alert } from './alert.js';
import type { Query } from './query.js';

/** Per second over a quarter of an hour, of each controller. */
function rateOf(query: Query, metric: string): string {
  return sumBy(['controller'], `rate(${query(metric)}[15m])`);
}

/** What a user has to put right is told once, and tried again now and then: that is no failure of the operator. */
function passingErrors(query: Query): string {
  const terminal = rateOf(query, 'controller_runtime_terminal_reconcile_errors_total');
  return `(${rateOf(query, 'controller_runtime_reconcile_errors_total')} - ${terminal})`;
}

/** Of the work itself. */
export const workAlerts: readonly Alert[] = [
  {
    ...{ name: 'ReconstructReconcileErrors', severity: 'warning', for: '15m' },
    expr: (query) =>
      `${passingErrors(query)} > 0.02 and ${passingErrors(query)} / ` +
      `${rateOf(query, 'controller_runtime_reconcile_total')} > 0.1`,
    summary: 'Reconciles fail again and again',
    description: '{{ $labels.controller }}: {{ $value | printf "%.2f" }} reconciles fail each second.',
  },
  {
    ...{ name: 'ReconstructPanics', severity: 'warning' },
    expr: (query) =>
      `${sumBy(['controller'], `increase(${query('controller_runtime_reconcile_panics_total')}[15m])`)} > 0`,
    summary: 'A kind has thrown, which is a bug',
    description: 'The construct, the status function or another part of {{ $labels.controller }} has thrown.',
  },
  {
    ...{ name: 'ReconstructQueueBacklog', severity: 'warning', for: '5m' },
    expr: (query) =>
      whereLeading(query, `${query('reconstruct_queue_oldest_seconds')} > 300`) +
      ` unless on (namespace, pod) ${query('reconstruct_server_unreachable')} == 1`,
    summary: 'Work is not begun',
    description: '{{ $labels.controller }}: something has waited for {{ $value | humanizeDuration }}.',
  },
  {
    ...{ name: 'ReconstructDrift', severity: 'info', for: '15m' },
    expr: (query) =>
      `${sumBy(['controller', 'manager'], `rate(${query('reconstruct_drift_total')}[15m])`)} > 0.1`,
    summary: 'Somebody keeps changing what the operator says',
    description: '{{ $labels.manager }} has changes put right {{ $value | printf "%.2f" }} times a second.',
  },
];

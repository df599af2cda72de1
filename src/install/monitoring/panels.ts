import { MEMORY_LIMIT_MEBIBYTES } from '../resources.js';
import type { Query } from './query.js';

/** One graph. */
export interface Panel {
  readonly title: string;
  /** As Grafana names units. @default - a number */
  readonly unit?: 'none' | 's' | 'bytes' | 'reqps' | 'ops';
  /** PromQL, with the text of the legend. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
}

/** A row of graphs side by side. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const RATE = '$__rate_interval';

export function rowsOf(query: Query): readonly Row[] {
  const rate = (by: string, metric: string, ...matchers: string[]): string =>
    `sum by (${by}) (rate(${query(metric, ...matchers)}[${RATE}]))`;
  const p99 = (by: string, metric: string): string =>
    `histogram_quantile(0.99, ${rate(`${by}, le`, `${metric}_bucket`)})`;
  const resources = (by: string, ...matchers: string[]): string =>
    `sum by (${by}) (max by (type, state, reason) (${query('reconstruct_custom_resources', ...matchers)}))`;
  const one = (title: string, expr: string, legend: string, unit?: Panel['unit']): Panel => ({
    ...{ title, queries: [[expr, legend]] },
    ...(unit && { unit }),
  });
  return [
    {
      title: 'Custom resources',
      panels: [
        one('By state', resources('type, state'), '{{type}} {{state}}'),
        one('Not ready, by reason', resources('type, reason', 'state!="ready"'), '{{type}} {{reason}}'),
        one('Who leads', query('leader_election_master_status'), '{{pod}}'),
      ],
    },
    {
      title: 'Work',
      panels: [
        one(
          'Reconciles',
          rate('controller, result', 'controller_runtime_reconcile_total'),
          '{{controller}} {{result}}',
          'ops',
        ),
        one(
          'Reconciles, 99 %',
          p99('controller', 'controller_runtime_reconcile_time_seconds'),
          '{{controller}}',
          's',
        ),
        {
          title: 'Failures',
          unit: 'ops',
          queries: [
            [rate('controller', 'controller_runtime_reconcile_errors_total'), '{{controller}} failed'],
            [
              rate('controller', 'controller_runtime_terminal_reconcile_errors_total'),
              '{{controller}} for good',
            ],
            [rate('controller', 'controller_runtime_reconcile_panics_total'), '{{controller}} threw'],
          ],
        },
      ],
    },
    {
      title: 'Queues',
      panels: [
        one(
          'Keys that wait',
          `sum by (controller, priority) (${query('workqueue_depth')})`,
          '{{controller}} {{priority}}',
        ),
        one('The oldest key', query('reconstruct_queue_oldest_seconds'), '{{pod}} {{controller}}', 's'),
        one(
          'Wait for a worker, 99 %',
          p99('controller', 'workqueue_queue_duration_seconds'),
          '{{controller}}',
          's',
        ),
      ],
    },
    {
      title: 'Changes',
      panels: [
        one(
          'Objects',
          rate('controller, action', 'reconstruct_changes_total', 'action!="unchanged"'),
          '{{controller}} {{action}}',
          'ops',
        ),
        one(
          'Applies',
          rate('controller, outcome', 'reconstruct_applies_total'),
          '{{controller}} {{outcome}}',
          'ops',
        ),
        one(
          'Corrections, by whose change',
          rate('controller, manager', 'reconstruct_drift_total'),
          '{{controller}} {{manager}}',
          'ops',
        ),
      ],
    },
    {
      title: 'API server',
      panels: [
        one('Requests', rate('method, code', 'rest_client_requests_total'), '{{method}} {{code}}', 'reqps'),
        one('Answers, 99 %', p99('verb', 'rest_client_request_duration_seconds'), '{{verb}}', 's'),
        {
          title: 'API server out of reach',
          queries: [[query('reconstruct_server_unreachable'), '{{pod}}']],
        },
        one(
          'Silence of watches',
          `max by (name) (${query('reconstruct_watch_silence_seconds')})`,
          '{{name}}',
          's',
        ),
        one('Lists', rate('name', 'reflector_lists_total'), '{{name}}', 'ops'),
        one('Objects in memory', `max by (type) (${query('reconstruct_store_objects')})`, '{{type}}'),
      ],
    },
    {
      title: 'Jobs',
      panels: [
        one('Deleted', rate('outcome', 'reconstruct_jobs_deleted_total'), '{{outcome}}', 'ops'),
        {
          title: 'From when a Job was due to its deletion',
          unit: 's',
          queries: [
            [
              `histogram_quantile(0.5, ${rate('le', 'reconstruct_jobs_deletion_lag_seconds_bucket')})`,
              '50 %',
            ],
            [
              `histogram_quantile(0.9, ${rate('le', 'reconstruct_jobs_deletion_lag_seconds_bucket')})`,
              '90 %',
            ],
          ],
        },
        {
          title: 'Due, and left',
          queries: [
            [`max by (namespace) (${query('reconstruct_jobs_pending')})`, 'due'],
            [`max by (reason) (${query('reconstruct_jobs_skipped')})`, 'left: {{reason}}'],
            [`sum by (reason) (${query('reconstruct_jobs_delete_errors_total')})`, 'failed: {{reason}}'],
          ],
        },
      ],
    },
    {
      title: 'Process',
      panels: [
        {
          title: 'Memory',
          unit: 'bytes',
          queries: [
            [query('process_resident_memory_bytes'), '{{pod}}'],
            [query('nodejs_heap_size_used_bytes'), '{{pod}} heap'],
            [`vector(${MEMORY_LIMIT_MEBIBYTES} * 1024 * 1024)`, 'limit'],
          ],
        },
        one('Processor', rate('pod', 'process_cpu_seconds_total'), '{{pod}}', 's'),
        one(
          'Event loop, most lag',
          query('reconstruct_event_loop_lag_seconds', 'quantile="max"'),
          '{{pod}}',
          's',
        ),
      ],
    },
  ];
}

import { METRICS_SERVICE } from '../names.js';
import { MEMORY_LIMIT_MEBIBYTES } from '../arguments.js';
import { queryIn } from './prometheus.js';
import type { Query } from './prometheus.js';

/** Grafana lays panels out on a grid of so many columns. */
const COLUMNS = 24;
const PANEL_COLUMNS = 8;
const PANEL_LINES = 8;

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };

/**
 * A dashboard as Grafana imports it: one for any number of installations, of which one is chosen.
 * @see https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
 */
export function dashboardText(): string {
  const dashboard = {
    uid: 'reconstruct',
    title: 'Reconstruct',
    tags: ['kubernetes', 'operator'],
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    schemaVersion: 39,
    time: { from: 'now-3h', to: 'now' },
    templating: { list: [datasourceVariable, namespaceVariable] },
    panels: layOut(rowsOf(queryIn('$namespace'))),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

const datasourceVariable = {
  name: 'datasource',
  label: 'Data source',
  type: 'datasource',
  query: 'prometheus',
};

const namespaces = `label_values(leader_election_master_status{job="${METRICS_SERVICE}"}, namespace)`;
const namespaceVariable = {
  ...{ name: 'namespace', label: 'Operator in', type: 'query', datasource: DATASOURCE },
  ...{ query: namespaces, definition: namespaces, refresh: 2, sort: 1 },
};

function layOut(rows: readonly Row[]): object[] {
  const laid: object[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    laid.push({
      id: laid.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    });
    y++;
    for (const [index, panel] of panels.entries()) {
      const place = index * PANEL_COLUMNS;
      const gridPos = {
        ...{ x: place % COLUMNS, y: y + Math.floor(place / COLUMNS) * PANEL_LINES },
        ...{ w: PANEL_COLUMNS, h: PANEL_LINES },
      };
      laid.push(graph(panel, laid.length + 1, gridPos));
    }
    y += Math.ceil((panels.length * PANEL_COLUMNS) / COLUMNS) * PANEL_LINES;
  }
  return laid;
}

function graph({ title, unit = 'none', queries }: Panel, id: number, gridPos: object): object {
  return {
    ...{ id, type: 'timeseries', title, datasource: DATASOURCE, gridPos },
    fieldConfig: { defaults: { unit, custom: { fillOpacity: 10 } }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([expr, legendFormat], index) => ({
      ...{
        refId: String.fromCharCode('A'.charCodeAt(0) + index),
        datasource: DATASOURCE,
        expr,
        legendFormat,
      },
    })),
  };
}

/** One graph. */
interface Panel {
  readonly title: string;
  /** As Grafana names units. @default - a number */
  readonly unit?: 'none' | 's' | 'bytes' | 'reqps' | 'ops';
  /** PromQL, with the text of the legend. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
}

/** A row of graphs side by side. */
interface Row {
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

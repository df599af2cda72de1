import { METRICS_SERVICE } from '../names.js';
import { rowsOf } from './panels.js';
import type { Panel, Row } from './panels.js';
import { queryIn } from './query.js';

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

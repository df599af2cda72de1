import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { alertGroups } from '../../../src/install/monitoring/alerts.js';
import { dashboardText, rowsOf } from '../../../src/install/monitoring/dashboard.js';
import { queryIn } from '../../../src/install/monitoring/prometheus.js';
import { registeredMetrics } from '../../telemetry/registered-metrics.js';

const query = queryIn('ops');
const queries = [
  ...Object.values(alertGroups).flatMap((alerts) =>
    alerts.map((alert): [string, string] => [alert.name, alert.expr(query)]),
  ),
  ...rowsOf(query).flatMap(({ panels }) =>
    panels.flatMap((panel) => panel.queries.map(([expr]): [string, string] => [panel.title, expr])),
  ),
];

/** The names of metrics, wherever they stand. */
const OURS =
  /\b(?:reconstruct|controller_runtime|workqueue|reflector|rest_client|leader_election|process|nodejs)_[a-z_]+/g;

/** What Prometheus adds to whatever it collects, and `le` of a histogram's buckets. */
const ADDED = ['job', 'namespace', 'pod', 'le'];

/** By name, with those that make up a histogram. */
let labels: ReadonlyMap<string, readonly string[]>;

beforeAll(async () => {
  labels = new Map([
    ['up', []],
    ...(await registeredMetrics()).flatMap((metric) =>
      (metric.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']).map(
        (suffix) => [metric.name + suffix, metric.labels] as const,
      ),
    ),
  ]);
});

/** Each selector of a query, with the labels that it compares. */
function selectorsIn(expr: string): { metric: string; compared: string[] }[] {
  return [...expr.matchAll(/([a-z_]+)\{([^}]*)\}/g)].map(([, metric = '', matchers = '']) => ({
    metric,
    compared: [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label),
  }));
}

describe.each(queries)('A query of %s', (_, expr) => {
  it('asks for metrics that there are, by labels that they have', () => {
    const selectors = selectorsIn(expr);
    for (const { metric, compared } of selectors) {
      expect(labels.has(metric), metric).toBe(true);
      expect(compared.filter((label) => ![...ADDED, ...labels.get(metric)!].includes(label))).toEqual([]);
    }
    const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names = '']) =>
      names.split(', '),
    );
    const known = [...ADDED, ...selectors.flatMap(({ metric }) => labels.get(metric) ?? [])];
    expect(grouped.filter((label) => !known.includes(label))).toEqual([]);
  });

  it('asks for those of this installation alone', () => {
    for (const [, matchers] of expr.matchAll(/\{([^}]*)\}/g))
      expect(matchers).toMatch(/^job="reconstruct-metrics",namespace="ops"/);
    // Nothing is asked for without a selector.
    const names = expr.replaceAll(/\{[^}]*\}/g, '{').match(OURS) ?? [];
    expect(names.filter((name) => !expr.includes(`${name}{`))).toEqual([]);
  });
});

it.each(globSync('docs/{runbooks,monitoring}/*.md', { cwd: repoFolder() }).concat('docs/troubleshooting.md'))(
  '%s names metrics that there are',
  (page) => {
    const named = readFileSync(join(repoFolder(), page), 'utf8').match(OURS) ?? [];
    expect(named.filter((name) => !labels.has(name) && !labels.has(`${name}_bucket`))).toEqual([]);
  },
);

describe('The dashboard', () => {
  const dashboard = JSON.parse(dashboardText()) as {
    panels: { id: number; type: string; gridPos: { x: number; y: number; w: number; h: number } }[];
  };

  it('has each panel in a place of its own', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { gridPos } of panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(x).toBeLessThan(24);
          expect(taken.has(`${x},${y}`)).toBe(false);
          taken.add(`${x},${y}`);
        }
  });

  it('has all queries, of the namespace that is chosen', () => {
    const graphs = dashboard.panels.filter(({ type }) => type === 'timeseries');
    expect(graphs).toHaveLength(rowsOf(query).flatMap(({ panels }) => panels).length);
    expect(dashboardText()).not.toContain('namespace=\\"ops\\"');
    expect(dashboardText()).toContain('namespace=\\"$namespace\\"');
  });
});

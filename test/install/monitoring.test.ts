import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { applyInstallation, availableMonitoring } from '../../src/install/apply.js';
import { alertGroups, dashboardText } from '../../src/install/chart.js';
import { MONITORING_PARTS, RUNBOOKS } from '../../src/install/props.js';
import { uninstall } from '../../src/install/uninstall.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { ALERTED_REASONS } from '../../src/telemetry/metrics.js';
import { asMarkdown } from '../telemetry/markdown.js';
import { registeredMetrics } from '../telemetry/registered-metrics.js';
import { MemoryCluster } from './memory-cluster.js';

const at = (path: string): string => join(repoFolder(), path);
const alerts = alertGroups('ops').flatMap(({ rules }) => rules);

interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  /** None of a row. */
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = JSON.parse(dashboardText()) as { panels: readonly Panel[] };
const queries = [
  ...alerts.map(({ alert, expr }) => [alert, expr, 'ops'] as const),
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr, '$namespace'] as const),
  ),
];

/** Names of metrics, wherever they stand. */
const OURS =
  /\b(?:reconstruct|controller_runtime|workqueue|reflector|rest_client|leader_election|process|nodejs)_[a-z_]+/g;

/** Labels that Prometheus adds, and `le` of a histogram's buckets. */
const ADDED = ['job', 'namespace', 'pod', 'le'];

/** Labels by the name of the metric. */
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

it.each(queries)(
  'the query of %s asks for metrics of this operator, by labels that they have',
  (_, expr, of) => {
    const selectors = [...expr.matchAll(/([a-z_]+)\{([^}]*)\}/g)];
    for (const [, metric = '', matchers = ''] of selectors) {
      const compared = [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label);
      expect(labels.has(metric), metric).toBe(true);
      expect(compared.filter((label) => ![...ADDED, ...labels.get(metric)!].includes(label))).toEqual([]);
      expect(matchers.startsWith(`job="reconstruct-metrics",namespace="${of}"`)).toBe(true);
    }
    const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names = '']) =>
      names.split(', '),
    );
    const known = [...ADDED, ...selectors.flatMap(([, metric = '']) => labels.get(metric) ?? [])];
    expect(grouped.filter((label) => !known.includes(label))).toEqual([]);
    // Nothing is asked for without a selector.
    const names = expr.replaceAll(/\{[^}]*\}/g, '{').match(OURS) ?? [];
    expect(names.filter((name) => !expr.includes(`${name}{`))).toEqual([]);
  },
);

it.each(globSync('docs/{runbooks,monitoring}/*.md', { cwd: repoFolder() }).concat('docs/troubleshooting.md'))(
  '%s names metrics that there are',
  (page) => {
    const named = readFileSync(at(page), 'utf8').match(OURS) ?? [];
    expect(named.filter((name) => !labels.has(name) && !labels.has(`${name}_bucket`))).toEqual([]);
  },
);

it('the reasons that alerts select have a series, however many others there are', () => {
  const selected = alerts.flatMap(({ expr }) => [...expr.matchAll(/reason!?=~?"([^"]*)"/g)]);
  const named = selected.flatMap(([, reasons = '']) => reasons.split('|'));
  expect([...new Set(named)].sort()).toEqual([...ALERTED_REASONS].sort());
});

it('the panels of the dashboard do not overlap', () => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
});

/** `-u` behind the name of this file brings it up to date. */
it('docs/monitoring lists the alerts', async () => {
  const page = at('docs/monitoring/README.md');
  const rows = alerts.map(({ alert, labels: { severity }, for: time = '', annotations: { summary } }) => [
    ...[`[${alert}](../runbooks/${alert}.md)`, severity, time, summary],
  ]);
  const table = asMarkdown([['alert', 'severity', 'for', 'what'], ...rows]);
  const text = readFileSync(page, 'utf8');
  await expect(text.replace(/^\| alert [^]*?\n\n/m, () => `${table}\n`)).toMatchFileSnapshot(page);
});

describe('docs/runbooks', () => {
  const pages = readdirSync(at(RUNBOOKS)).filter((name) => name !== 'README.md');

  it('has a page for each alert, to which it leads, and an alert for each page', () => {
    expect(pages.sort()).toEqual(alerts.map(({ alert }) => `${alert}.md`).sort());
    const urls = alerts.map(({ annotations }) => annotations.runbook_url);
    expect(urls.filter((url) => !existsSync(at(url)))).toEqual([]);
    const [elsewhere] = alertGroups('ops', 'https://example.com/runbooks')[0]!.rules;
    expect(elsewhere!.annotations.runbook_url).toBe('https://example.com/runbooks/ReconstructDown.md');
  });

  it.each(pages)('%s says the same things in the same order', (page) => {
    const text = readFileSync(at(`${RUNBOOKS}/${page}`), 'utf8');
    expect([...text.matchAll(/^(?:#+ |- \*\*)(\w.*?)(?:$|\.\*\* )/gm)].map(([, part]) => part)).toEqual([
      ...[page.replace('.md', ''), 'Threshold', 'What users notice', 'When to ignore'],
      ...['Find the cause', 'Fix'],
    ]);
  });

  const searches = pages.flatMap((page) =>
    [...readFileSync(at(`${RUNBOOKS}/${page}`), 'utf8').matchAll(/^kubectl logs .* \| grep (.*)$/gm)].flatMap(
      ([, text = '']) => {
        const words = text.replace(/ \| .*/, '').matchAll(/'([^']*)'|"([^"]*)"|([^\s-]\S*)/g);
        return [...words].flatMap(([, ...forms]) => forms.find(Boolean) ?? []);
      },
    ),
  );
  const sources = globSync('src/**/*.ts', { cwd: repoFolder() }).map((file) =>
    readFileSync(at(file), 'utf8'),
  );

  it.each([...new Set(searches)])('what is searched for in the log can be there: %s', (text) => {
    expect(sources.some((source) => new RegExp(text).test(source))).toBe(true);
  });
});

describe('monitoring', () => {
  const definition = (name: string): AnyObject => ({
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name } },
  });
  const monitors = definition('servicemonitors.monitoring.coreos.com');
  const rules = definition('prometheusrules.monitoring.coreos.com');
  const monitoring = { parts: MONITORING_PARTS };
  const kinds = [jobWatcher];
  const props = { namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2 };
  const nothing = (): void => undefined;

  it.each([
    ['all', [monitors, rules], ['service-monitor', 'rules', 'dashboard'], []],
    ['what there is', [rules], ['rules', 'dashboard'], ['servicemonitors']],
    ['the dashboard', [], ['dashboard'], ['servicemonitors', 'prometheusrules']],
  ])('takes %s, and names what the cluster lacks', async (_, present, taken, lacking) => {
    const reported: string[] = [];
    const cluster = new MemoryCluster(present);
    const { parts } = await availableMonitoring(monitoring, cluster, (line) => reported.push(line));
    expect(parts).toEqual(taken);
    expect(reported.map((line) => /^There is no CustomResourceDefinition (\w+)\./.exec(line)?.[1])).toEqual(
      lacking,
    );
  });

  it('is removed by an installation without it, and by uninstall, but for objects of others with our labels', async () => {
    const cluster = new MemoryCluster([monitors, rules]);
    const added = (): string[] =>
      cluster.all
        .filter(({ kind, metadata: { name } }) => /Monitor|Rule$/.test(kind) || name.endsWith('dashboard'))
        .map(({ kind }) => kind)
        .sort();
    await applyInstallation({ ...props, monitoring }, cluster, nothing);
    const ours = cluster.all.find(({ kind }) => kind === 'PrometheusRule')!;
    cluster.put({ ...ours, metadata: { ...ours.metadata, name: 'copied', uid: 'other' } });
    expect(added()).toEqual(['ConfigMap', 'PrometheusRule', 'PrometheusRule', 'ServiceMonitor']);
    const fewer = { ...props, monitoring: { parts: ['rules'] as const } };
    await applyInstallation(fewer, cluster, nothing, { replace: true });
    expect(added()).toEqual(['PrometheusRule', 'PrometheusRule']);
    await applyInstallation({ ...props, monitoring }, cluster, nothing);
    await uninstall({ namespace: 'ops', kinds, purge: false, dryRun: false }, cluster, nothing);
    expect(added()).toEqual(['PrometheusRule']);
  });
});

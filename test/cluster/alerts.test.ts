import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { alertGroups } from '../../src/install/monitoring/alerts.js';
import { rowsOf } from '../../src/install/monitoring/dashboard.js';
import { ruleGroups } from '../../src/install/monitoring/monitoring.js';
import { queryIn } from '../../src/install/monitoring/prometheus.js';
import { METRICS_SERVICE } from '../../src/install/names.js';
import { alertCases } from './support/alert-cases.js';
import { promtool } from './support/promtool.js';

const namespace = 'reconstruct-system';
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'alerts-'));
  await promtool('--version');
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function file(name: string, content: object): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, stringify(content));
  return path;
}

test('Prometheus takes every rule, and every query of the dashboard', async () => {
  await promtool('check', 'rules', await file('rules.yaml', { groups: ruleGroups({ namespace }) }));
  const queries = rowsOf(queryIn(namespace)).flatMap(({ panels }) =>
    panels.flatMap((panel) => panel.queries),
  );
  const rules = queries.map(([expr], index) => ({
    ...{ record: `panel:${index}`, expr: expr.replaceAll('$__rate_interval', '2m') },
  }));
  await promtool('check', 'rules', await file('panels.yaml', { groups: [{ name: 'panels', rules }] }));
});

/** With what it is routed by, and with each label that its description names. */
function firing(alert: string, description: string): string {
  const named = [...description.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => `${label!}!=""`);
  const routed = [`namespace="${namespace}"`, `job="${METRICS_SERVICE}"`, 'severity!=""'];
  return [`alertname="${alert}"`, 'alertstate="firing"', ...routed, ...named].join(',');
}

test('every alert fires as it should, and is quiet otherwise', async () => {
  const alerts = Object.values(alertGroups).flat();
  const names = alerts.map(({ name }) => name);
  const descriptions = new Map(alerts.map(({ name, description }) => [name, description]));
  for (const fires of [true, false])
    expect(new Set(alertCases.filter((each) => each.fires === fires).map(({ alert }) => alert))).toEqual(
      new Set(names),
    );
  const tests = alertCases.map(({ alert, fires, why, at, series }) => ({
    ...{ name: `${alert} ${fires ? 'fires' : 'is quiet'}: ${why}`, interval: '30s' },
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{${firing(alert, descriptions.get(alert) ?? '')}}) or vector(0)`,
        ...{ eval_time: at, exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }] },
      },
    ],
  }));
  await file('rules.yaml', { groups: ruleGroups({ namespace }) });
  await promtool(
    ...['test', 'rules'],
    await file('tests.yaml', { rule_files: ['rules.yaml'], evaluation_interval: '30s', tests }),
  );
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { alertGroups, dashboardText } from '../../src/install/chart.js';
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
  await promtool('check', 'rules', await file('rules.yaml', { groups: alertGroups(namespace) }));
  const { panels } = JSON.parse(dashboardText()) as { panels: { targets?: { expr: string }[] }[] };
  const queries = panels.flatMap(({ targets = [] }) => targets);
  const rules = queries.map(({ expr }, index) => ({
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
  const alerts = alertGroups(namespace).flatMap(({ rules }) => rules);
  const names = alerts.map(({ alert }) => alert);
  const descriptions = new Map(alerts.map(({ alert, annotations }) => [alert, annotations.description]));
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
  await file('rules.yaml', { groups: alertGroups(namespace) });
  await promtool(
    ...['test', 'rules'],
    await file('tests.yaml', { rule_files: ['rules.yaml'], evaluation_interval: '30s', tests }),
  );
});

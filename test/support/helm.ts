import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reconstruct, runTool } from './commands.js';
import type { Ran } from './commands.js';

/** The namespace of releases. */
export const RELEASE_NAMESPACE = 'ops';

/** A version that the chart will do with: Helm's own may be older. */
const KUBERNETES = ['--kube-version', '1.36.0'];

/** Writes the chart as `install` does with these arguments. Returns its folder. */
export async function writeChart(folder: string, ...args: readonly string[]): Promise<string> {
  const chart = await mkdtemp(join(folder, 'chart-'));
  await reconstruct('install', '-o', 'helm', '--output-dir', chart, ...args);
  return chart;
}

/** `helm template` of a chart with these values. */
export async function templated(folder: string, chart: string, values: object): Promise<Ran> {
  const file = join(await mkdtemp(join(folder, 'values-')), 'values.json');
  await writeFile(file, JSON.stringify(values));
  const release = ['release', chart, '--namespace', RELEASE_NAMESPACE];
  return runTool('helm', ['template', ...release, '--values', file, ...KUBERNETES], folder);
}

/** Returns what Helm makes of the chart with these values. @throws Error with what Helm says */
export async function renderChart(folder: string, values: object): Promise<string> {
  const { code, stdout, stderr } = await templated(folder, await writeChart(folder), values);
  if (code !== 0) throw new Error(`helm template: ${stderr}`);
  return stdout;
}

/** `helm lint` of a chart; every warning is an error. */
export async function linted(folder: string, chart: string): Promise<Ran> {
  return runTool('helm', ['lint', '--strict', chart, ...KUBERNETES], folder);
}

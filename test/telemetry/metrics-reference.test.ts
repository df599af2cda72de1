import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { KindMetrics } from '../../src/engine/kind-metrics.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { observeProcess } from '../../src/telemetry/process-metrics.js';

const REFERENCE = join(repoFolder(), 'docs/reference/metrics.md');

/** Whatever is registered, by the kinds that come with the project too, one line each. */
async function table(): Promise<string> {
  const metrics = new Metrics();
  onTestFinished(observeProcess(metrics));
  const controllers = builtInKinds.flatMap((kind) => kind.controllers({ render: () => [] }));
  for (const controller of controllers) new KindMetrics(metrics, controller.metrics ?? [], silentLogger);
  const labels = new Map(
    metrics.registry
      .getMetricsAsArray()
      .map((metric) => [metric.name, (metric as { labelNames?: readonly string[] }).labelNames ?? []]),
  );
  const known = await metrics.registry.getMetricsAsJSON();
  const rows = known
    .map(({ name, type, help }) => [
      `\`${name}\``,
      String(type),
      (labels.get(name) ?? []).map((label) => `\`${label}\``).join(', '),
      help.replace(/<\w+>/g, '`$&`'),
    ])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  return asMarkdown([['name', 'type', 'labels', 'meaning'], ...rows]);
}

/** As prettier lays a table out. */
function asMarkdown(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |\n`;
  const [head = [], ...body] = rows;
  return [head, widths.map((width) => '-'.repeat(width)), ...body].map(line).join('');
}

/** `-u` after the name of this file brings the reference up to date. */
it('is in the reference, each metric with its labels and its meaning', async () => {
  const reference = readFileSync(REFERENCE, 'utf8');
  const made = await table();
  await expect(reference.replace(/(?:^\|.*\n)+/m, () => made)).toMatchFileSnapshot(REFERENCE);
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { Metrics, observeProcess } from '../../src/telemetry/metrics.js';
import { asMarkdown } from './markdown.js';
import { registeredMetrics } from './registered-metrics.js';

it('shows the counters of a controller from its start on, at zero', async () => {
  const metrics = new Metrics();
  metrics.controllerStarted('widget', 16);
  const text = await metrics.scrape();
  for (const result of ['success', 'error', 'requeue', 'requeue_after'])
    expect(text).toContain(`controller_runtime_reconcile_total{controller="widget",result="${result}"} 0`);
  expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="widget"} 16');
});

it('updates values when it is scraped', async () => {
  const metrics = new Metrics();
  let size = 1;
  metrics.onScrape(() => {
    metrics.storeObjects.set({ type: 'Service' }, size);
  });
  size = 7;
  expect(await metrics.scrape()).toContain('reconstruct_store_objects{type="Service"} 7');
});

/** `-u` after the name of this file updates the reference. */
it('is in the reference, each metric with its labels and its meaning', async () => {
  const reference = join(repoFolder(), 'docs/reference/metrics.md');
  const rows = (await registeredMetrics())
    .map(({ name, type, labels, help }) => [
      ...[`\`${name}\``, type, labels.map((label) => `\`${label}\``).join(', ')],
      help.replace(/<\w+>/g, '`$&`'),
    ])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  const table = asMarkdown([['name', 'type', 'labels', 'meaning'], ...rows]);
  const text = readFileSync(reference, 'utf8').replace(/(?:^\|.*\n)+/m, () => table);
  await expect(text).toMatchFileSnapshot(reference);
});

/** Returns a sample by its name and labels. */
function sample(text: string, series: string): number {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

const busy = (milliseconds: number): void => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};

it('reports how late the event loop was since the last scrape', async () => {
  const metrics = new Metrics();
  observeProcess(metrics);
  const max = 'reconstruct_event_loop_lag_seconds{quantile="max"}';
  const turn = () => new Promise((resolve) => setTimeout(resolve, 150));
  // On a busy machine the first sample may come after the first pause.
  const worst = await vi.waitFor(
    async () => {
      await turn();
      busy(400);
      await turn();
      const lag = sample(await metrics.scrape(), max);
      expect(lag).toBeGreaterThan(0.2);
      return lag;
    },
    { timeout: 30_000, interval: 1 },
  );
  const later = async () => {
    expect(sample(await metrics.scrape(), max)).toBeLessThan(worst);
  };
  await vi.waitFor(later, { timeout: 10_000, interval: 250 });
});

it('shows what dashboards of any process need', async () => {
  const metrics = new Metrics();
  observeProcess(metrics);
  const first = await metrics.scrape();
  expect(first).toContain('reconstruct_event_loop_lag_seconds{quantile="p99"} 0');
  busy(50);
  const second = await metrics.scrape();
  const of = (name: string): number => sample(second, name);
  expect(of('process_cpu_seconds_total')).toBeGreaterThan(sample(first, 'process_cpu_seconds_total'));
  expect(of('process_resident_memory_bytes')).toBeGreaterThan(of('nodejs_heap_size_used_bytes'));
  expect(of('process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000);
});

import { expect, it, onTestFinished, vi } from 'vitest';
import { Metrics, observeProcess } from '../../src/telemetry/metrics.js';

/** What a sample is at, by its name and labels. */
function sample(text: string, series: string): number {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

const busyMilliseconds = (milliseconds: number): void => {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
};
const turn = () => new Promise((resolve) => setTimeout(resolve, 150));

it('tells how late the event loop was since the last scrape', async () => {
  const metrics = new Metrics();
  onTestFinished(observeProcess(metrics));
  const max = 'reconstruct_event_loop_lag_seconds{quantile="max"}';
  // On a busy machine the first sample may come after the first pause.
  const worst = await vi.waitFor(
    async () => {
      await turn();
      busyMilliseconds(1_000);
      await turn();
      const lag = sample(await metrics.scrape(), max);
      expect(lag).toBeGreaterThan(0.5);
      return lag;
    },
    { timeout: 30_000, interval: 1 },
  );
  await vi.waitFor(
    async () => {
      expect(sample(await metrics.scrape(), max)).toBeLessThan(worst);
    },
    { timeout: 10_000, interval: 250 },
  );
});

it('tells what dashboards of any process show', async () => {
  const metrics = new Metrics();
  onTestFinished(observeProcess(metrics));
  const first = await metrics.scrape();
  expect(first).toContain('reconstruct_event_loop_lag_seconds{quantile="p99"} 0');
  busyMilliseconds(50);
  const second = await metrics.scrape();
  const cpu = 'process_cpu_seconds_total';
  expect(sample(second, cpu)).toBeGreaterThan(sample(first, cpu));
  expect(sample(second, 'process_resident_memory_bytes')).toBeGreaterThan(
    sample(second, 'nodejs_heap_size_used_bytes'),
  );
  expect(sample(second, 'process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000);
});

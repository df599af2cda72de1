import { expect, it } from 'vitest';
import { Metrics } from '../../src/telemetry/metrics.js';

it('shows the counters of a controller from its start on, at zero', async () => {
  const metrics = new Metrics();
  metrics.controllerStarted('widget', 16);
  const text = await metrics.scrape();
  for (const result of ['success', 'error', 'requeue', 'requeue_after'])
    expect(text).toContain(`controller_runtime_reconcile_total{controller="widget",result="${result}"} 0`);
  expect(text).toContain('controller_runtime_max_concurrent_reconciles{controller="widget"} 16');
});

it('brings values up to date when it is read', async () => {
  const metrics = new Metrics();
  let size = 1;
  metrics.onScrape(() => {
    metrics.storeObjects.set({ type: 'Service' }, size);
  });
  size = 7;
  expect(await metrics.scrape()).toContain('reconstruct_store_objects{type="Service"} 7');
});

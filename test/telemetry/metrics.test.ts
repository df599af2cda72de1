import { expect, it } from 'vitest';
import { Metrics } from '../../src/telemetry/metrics.js';

it('has the names that existing dashboards know', async () => {
  const names = (await new Metrics().registry.getMetricsAsJSON()).map(({ name }) => name).sort();
  expect(names).toEqual([
    'controller_runtime_active_workers',
    'controller_runtime_max_concurrent_reconciles',
    'controller_runtime_reconcile_errors_total',
    'controller_runtime_reconcile_time_seconds',
    'controller_runtime_reconcile_total',
    'controller_runtime_terminal_reconcile_errors_total',
    'reconstruct_changes_total',
    'reconstruct_store_objects',
    'rest_client_requests_total',
    'workqueue_depth',
    'workqueue_retries_total',
  ]);
});

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

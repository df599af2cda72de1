import { expect, it } from 'vitest';
import { Metrics } from '../../src/telemetry/metrics.js';

it('has the names that existing dashboards know', async () => {
  const names = (await new Metrics().registry.getMetricsAsJSON()).map(({ name }) => name).sort();
  expect(names).toEqual([
    'controller_runtime_active_workers',
    'controller_runtime_max_concurrent_reconciles',
    'controller_runtime_reconcile_errors_total',
    'controller_runtime_reconcile_panics_total',
    'controller_runtime_reconcile_time_seconds',
    'controller_runtime_reconcile_timeouts_total',
    'controller_runtime_reconcile_total',
    'controller_runtime_terminal_reconcile_errors_total',
    'leader_election_master_status',
    'leader_election_slowpath_total',
    'reconstruct_applies_total',
    'reconstruct_changes_total',
    'reconstruct_custom_resources',
    'reconstruct_drift_total',
    'reconstruct_event_loop_lag_seconds',
    'reconstruct_events_total',
    'reconstruct_fenced_writes_total',
    'reconstruct_leadership_losses_total',
    'reconstruct_policy_changes_total',
    'reconstruct_policy_needs_restart',
    'reconstruct_policy_refused',
    'reconstruct_queue_oldest_seconds',
    'reconstruct_server_unreachable',
    'reconstruct_store_objects',
    'reconstruct_watch_silence_seconds',
    'reflector_last_resource_version',
    'reflector_list_duration_seconds',
    'reflector_lists_total',
    'reflector_short_watches_total',
    'reflector_watches_total',
    'rest_client_request_duration_seconds',
    'rest_client_request_retries_total',
    'rest_client_requests_total',
    'workqueue_adds_total',
    'workqueue_depth',
    'workqueue_longest_running_processor_seconds',
    'workqueue_queue_duration_seconds',
    'workqueue_retries_total',
    'workqueue_unfinished_work_seconds',
    'workqueue_work_duration_seconds',
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

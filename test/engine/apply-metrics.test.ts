import { expect, it } from 'vitest';
import { ApplyMetrics } from '../../src/engine/apply-metrics.js';
import { Metrics } from '../../src/telemetry/metrics.js';

it('names twenty managers, and puts all others under one label', async () => {
  const metrics = new Metrics();
  const counted = new ApplyMetrics(metrics);
  for (let n = 0; n < 30; n++) counted.corrected('widget', [`manager-${String(n)}`]);
  counted.corrected('widget', ['manager-3']);
  counted.corrected('widget', []);

  const lines = (await metrics.scrape())
    .split('\n')
    .filter((line) => line.startsWith('reconstruct_drift_total{'));

  expect(lines).toHaveLength(21);
  expect(lines).toContain('reconstruct_drift_total{controller="widget",manager="manager-3"} 2');
  expect(lines).toContain('reconstruct_drift_total{controller="widget",manager="other"} 11');
});

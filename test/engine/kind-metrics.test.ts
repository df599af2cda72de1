import { describe, expect, it } from 'vitest';
import type { Metric, Sample } from '../../src/contract/controller.js';
import { KindMetrics } from '../../src/engine/runner.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import { recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';

const DELETED: Metric = { type: 'counter', name: 'demo_deleted_total', help: 'Deleted', labels: ['outcome'] };
const PENDING: Metric = { type: 'gauge', name: 'demo_pending', help: 'Pending' };
const LAG: Metric = { type: 'histogram', name: 'demo_lag_seconds', help: 'Lag', buckets: [1, 2] };

function setup(declared: readonly Metric[] = [DELETED, PENDING, LAG]) {
  const metrics = new Metrics();
  const lines: LogLine[] = [];
  const own = new KindMetrics(metrics, declared, recordingLogger(lines));
  const record = (...samples: Sample[]): void => {
    own.record(plan({ samples: () => samples }), []);
  };
  return { metrics, lines, record };
}

describe('Metrics of a kind', () => {
  it('count, replace and sort into buckets', async () => {
    const { metrics, record } = setup();
    const deleted = { metric: DELETED.name, labels: { outcome: 'ok' }, value: 2 };
    record(deleted, deleted, { metric: PENDING.name, value: 5 }, { metric: LAG.name, value: 1.5 });
    record({ metric: PENDING.name, value: 3 });
    const text = await metrics.scrape();
    expect(text).toContain('demo_deleted_total{outcome="ok"} 4');
    expect(text).toContain('demo_pending 3');
    expect(text).toContain('demo_lag_seconds_bucket{le="1"} 0');
    expect(text).toContain('demo_lag_seconds_bucket{le="2"} 1');
  });

  it('are shared by controllers that declare the same, and refused where they do not', () => {
    const { metrics, lines } = setup();
    const log = recordingLogger(lines);
    expect(() => new KindMetrics(metrics, [DELETED], log)).not.toThrow();
    for (const other of [{ type: 'gauge' }, { labels: ['reason'] }] as const)
      expect(() => new KindMetrics(metrics, [{ ...DELETED, ...other }], log)).toThrow('demo_deleted_total');
    expect(() => new KindMetrics(metrics, [{ ...LAG, buckets: [1] }], log)).toThrow('demo_lag_seconds');
  });

  it('are refused where they have the name of one of this project', () => {
    const name = 'controller_runtime_reconcile_total';
    expect(() => setup([{ ...DELETED, name }])).toThrow(name);
  });

  it.each([
    ['isn’t declared', { metric: 'demo_other', value: 1 }],
    ['has a label too many', { metric: PENDING.name, labels: { name: 'web' }, value: 1 }],
    ['counts down', { metric: DELETED.name, labels: { outcome: 'ok' }, value: -1 }],
  ])('cost nobody anything where a sample %s: it is logged as a bug', (_, sample) => {
    const { lines, record } = setup();
    record(sample);
    expect(lines).toMatchObject([{ level: 'error' }]);
  });
});

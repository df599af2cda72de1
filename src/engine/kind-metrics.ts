import type { ChangeSet } from '../contract/change.js';
import type { Plan } from '../contract/controller.js';
import type { Metric } from '../contract/metric.js';
import { declareMetric } from '../telemetry/declared-metric.js';
import type { RecordSample } from '../telemetry/declared-metric.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';

/** What the plans of one controller measure, by the metrics that it declares. */
export class KindMetrics {
  private readonly byName: ReadonlyMap<string, RecordSample>;

  constructor(
    metrics: Metrics,
    declared: readonly Metric[],
    private readonly log: Logger,
  ) {
    this.byName = new Map(declared.map((metric) => [metric.name, declareMetric(metrics.registry, metric)]));
  }

  /** Never throws: what is wrong with a sample is a bug of the kind, and no reason to lose its key. */
  record({ samples }: Plan, changes: ChangeSet): void {
    if (!samples) return;
    try {
      for (const { metric, labels = {}, value } of samples(changes)) {
        const record = this.byName.get(metric);
        if (!record) throw new Error(`${metric} isn't among the controller's metrics`);
        record(labels, value);
      }
    } catch (error) {
      this.log.error({ err: error }, 'Samples can not be recorded, which is a bug of the kind');
    }
  }
}

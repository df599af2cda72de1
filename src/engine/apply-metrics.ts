import type { Metrics } from '../telemetry/metrics.js';

/** A label for every manager that ever was would be a label too many. */
const MANAGERS_TOLD = 20;

/** Counts what applies lead to. */
export class ApplyMetrics {
  private readonly managers = new Set<string>();

  constructor(private readonly metrics: Metrics) {}

  /** An apply was answered. @param outcome `created`, `changed`, `unchanged`, or the reason of the failure */
  applied(controller: string, outcome: string): void {
    this.metrics.applies.inc({ controller, outcome });
  }

  /** Fields that others had changed were put right. */
  corrected(controller: string, managers: readonly string[]): void {
    for (const manager of managers.length === 0 ? ['unknown'] : managers) {
      if (this.managers.size < MANAGERS_TOLD) this.managers.add(manager);
      const label = this.managers.has(manager) ? manager : 'other';
      this.metrics.drift.inc({ controller, manager: label });
    }
  }
}

import { KindMetrics } from '../../src/engine/loop/runner.js';
import { builtInKinds } from '../../src/kinds/index.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics, observeProcess } from '../../src/telemetry/metrics.js';

export interface RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** Whatever is registered, by the kinds that come with the project too. */
export async function registeredMetrics(): Promise<RegisteredMetric[]> {
  const metrics = new Metrics();
  observeProcess(metrics);
  const controllers = builtInKinds.flatMap((kind) => kind.controllers({ render: () => [] }));
  for (const controller of controllers) new KindMetrics(metrics, controller.metrics ?? [], silentLogger);
  const labels = new Map(
    metrics.registry
      .getMetricsAsArray()
      .map((metric) => [metric.name, (metric as { labelNames?: readonly string[] }).labelNames ?? []]),
  );
  const known = await metrics.registry.getMetricsAsJSON();
  return known.map(({ name, type, help }) => ({
    ...{ name, help, type: String(type), labels: labels.get(name) ?? [] },
  }));
}

import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import { SECONDS } from './metrics.js';

/** A metric that isn't among those of this project itself. */
export interface DeclaredMetric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  /** @default - none */
  readonly labels?: readonly string[];
  /** @default - 5 ms to 60 s */
  readonly buckets?: readonly number[];
}

export type RecordSample = (labels: Readonly<Record<string, string>>, value: number) => void;

/**
 * Registers a metric, or finds the one that was registered by an equal declaration. One without labels is there from the
 * first scrape on.
 * @throws Error where another metric has that name
 */
export function declareMetric(registry: Registry, metric: DeclaredMetric): RecordSample {
  const { type, name } = metric;
  const known = registry.getSingleMetric(name);
  const made = known ?? make(registry, metric);
  if (type === 'counter' && made instanceof Counter) {
    return (labels, value) => {
      made.inc(labels, value);
    };
  }
  if (type === 'gauge' && made instanceof Gauge) {
    return (labels, value) => {
      made.set(labels, value);
    };
  }
  if (type === 'histogram' && made instanceof Histogram) {
    return (labels, value) => {
      made.observe(labels, value);
    };
  }
  throw new Error(`There is a metric ${name} already, and it is no ${type}`);
}

function make(registry: Registry, { type, name, help, labels = [], buckets }: DeclaredMetric): object {
  const common = { name, help, labelNames: [...labels], registers: [registry] };
  switch (type) {
    case 'counter':
      return new Counter(common);
    case 'gauge':
      return new Gauge(common);
    case 'histogram':
      return new Histogram({ ...common, buckets: [...(buckets ?? SECONDS)] });
  }
}

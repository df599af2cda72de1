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

/** What was declared, by name. */
const declarations = new WeakMap<Registry, Map<string, DeclaredMetric>>();

/**
 * Registers a metric, or finds the one that was registered by an equal declaration; the text of help doesn't count. One
 * without labels is there from the first scrape on.
 * @throws Error where another metric has that name, be it one of this project's own
 */
export function declareMetric(registry: Registry, metric: DeclaredMetric): RecordSample {
  const { type, name } = metric;
  const declared = declarations.get(registry) ?? new Map<string, DeclaredMetric>();
  declarations.set(registry, declared);
  const known = registry.getSingleMetric(name);
  const before = declared.get(name);
  if (known && !(before && isEqual(before, metric)))
    throw new Error(
      `There is another metric ${name} already: give this one another name, or declare both alike`,
    );
  declared.set(name, metric);
  const made = known ?? make(registry, metric);
  return (labels, value) => {
    if (made instanceof Counter) made.inc(labels, value);
    else if (made instanceof Gauge) made.set(labels, value);
    else if (made instanceof Histogram) made.observe(labels, value);
    else throw new TypeError(`${name} is no ${type}`);
  };
}

function isEqual(a: DeclaredMetric, b: DeclaredMetric): boolean {
  const told = ({ type, labels = [], buckets = [] }: DeclaredMetric): string =>
    JSON.stringify([type, [...labels].sort(), buckets]);
  return told(a) === told(b);
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

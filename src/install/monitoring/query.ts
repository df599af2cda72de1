import { METRICS_SERVICE } from '../names.js';

/** Writes a selector of a metric of this operator alone: others have metrics of the same names. */
export type Query = (metric: string, ...matchers: readonly string[]) => string;

/**
 * @param namespace where the operator runs, or a variable of a dashboard
 * @param matchers of every query
 */
export function queryIn(namespace: string): Query {
  // Prometheus adds these two: the job is named after the Service.
  const common = [`job="${METRICS_SERVICE}"`, `namespace="${namespace}"`];
  return (metric, ...matchers) => `${metric}{${[...common, ...matchers].join(',')}}`;
}

import { resourceType } from '../../contract/resource.js';
import { METRICS_SERVICE } from '../names.js';

/**
 * What is used of the Prometheus operator's types.
 * @see https://prometheus-operator.dev/docs/api-reference/api/
 */
const GROUP = 'monitoring.coreos.com';

export const serviceMonitorType = resourceType({ apiVersion: `${GROUP}/v1`, kind: 'ServiceMonitor' });
export const prometheusRuleType = resourceType({ apiVersion: `${GROUP}/v1`, kind: 'PrometheusRule' });

export interface ServiceMonitorSpec {
  /** Of Services. */
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly namespaceSelector: { readonly matchNames: readonly string[] };
  readonly endpoints: readonly {
    /** By its name in the Service. */
    readonly port: string;
    /** A duration of Prometheus. */
    readonly interval: string;
  }[];
}

export interface PrometheusRuleSpec {
  readonly groups: readonly RuleGroup[];
}

/** The same as in a file that Prometheus itself reads. */
export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly AlertingRule[];
}

export interface AlertingRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

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

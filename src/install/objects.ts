import type { KubernetesObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';

/** Prints a line on what was done, or would be. */
export type Report = (line: string) => void;

export const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** Types of the Prometheus operator. @see https://prometheus-operator.dev/docs/api-reference/api/ */
const MONITORING = 'monitoring.coreos.com/v1';
export const serviceMonitorType = resourceType({ apiVersion: MONITORING, kind: 'ServiceMonitor' });
export const prometheusRuleType = resourceType({ apiVersion: MONITORING, kind: 'PrometheusRule' });

/** Returns the type of an object of Kubernetes' own, whose plural follows from its kind. */
export function typeOf({ apiVersion, kind, metadata }: KubernetesObject): ResourceType {
  return resourceType({ apiVersion, kind, namespaced: metadata.namespace !== undefined });
}

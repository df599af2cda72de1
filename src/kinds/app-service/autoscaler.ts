import type { V2HorizontalPodAutoscalerSpec, V2MetricSpec } from '@kubernetes/client-node';
import { given } from './given.js';
import type { Identity } from './metadata.js';
import type { AppServiceSpec, Autoscaling } from './spec.js';
import type { Wire } from './wire.js';

/**
 * It scales the Deployment, not the AppService, so that `size` stays as it is written in Git. Without any metric
 * Kubernetes takes 80 % of the CPU request.
 */
export function autoscalerSpec(
  { name }: Identity,
  { autoscaling }: AppServiceSpec,
): Wire<V2HorizontalPodAutoscalerSpec> | undefined {
  if (!autoscaling) return undefined;
  return {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
    ...given(autoscaling, 'minReplicas', 'maxReplicas', 'behavior'),
    ...given({ metrics: metrics(autoscaling) }, 'metrics'),
  };
}

/** The two that need only a number come first, then those that are given whole. */
function metrics({ cpu, memory, metrics: others = [] }: Autoscaling): Wire<V2MetricSpec>[] {
  return [...utilization('cpu', cpu), ...utilization('memory', memory), ...others];
}

/** @param percent of the request, on average over the pods */
function utilization(name: 'cpu' | 'memory', percent: number | undefined): Wire<V2MetricSpec>[] {
  if (percent === undefined) return [];
  return [
    { type: 'Resource', resource: { name, target: { type: 'Utilization', averageUtilization: percent } } },
  ];
}

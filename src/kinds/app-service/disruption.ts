import type { V1PodDisruptionBudgetSpec } from '@kubernetes/client-node';
import { podSelector } from './metadata.js';
import type { Identity } from './metadata.js';
import type { AppServiceSpec } from './spec.js';
import type { Wire } from './wire.js';

/**
 * By `maxUnavailable`, since a `minAvailable` that equals the number of replicas stops every drain of a node. Pods
 * that aren't ready may always go: they serve nobody, and a broken application must not hold a node either.
 * @see https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
 */
export function disruptionBudgetSpec(
  app: Identity,
  spec: AppServiceSpec,
): Wire<V1PodDisruptionBudgetSpec> | undefined {
  if (!spec.disruption || mostReplicas(spec) < 2) return undefined;
  return {
    maxUnavailable: spec.disruption.maxUnavailable ?? 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: podSelector(app),
  };
}

/**
 * What there may be at once, a rollout's surplus aside. With an autoscaler that is its maximum, whatever the size:
 * the size is only where it starts. One replica can't be both moved and kept, so a budget for it would promise
 * nothing, or block a drain.
 */
function mostReplicas({ size, autoscaling }: AppServiceSpec): number {
  return autoscaling ? autoscaling.maxReplicas : size;
}

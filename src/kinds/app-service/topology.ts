import type { V1TopologySpreadConstraint } from '@kubernetes/client-node';
import { podSelector } from './metadata.js';
import type { Identity } from './metadata.js';
import type { TopologySpread } from './spec.js';
import type { Wire } from './wire.js';

type Constraint = Wire<V1TopologySpreadConstraint>;

const KEYS = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'] as const;

/**
 * Over zones and hosts, as far as possible: a pod that can't be placed well is still placed. Counted per rollout, by
 * the hash of the template, so that outgoing pods don't push the new ones together. Constraints that are given stand
 * instead; one without a selector, which would count no pod at all, gets ours.
 * @see https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
 */
export function spreadConstraints(app: Identity, { constraints }: TopologySpread): Constraint[] {
  const labelSelector = podSelector(app);
  if (!constraints) return KEYS.map((topologyKey) => spread(topologyKey, labelSelector));
  return constraints.map((given) => ({ ...given, labelSelector: given.labelSelector ?? labelSelector }));
}

function spread(topologyKey: string, labelSelector: ReturnType<typeof podSelector>): Constraint {
  return {
    ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway' },
    labelSelector,
    matchLabelKeys: ['pod-template-hash'],
  };
}

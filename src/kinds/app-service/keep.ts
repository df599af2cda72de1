import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import type { AnyObject } from '../../contract/object.js';
import { keepReplicas } from '../../contract/replicas.js';
import type { KeptReplicas } from '../../contract/replicas.js';
import { given } from './given.js';
import { keepStrategy } from './strategy.js';
import type { KeptStrategy } from './strategy.js';
import type { Wire } from './wire.js';

/** A Deployment as it is kept beside its identity and status. */
export interface KeptDeployment {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly { name: string; image?: string }[] };
    };
  };
  readonly replicas: KeptReplicas;
  readonly strategy: KeptStrategy;
}

/** What the hand-over of `spec.replicas` and the status read of a Deployment. */
export function keepDeployment(object: AnyObject): Readonly<Record<string, unknown>> & KeptDeployment {
  const { spec } = object as unknown as Wire<V1Deployment>;
  // Others were injected.
  const own = (spec?.template.spec?.containers ?? []).filter(({ name }) => name === object.metadata.name);
  return {
    ...keepReplicas(object),
    spec: { template: { spec: { containers: own.map((container) => given(container, 'name', 'image')) } } },
    strategy: keepStrategy(object),
  };
}

/** The ports, with the node ports that the cluster has given them. */
export function keepService(object: AnyObject): Readonly<Record<string, unknown>> {
  const { spec } = object as unknown as Wire<V1Service>;
  const ports = (spec?.ports ?? []).map((port) => given(port, 'name', 'port', 'nodePort', 'protocol'));
  return { spec: { ...given(spec ?? {}, 'type'), ports } };
}

/** Where the route leads in. */
export function keepRoute(object: AnyObject): Readonly<Record<string, unknown>> {
  const spec = (object.spec ?? {}) as { hostnames?: unknown; parentRefs?: unknown };
  return { spec: given(spec, 'hostnames', 'parentRefs') };
}

import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import type { AnyObject } from '../../contract/object.js';
import { managersOf } from './field-managers.js';
import { given } from './given.js';
import { keepStrategy } from './strategy.js';
import type { KeptStrategy } from './strategy.js';
import type { Wire } from './wire.js';

/** A Deployment as it is kept beside its identity and status. */
export interface KeptDeployment {
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly spec: { readonly containers: readonly { name: string; image?: string }[] };
    };
  };
  /** The field managers that own `spec.replicas`; none, where the API server's default stands. */
  readonly replicasManagers: readonly string[];
  readonly strategy: KeptStrategy;
}

/** What the hand-over of `spec.replicas` and the status read of a Deployment. */
export function keepDeployment(object: AnyObject): Readonly<Record<string, unknown>> & KeptDeployment {
  const { spec } = object as unknown as Wire<V1Deployment>;
  // Others were injected.
  const own = (spec?.template.spec?.containers ?? []).filter(({ name }) => name === object.metadata.name);
  return {
    spec: {
      ...(spec?.replicas !== undefined && { replicas: spec.replicas }),
      template: { spec: { containers: own.map((container) => given(container, 'name', 'image')) } },
    },
    replicasManagers: managersOf(object, 'f:spec', 'f:replicas'),
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

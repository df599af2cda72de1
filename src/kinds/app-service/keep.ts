import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import type { AnyObject } from '../../contract/object.js';
import { given } from './given.js';
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
}

interface ManagedFields {
  readonly manager?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: { readonly 'f:replicas'?: object } };
}

/** What the hand-over of `spec.replicas` and the status read of a Deployment. */
export function keepDeployment(object: AnyObject): Readonly<Record<string, unknown>> & KeptDeployment {
  const { spec } = object as unknown as Wire<V1Deployment>;
  const { managedFields = [] } = object.metadata as { readonly managedFields?: readonly ManagedFields[] };
  const containers = spec?.template.spec?.containers ?? [];
  return {
    spec: {
      ...(spec?.replicas !== undefined && { replicas: spec.replicas }),
      template: { spec: { containers: containers.map((container) => given(container, 'name', 'image')) } },
    },
    // An autoscaler and `kubectl scale` write through `/scale`, which is an entry of its own.
    replicasManagers: managedFields
      .filter(({ fieldsV1 }) => fieldsV1?.['f:spec']?.['f:replicas'])
      .map(({ manager = '' }) => manager),
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

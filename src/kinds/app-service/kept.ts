import type { V1DeploymentSpec, V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node';
import type { AnyObject } from '../../contract/object.js';
import type { Wire } from './wire.js';

/** What is kept of a Deployment, beside its identity and status. */
export interface KeptDeployment {
  /** The replicas that are wanted now, whoever has set them. */
  readonly spec: { readonly replicas?: number };
  /** Of the container that is named as the AppService. */
  readonly image?: string;
}

/** What is kept of a Service, beside its identity and status. */
export interface KeptService {
  readonly spec: {
    readonly ports: readonly Pick<Wire<V1ServicePort>, 'name' | 'port' | 'nodePort' | 'protocol'>[];
  };
}

export function keepDeployment(object: AnyObject): KeptDeployment & Readonly<Record<string, unknown>> {
  const { replicas, template } = object.spec as Wire<V1DeploymentSpec>;
  const image = template.spec?.containers.find(({ name }) => name === object.metadata.name)?.image;
  return { spec: { ...(replicas !== undefined && { replicas }) }, ...(image !== undefined && { image }) };
}

export function keepService(object: AnyObject): KeptService & Readonly<Record<string, unknown>> {
  const { ports = [] } = object.spec as Wire<V1ServiceSpec>;
  return {
    spec: {
      ports: ports.map(({ name, port, nodePort, protocol }) => ({
        ...(name !== undefined && { name }),
        port,
        // A Service that was a NodePort Service before has 0 for a while.
        ...(nodePort && { nodePort }),
        ...(protocol !== undefined && { protocol }),
      })),
    },
  };
}

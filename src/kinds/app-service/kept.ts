import type { V1Deployment, V1Service, V1ServicePort } from '@kubernetes/client-node';
import type { AnyObject } from '../../contract/object.js';
import { keepReplicas } from '../../contract/hand-over.js';
import type { KeptReplicas } from '../../contract/hand-over.js';
import { keepStrategy } from './hand-over.js';
import type { KeptStrategy } from './hand-over.js';
import { DEFAULT_PROTOCOL } from './service.js';
import { given } from './spec.js';
import type { AppServiceStatus, Wire } from './spec.js';

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

/** Returns the node ports that a Service has or asks for: only one in the cluster may have each. */
export function nodePortsOf(service: AnyObject): string[] {
  return (servicePorts(service) ?? []).flatMap(({ nodePort }) => (nodePort ? `node port ${nodePort}` : []));
}

/** Where the route leads in. */
export function keepRoute(object: AnyObject): Readonly<Record<string, unknown>> {
  const spec = (object.spec ?? {}) as { hostnames?: unknown; parentRefs?: unknown };
  return { spec: given(spec, 'hostnames', 'parentRefs') };
}

/** The replicas that are wanted now, whoever has set them. */
export function liveReplicas(deployment: AnyObject): number | undefined {
  return (deployment as Partial<KeptDeployment>).replicas?.value;
}

/** Of the container that is named as the Deployment; others were injected. */
export function runningImage(deployment: AnyObject): string | undefined {
  const containers = (deployment as Partial<KeptDeployment>).spec?.template.spec.containers;
  return containers?.find(({ name }) => name === deployment.metadata.name)?.image;
}

/** In the order of the Service; nothing where there are none. */
export function servicePorts(service: AnyObject): AppServiceStatus['ports'] {
  const { ports } = (service.spec ?? {}) as { readonly ports?: readonly Wire<V1ServicePort>[] };
  if (!ports?.length) return undefined;
  return ports.map(({ name, port, nodePort, protocol }) => ({
    ...(name !== undefined && { name }),
    port,
    // A Service that needs none any more may have 0.
    ...(nodePort && { nodePort }),
    ...(protocol !== undefined && { protocol }),
  }));
}

/** As `kubectl get service` shows the ports: `port:nodePort/protocol`, without a node port where there is none. */
export function portSummary(ports: NonNullable<AppServiceStatus['ports']>): string {
  return ports
    .map(
      ({ port, nodePort, protocol = DEFAULT_PROTOCOL }) =>
        `${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol}`,
    )
    .join(',');
}

import type { V1ServicePort } from '@kubernetes/client-node';
import type { AnyObject } from '../../../contract/object.js';
import { DEFAULT_PROTOCOL } from '../container-ports.js';
import type { KeptDeployment } from '../keep.js';
import type { AppServiceStatus } from '../spec.js';
import type { Wire } from '../wire.js';

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

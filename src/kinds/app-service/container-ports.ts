import type { V1ContainerPort, V1ServicePort } from '@kubernetes/client-node';
import { OperatorError } from '../../contract/error.js';
import type { Wire } from './wire.js';

/** The API server's own default, said explicitly: in an apply, `protocol` is part of a port's identity. */
export const DEFAULT_PROTOCOL = 'TCP';

/**
 * The container ports behind the ports of a Service: one for each distinct number and protocol, in the order in
 * which they come up. The number is `targetPort` where that is a number, else `port`; a `targetPort` that is a
 * name becomes the name of the container port.
 *
 * @throws OperatorError `PortNameConflict` where a name would stand on two container ports; a container's port
 *   names are unique, whatever the protocol
 */
export function containerPorts(ports: readonly Wire<V1ServicePort>[]): Wire<V1ContainerPort>[] {
  const found = new Map<string, Wire<V1ContainerPort>>();
  const named = new Map<string, { readonly port: string; readonly index: number }>();
  ports.forEach(({ port, protocol = DEFAULT_PROTOCOL, targetPort }, index) => {
    const containerPort = typeof targetPort === 'number' ? targetPort : port;
    const key = `${containerPort}/${protocol}`;
    if (typeof targetPort !== 'string') {
      if (!found.has(key)) found.set(key, { containerPort, protocol });
      return;
    }

    const holder = named.get(targetPort);
    if (holder && holder.port !== key) throw nameConflict(targetPort, index, key, holder);
    named.set(targetPort, { port: key, index });
    found.set(key, { containerPort, name: targetPort, protocol });
  });
  return [...found.values()];
}

function nameConflict(
  name: string,
  index: number,
  port: string,
  holder: { readonly port: string; readonly index: number },
): OperatorError {
  return new OperatorError({
    reason: 'PortNameConflict',
    path: ['spec', 'ports', index, 'targetPort'],
    message:
      `spec.ports[${index}].targetPort: "${name}" can't name container port ${port}, since it names ${holder.port} ` +
      `already (spec.ports[${holder.index}].targetPort); ` +
      'a name stands on one container port only. Use the number of the container port, or another name',
  });
}

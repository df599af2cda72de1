import type { V1ContainerPort, V1ServicePort, V1ServiceSpec } from '@kubernetes/client-node';
import { OperatorError } from '../../contract/error.js';
import { selectorLabels } from '../../contract/names.js';
import type { AppServiceSpec, Identity, Route, RouteParent, ServiceOptions, Wire } from './spec.js';
import { given } from './spec.js';

export type ServiceType = NonNullable<ServiceOptions['type']>;

/** As the tutorial has it. */
const DEFAULT_TYPE: ServiceType = 'NodePort';

/** The type of the Service; undefined where there is none. */
export function serviceType({ ports, service }: AppServiceSpec): ServiceType | undefined {
  return ports?.length ? (service?.type ?? DEFAULT_TYPE) : undefined;
}

/** Each port passes through whole, so that fields which Kubernetes adds later arrive too. No ports, no Service. */
export function serviceSpec({ name, kind }: Identity, spec: AppServiceSpec): Wire<V1ServiceSpec> | undefined {
  const type = serviceType(spec);
  if (!type) return undefined;
  return {
    type,
    ...given(spec.service ?? {}, 'sessionAffinity', 'externalTrafficPolicy', 'trafficDistribution'),
    selector: selectorLabels(kind, name),
    ports: (spec.ports ?? []).map((port) => ({
      ...port,
      protocol: port.protocol ?? DEFAULT_PROTOCOL,
      targetPort: port.targetPort ?? port.port,
    })),
  };
}

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

/**
 * The part of an HTTPRoute's spec that is rendered.
 * @see https://gateway-api.sigs.k8s.io/reference/spec/#httproutespec
 */
interface HttpRouteSpec {
  readonly hostnames?: readonly string[];
  readonly parentRefs: readonly RouteParent[];
  readonly rules: readonly {
    readonly matches: readonly { readonly path: { readonly type: 'PathPrefix'; readonly value: string } }[];
    readonly backendRefs: readonly { readonly name: string; readonly port: number }[];
  }[];
}

/** @throws OperatorError `RoutePortNotFound` where the route would lead to a port that the Service doesn't have */
export function routeSpec({ name }: Identity, spec: AppServiceSpec): HttpRouteSpec | undefined {
  const { route } = spec;
  if (!route) return undefined;
  return {
    ...given(route, 'hostnames', 'parentRefs'),
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: route.path ?? '/' } }],
        backendRefs: [{ name, port: backendPort(route, spec) }],
      },
    ],
  };
}

/** A backend is named by number: port names are free to change, and a Gateway speaks TCP only. */
function backendPort({ port }: Route, { ports = [] }: AppServiceSpec): number {
  const tcp = ports.filter(({ protocol = DEFAULT_PROTOCOL }) => protocol === 'TCP').map((each) => each.port);
  const [first] = tcp;
  if (port !== undefined && tcp.includes(port)) return port;
  if (port === undefined && first !== undefined) return first;
  const problem =
    port === undefined
      ? 'spec.route: leads to the first port of protocol TCP, and spec.ports has none'
      : `spec.route.port: ${port} is not the number of a port of protocol TCP in spec.ports, which has ${tcp.join(', ') || 'none'}`;
  throw new OperatorError({
    reason: 'RoutePortNotFound',
    path: ['spec', 'route', ...(port === undefined ? [] : ['port'])],
    message: `${problem}; ${first === undefined ? 'add one, or remove the route' : `give one of them, or add ${port ?? 'one'}`}`,
  });
}

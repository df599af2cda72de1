import type { ConditionStatus } from '../../contract/conditions.js';
import { portId } from './kept.js';
import type { Grant, KeptPort, KeptService } from './kept.js';
import { protocolOf, serviceKey, upstreamOf } from './spec.js';
import type { Protocol, StreamIngress, Upstream } from './spec.js';

/** What is known of upstreams. */
export interface Upstreams {
  service(key: string): KeptService | undefined;
  /** The ports of a Service at which somebody is ready, by `portId`. */
  readyPorts(key: string): ReadonlySet<string>;
  /** Undefined where annotations count instead. */
  readonly grants: readonly Grant[] | undefined;
}

/**
 * What an upstream means for the port that leads to it.
 *
 * - `open`: it may be opened.
 * - `keep`: it is left open if it is, so that no load balancer is rebuilt for a loss that may pass.
 * - `shut`: it is closed at once.
 */
type Gate = 'open' | 'keep' | 'shut';

export interface Resolution {
  readonly status: ConditionStatus;
  readonly reason:
    | 'ResolvedRefs'
    | 'ServiceNotFound'
    | 'PortNotFound'
    | 'ProtocolMismatch'
    | 'RefNotPermitted'
    | 'NoReadyEndpoints';
  readonly message: string;
  readonly gate: Gate;
  /** The number of the upstream's port, where it is known. */
  readonly port?: number;
}

/**
 * Whether the upstream of a custom resource is there. Permission comes first, so that nothing is told of what isn't
 * permitted.
 */
export function resolve(cr: StreamIngress, known: Upstreams): Resolution {
  const upstream = upstreamOf(cr);
  const service = known.service(serviceKey(upstream));
  if (!isPermitted(cr, upstream, known.grants, service)) return notPermitted(upstream);
  if (cr.spec.is_service === false) return unchecked(upstream);
  if (!service) {
    return lost(
      'ServiceNotFound',
      `there is no Service ${serviceKey(upstream)}; create it, or correct spec.upstream`,
    );
  }
  const port = portOf(service, upstream, protocolOf(cr));
  return 'gate' in port ? port : readiness(upstream, service, port, known);
}

/** Names no Service: that there is one is nothing that the reader may know. */
function notPermitted({ namespace }: Upstream): Resolution {
  return {
    status: 'False',
    reason: 'RefNotPermitted',
    message: `spec.upstream.namespace: ${namespace} hasn't permitted that StreamIngresses of this namespace lead there; it takes a ReferenceGrant in that namespace, or where the admin has set it up so, an annotation on the Service`,
    gate: 'shut',
  };
}

function unchecked({ port }: Upstream): Resolution {
  return {
    status: 'True',
    reason: 'ResolvedRefs',
    message: "spec.is_service is false, so the upstream isn't checked",
    gate: 'open',
    ...(typeof port === 'number' && { port }),
  };
}

function portOf(service: KeptService, upstream: Upstream, protocol: Protocol): KeptPort | Resolution {
  const found = service.ports.filter(({ name, port }) =>
    typeof upstream.port === 'number' ? port === upstream.port : name === upstream.port,
  );
  const port = found.find((candidate) => candidate.protocol === protocol);
  if (port) return port;
  const name = serviceKey(upstream);
  const [other] = found;
  if (other) {
    const message = `port ${upstream.port} of Service ${name} is of protocol ${other.protocol}, not ${protocol}; correct spec.upstream.port, or create another StreamIngress with that protocol`;
    return lost('ProtocolMismatch', message);
  }
  const ports = service.ports.map((each) => each.name ?? each.port).join(', ') || 'none';
  return lost('PortNotFound', `Service ${name} has no port ${upstream.port}; its ports are ${ports}`);
}

function readiness(
  upstream: Upstream,
  service: KeptService,
  { port, ...named }: KeptPort,
  known: Upstreams,
): Resolution {
  const name = serviceKey(upstream);
  if (service.external || known.readyPorts(name).has(portId(named))) {
    const message = `Service ${name} has port ${upstream.port}`;
    return { status: 'True', reason: 'ResolvedRefs', message, gate: 'open', port };
  }
  const message = `nothing behind port ${upstream.port} of Service ${name} is ready`;
  return { status: 'False', reason: 'NoReadyEndpoints', message, gate: 'open', port };
}

function lost(reason: Resolution['reason'], message: string): Resolution {
  return { status: 'False', reason, message, gate: 'keep' };
}

/**
 * Whether a custom resource may lead to a Service: within its own namespace always, to another one where that permits
 * it.
 * @param grants undefined where annotations count instead
 */
function isPermitted(
  { metadata }: StreamIngress,
  upstream: Upstream,
  grants: readonly Grant[] | undefined,
  service: KeptService | undefined,
): boolean {
  const own = metadata.namespace ?? '';
  if (upstream.namespace === own) return true;
  if (!grants) return service?.allowFrom?.some((name) => name === own || name === '*') ?? false;
  return grants.some(
    ({ namespace, from, to }) =>
      namespace === upstream.namespace &&
      from.includes(own) &&
      (to.includes('*') || to.includes(upstream.service)),
  );
}

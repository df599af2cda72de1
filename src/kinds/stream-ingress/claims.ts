import type { ConditionProps } from '../../contract/conditions.js';
import { keyOf } from '../../contract/object.js';
import { portText, upstreamKey, type StreamIngress } from './spec.js';
import { portRange, type Target } from './targets.js';
import { portId, type KeptService, type Upstreams } from './watched.js';

/** Holders of a target's ports, and why the other custom resources hold none. */
export interface Claims {
  /** Holders by age, the oldest first. */
  readonly holders: readonly StreamIngress[];
  readonly refused: ReadonlyMap<StreamIngress, Refusal>;
}

/** Condition `Accepted` of a custom resource that holds no port. */
export type Refusal = Pick<ConditionProps, 'reason' | 'message'>;

/**
 * Gives each port and protocol of a target to the oldest that may have it; of two of an age, to the first by
 * `namespace/name`. One that the admin doesn't allow holds nothing, and neither does one that is being deleted; one that
 * only lacks its upstream does.
 *
 * **Guarantees.** Independent of the order in which they come. What makes a claim can't be changed, so none becomes older
 * by an edit: a holder stays one until it goes, but for the caveat.
 *
 * **Caveats.** Age is what the API server has written, in whole seconds. Of the same second, one that comes later takes
 * the port where its name comes first; so does one that an API server dates whose clock is behind that of another.
 */
export function claimsOf(target: Target, all: readonly StreamIngress[]): Claims {
  const refused = new Map<StreamIngress, Refusal>();
  const holders = new Map<string, StreamIngress>();
  for (const cr of [...all].sort(byAge)) {
    if (cr.metadata.deletionTimestamp) continue;
    const port = portText(cr);
    const holder = holders.get(port);
    const refusal = refusalOf(target, cr) ?? (holder && conflict(cr, holder));
    if (refusal) refused.set(cr, refusal);
    else holders.set(port, cr);
  }
  return { holders: [...holders.values()], refused };
}

/** Oldest first. Times are whole seconds in UTC, so they compare as text; one without was never stored. */
function byAge(a: StreamIngress, b: StreamIngress): number {
  const [first, second] = [a, b].map((cr) => [cr.metadata.creationTimestamp ?? '9999', keyOf(cr)]);
  return String(first) < String(second) ? -1 : 1;
}

/** Names the winner to its own namespace alone: a loser may not know what others run. */
function conflict({ metadata }: StreamIngress, holder: StreamIngress): Refusal {
  const own = metadata.namespace === holder.metadata.namespace;
  const who = own ? `StreamIngress ${holder.metadata.name}` : 'a StreamIngress of another namespace';
  return {
    reason: 'PortConflict',
    message: `${portText(holder)} is held by ${who}, which is older; it is opened for this one once that is gone, or take another port`,
  };
}

/** Refuses custom resources whose class is none. The names of the others are for the admin to give. */
export function classRefusal(className: string | undefined): Refusal {
  const message =
    className === undefined
      ? 'spec.className is not set, and there is no default; name a class'
      : `spec.className: there is no class ${className}; create another StreamIngress with one that the admin has set up`;
  return { reason: 'ClassNotFound', message };
}

/** Returns what the target doesn't allow of a custom resource, whatever others ask for. */
export function refusalOf(target: Target, cr: StreamIngress): Refusal | undefined {
  const { name, kind, namespaces, reservedPorts, portRanges } = target;
  const { namespace = '' } = cr.metadata;
  const { listen, proxyProtocol } = cr.spec;
  if (namespaces && !namespaces.includes(namespace)) {
    const message = `the target ${name} doesn't serve the namespace ${namespace}; ask an admin to allow it`;
    return { reason: 'NamespaceNotPermitted', message };
  }
  const port = `spec.listen: ${portText(cr)}`;
  if (reservedPorts.includes(listen))
    return {
      reason: 'PortReserved',
      message: `${port} is reserved on the target ${name}; take another port`,
    };
  const isIn = (text: string): boolean => portRange(text).from <= listen && listen <= portRange(text).to;
  if (portRanges && !portRanges.some(isIn)) {
    const message = `${port} is not among the ports of the target ${name}; take one of ${portRanges.join(', ') || 'none'}`;
    return { reason: 'PortNotPermitted', message };
  }
  if (kind !== 'Gateway' || !(proxyProtocol?.decode || proxyProtocol?.encode)) return undefined;
  const message = `spec.proxyProtocol: the target ${name} is a Gateway, and the Gateway API has no PROXY protocol; remove it, or take another class`;
  return { reason: 'ProxyProtocolNotSupported', message };
}

/** The condition `ResolvedRefs`, and its meaning for the port that leads there. */
export interface Resolution extends Omit<ConditionProps, 'type'> {
  /**
   * - `open`: it may be opened.
   * - `keep`: it is left open if it is, so that no load balancer is rebuilt for a loss that may pass.
   * - `shut`: it is closed at once.
   */
  readonly gate: 'open' | 'keep' | 'shut';
  /** The number of the upstream's port, where it is known. */
  readonly port?: number;
}

/** Claims of one target's custom resources, and the state of their upstreams. */
export interface View extends Claims {
  readonly resolution: (cr: StreamIngress) => Resolution;
}

export function viewOf(target: Target, crs: readonly StreamIngress[], upstreams: Upstreams): View {
  const found = new Map(crs.map((cr) => [cr, resolve(cr, upstreams)]));
  return { ...claimsOf(target, crs), resolution: (cr) => found.get(cr) as Resolution };
}

/** Looks up the upstream of a custom resource. Permission comes first, so that nothing is shown of what isn't permitted. */
export function resolve(cr: StreamIngress, known: Upstreams): Resolution {
  const { namespace = cr.metadata.namespace ?? '', port: wanted } = cr.spec.upstream;
  const name = upstreamKey(cr);
  const service = known.service(name);
  if (!isPermitted(cr, namespace, known, service)) {
    // It names no Service: the reader may not know that there is one.
    const message = `spec.upstream.namespace: ${namespace} hasn't permitted that StreamIngresses of this namespace lead there; it takes a ReferenceGrant in that namespace, or where the admin has set it up so, an annotation on the Service`;
    return { status: 'False', reason: 'RefNotPermitted', message, gate: 'shut' };
  }
  if (cr.spec.is_service === false) {
    const message = "spec.is_service is false, so the upstream isn't checked";
    const port = typeof wanted === 'number' ? { port: wanted } : {};
    return { status: 'True', reason: 'ResolvedRefs', message, gate: 'open', ...port };
  }
  const lost = (reason: string, message: string): Resolution => ({
    ...{ status: 'False', reason, message, gate: 'keep' },
  });
  if (!service)
    return lost('ServiceNotFound', `there is no Service ${name}; create it, or correct spec.upstream`);
  const { protocol } = cr.spec;
  const found = service.ports.filter(
    (port) => (typeof wanted === 'number' ? port.port : port.name) === wanted,
  );
  const port = found.find((candidate) => candidate.protocol === protocol);
  if (!port && found[0]) {
    const message = `port ${wanted} of Service ${name} is of protocol ${found[0].protocol}, not ${protocol}; correct spec.upstream.port, or create another StreamIngress with that protocol`;
    return lost('ProtocolMismatch', message);
  }
  if (!port) {
    const ports = service.ports.map((each) => each.name ?? each.port).join(', ') || 'none';
    return lost('PortNotFound', `Service ${name} has no port ${wanted}; its ports are ${ports}`);
  }
  const open = { gate: 'open', port: port.port } as const;
  if (service.external || known.readyPorts(name).has(portId(port)))
    return { status: 'True', reason: 'ResolvedRefs', message: `Service ${name} has port ${wanted}`, ...open };
  const message = `nothing behind port ${wanted} of Service ${name} is ready`;
  return { status: 'False', reason: 'NoReadyEndpoints', message, ...open };
}

/** Reports whether a custom resource may lead to a Service: to all of its own namespace, to others where they permit it. */
function isPermitted(
  { metadata: { namespace: own = '' }, spec: { upstream } }: StreamIngress,
  namespace: string,
  { permitted }: Upstreams,
  service: KeptService | undefined,
): boolean {
  if (namespace === own) return true;
  if (!permitted) return [own, '*'].some((name) => service?.allowFrom?.includes(`,${name},`));
  const names = permitted(namespace, own);
  return names.has(upstream.service) || names.has('*');
}

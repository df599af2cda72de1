import { objectKey } from '../../contract/object.js';
import { portText } from './spec.js';
import type { StreamIngress } from './spec.js';
import type { PortRange, Target } from './targets.js';

/** Who of one target's custom resources holds its port, and why the others don't. */
export interface Claims {
  /** By age, the oldest first. */
  readonly holders: readonly StreamIngress[];
  readonly refused: ReadonlyMap<StreamIngress, Refusal>;
}

/**
 * Gives each port and protocol of a target to the oldest that may have it; of two of an age, to the first by
 * `namespace/name`. What the admin doesn't allow holds nothing, and neither does what is being deleted; what only lacks
 * its upstream does.
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

/** Oldest first. Times are whole seconds in UTC, so they compare as text; what has none was never stored. */
function byAge(a: StreamIngress, b: StreamIngress): number {
  const [ageA, ageB] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? '9999');
  return compare(ageA ?? '', ageB ?? '') || compare(fullName(a), fullName(b));
}

export function fullName({ metadata: { namespace, name } }: StreamIngress): string {
  return objectKey(namespace, name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Names the winner to its own namespace alone: what others run is none of the loser's business. */
function conflict(loser: StreamIngress, holder: StreamIngress): Refusal {
  const own = loser.metadata.namespace === holder.metadata.namespace;
  const who = own ? `StreamIngress ${holder.metadata.name}` : 'a StreamIngress of another namespace';
  return {
    reason: 'PortConflict',
    message: `${portText(loser)} is held by ${who}, which is older; it is opened for this one once that is gone, or take another port`,
  };
}

/** Why a custom resource holds no port. */
export interface Refusal {
  readonly reason:
    | 'ClassNotFound'
    | 'NamespaceNotPermitted'
    | 'PortReserved'
    | 'PortNotPermitted'
    | 'ProxyProtocolNotSupported'
    | 'PortConflict';
  readonly message: string;
}

/** What the target doesn't allow of a custom resource, whatever others ask for. */
export function refusalOf(target: Target, cr: StreamIngress): Refusal | undefined {
  return namespaceRefusal(target, cr) ?? portRefusal(target, cr) ?? proxyRefusal(target, cr);
}

/** For those whose class is none. The names of the others are the admin's to tell. */
export function classRefusal(className: string | undefined): Refusal {
  const message =
    className === undefined
      ? 'spec.className is not set, and there is no default; name a class'
      : `spec.className: there is no class ${className}; create another StreamIngress with one that the admin has set up`;
  return { reason: 'ClassNotFound', message };
}

function namespaceRefusal({ name, namespaces }: Target, { metadata }: StreamIngress): Refusal | undefined {
  const { namespace = '' } = metadata;
  if (!namespaces || namespaces.includes(namespace)) return undefined;
  return {
    reason: 'NamespaceNotPermitted',
    message: `the target ${name} doesn't serve the namespace ${namespace}; ask an admin to allow it`,
  };
}

function portRefusal({ name, reservedPorts, portRanges }: Target, cr: StreamIngress): Refusal | undefined {
  const { listen } = cr.spec;
  if (reservedPorts.includes(listen)) {
    const message = `spec.listen: ${portText(cr)} is reserved on the target ${name}; take another port`;
    return { reason: 'PortReserved', message };
  }
  if (!portRanges || portRanges.some(({ from, to }) => from <= listen && listen <= to)) return undefined;
  const message = `spec.listen: ${portText(cr)} is not among the ports of the target ${name}; take one of ${listed(portRanges)}`;
  return { reason: 'PortNotPermitted', message };
}

function proxyRefusal(
  { name, kind }: Target,
  { spec: { proxyProtocol } }: StreamIngress,
): Refusal | undefined {
  if (kind !== 'Gateway' || !(proxyProtocol?.decode || proxyProtocol?.encode)) return undefined;
  const message = `spec.proxyProtocol: the target ${name} is a Gateway, and the Gateway API has no PROXY protocol; remove it, or take another class`;
  return { reason: 'ProxyProtocolNotSupported', message };
}

function listed(ranges: readonly PortRange[]): string {
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(', ') || 'none';
}

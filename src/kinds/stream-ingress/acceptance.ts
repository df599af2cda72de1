import type { StreamIngress } from './spec.js';
import type { PortRange, Target } from './targets.js';
import { portText } from './upstream.js';

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

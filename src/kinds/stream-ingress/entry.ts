import type { Protocol, StreamIngress } from './spec.js';
import { describeUpstream, protocolOf, serviceKey, upstreamOf } from './upstream.js';

/** A port of ingress-nginx: a key of a ConfigMap, and a port of a Service. */
export interface Entry {
  readonly cr: StreamIngress;
  readonly protocol: Protocol;
  readonly listen: number;
  readonly value: string;
}

export function entryOf(cr: StreamIngress): Entry {
  return { cr, protocol: protocolOf(cr), listen: cr.spec.listen, value: entryValue(cr) };
}

/**
 * The value in the ConfigMap, in one of the four forms that ingress-nginx reads: `ns/svc:port`, with `:PROXY` where
 * it is decoded, `::PROXY` where it is encoded and `:PROXY:PROXY` for both. The port is that of the Service, as given.
 * @see https://kubernetes.github.io/ingress-nginx/user-guide/exposing-tcp-udp-services/
 */
export function entryValue(cr: StreamIngress): string {
  const { decode = false, encode = false } = cr.spec.proxyProtocol ?? {};
  const proxy = encode ? `:${decode ? 'PROXY' : ''}:PROXY` : decode ? ':PROXY' : '';
  return describeUpstream(upstreamOf(cr)) + (protocolOf(cr) === 'TCP' ? proxy : '');
}

/** Whether a value leads to the Service of a custom resource, at whatever port. */
export function leadsToUpstream(value: string, cr: StreamIngress): boolean {
  return value.split(':')[0] === serviceKey(upstreamOf(cr));
}

/** A port of the target's Service. */
export interface EntryPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly targetPort: number;
}

/** With a number as its target, so that no container has to declare the port under a name. */
export function servicePort({ listen, protocol }: Pick<Entry, 'listen' | 'protocol'>): EntryPort {
  return { name: `si-${listen}-${protocol.toLowerCase()}`, port: listen, protocol, targetPort: listen };
}

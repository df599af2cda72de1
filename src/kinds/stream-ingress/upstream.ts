import { portKey } from './kept-service.js';
import type { Protocol, StreamIngress } from './spec.js';

/** Where a port leads. */
export interface Upstream {
  readonly namespace: string;
  readonly service: string;
  readonly port: number | string;
}

export function upstreamOf({ metadata, spec: { upstream } }: StreamIngress): Upstream {
  const { service, port } = upstream;
  return { namespace: upstream.namespace ?? metadata.namespace ?? '', service, port };
}

/** `namespace/service`. */
export function serviceKey({ namespace, service }: Upstream): string {
  return `${namespace}/${service}`;
}

export function describeUpstream(upstream: Upstream): string {
  return `${serviceKey(upstream)}:${upstream.port}`;
}

export function protocolOf({ spec: { protocol = 'TCP' } }: StreamIngress): Protocol {
  return protocol;
}

/** A port as people write it: `9000/TCP`. */
export function portText(cr: StreamIngress): string {
  return portKey(cr.spec.listen, protocolOf(cr));
}

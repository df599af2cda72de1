import type { Condition } from '../../contract/conditions.js';
import type { CustomResource } from '../../contract/object.js';

export const GROUP = 'nginx-stream.jeffthecoder.xyz';
export const API_VERSION = `${GROUP}/v1beta1`;
export const KIND = 'StreamIngress';

export type Protocol = 'TCP' | 'UDP';

/** Which port is opened, and where it leads. */
export interface StreamIngressSpec {
  /** Immutable. @default TCP */
  readonly protocol?: Protocol;
  /** 1 to 65535; immutable. */
  readonly listen: number;
  readonly upstream: UpstreamProps;
  /** False: what lies behind the upstream isn't checked, but for the permission of another namespace. @default true */
  readonly is_service?: boolean;
  /** The name of a target; immutable. @default - the admin's default */
  readonly className?: string;
  /** For TCP only. @default - neither */
  readonly proxyProtocol?: ProxyProtocol;
}

interface UpstreamProps {
  /** @default - that of the custom resource */
  readonly namespace?: string;
  readonly service: string;
  /** Of the Service, by number or name. */
  readonly port: number | string;
}

interface ProxyProtocol {
  /** Spoken by whoever connects. @default false */
  readonly decode?: boolean;
  /** Spoken to the Service. @default false */
  readonly encode?: boolean;
}

export interface StreamIngressStatus {
  readonly observedGeneration?: number;
  /** The name of the target that the port belongs to. */
  readonly target?: string;
  /** `namespace/service:port`. */
  readonly upstream?: string;
  /** `address:port`, while the port is open. */
  readonly addresses?: readonly string[];
  readonly conditions?: readonly Condition[];
}

export type StreamIngress = CustomResource<StreamIngressSpec, StreamIngressStatus>;

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

/** `9000/TCP`. */
export function portKey(port: number, protocol: string): string {
  return `${port}/${protocol}`;
}

/** A port as people write it: `9000/TCP`. */
export function portText(cr: StreamIngress): string {
  return portKey(cr.spec.listen, protocolOf(cr));
}

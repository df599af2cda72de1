import type { Condition } from '../../contract/conditions.js';
import { objectKey } from '../../contract/object.js';
import type { CustomResource } from '../../contract/object.js';

export const GROUP = 'nginx-stream.jeffthecoder.xyz';
export const API_VERSION = `${GROUP}/v1beta1`;
export const KIND = 'StreamIngress';

export type Protocol = 'TCP' | 'UDP';

/** A port to be opened, and where it leads. */
export interface StreamIngressSpec {
  /** Immutable. @default TCP */
  readonly protocol?: Protocol;
  /** 1 to 65535; immutable. */
  readonly listen: number;
  readonly upstream: {
    /** @default - that of the custom resource */
    readonly namespace?: string;
    readonly service: string;
    /** Port of the Service, by number or name. */
    readonly port: number | string;
  };
  /** False: nothing behind the upstream is checked, but for the permission of another namespace. @default true */
  readonly is_service?: boolean;
  /** The name of a target; immutable. @default - the admin's default */
  readonly className?: string;
  /** Spoken by clients (`decode`) and to the Service (`encode`); for TCP only. @default - neither */
  readonly proxyProtocol?: { readonly decode?: boolean; readonly encode?: boolean };
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

/** `namespace/service` of the upstream. */
export function upstreamKey({ metadata, spec: { upstream } }: StreamIngress): string {
  return `${upstream.namespace ?? metadata.namespace ?? ''}/${upstream.service}`;
}

/** `namespace/service:port` of the upstream. */
export function upstreamText(cr: StreamIngress): string {
  return `${upstreamKey(cr)}:${cr.spec.upstream.port}`;
}

export function protocolOf({ spec: { protocol = 'TCP' } }: StreamIngress): Protocol {
  return protocol;
}

/** `9000/TCP`. */
export function portKey(port: number, protocol: string): string {
  return `${port}/${protocol}`;
}

/** The port of a custom resource: `9000/TCP`. */
export function portText(cr: StreamIngress): string {
  return portKey(cr.spec.listen, protocolOf(cr));
}

export function fullName({ metadata: { namespace, name } }: StreamIngress): string {
  return objectKey(namespace, name);
}

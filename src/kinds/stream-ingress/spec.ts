import type { Condition } from '../../contract/conditions.js';
import type { CustomResource } from '../../contract/object.js';

export const GROUP = 'nginx-stream.jeffthecoder.xyz';
export const API_VERSION = `${GROUP}/v1beta1`;
export const KIND = 'StreamIngress';

export type Protocol = 'TCP' | 'UDP';

/** Fields as in `crds/streamingresses.nginx-stream.jeffthecoder.xyz.yaml`, with its defaults. */
export interface StreamIngressSpec {
  readonly protocol: Protocol;
  readonly listen: number;
  readonly upstream: {
    readonly namespace?: string;
    readonly service: string;
    readonly port: number | string;
  };
  readonly is_service?: boolean;
  readonly className?: string;
  readonly proxyProtocol?: { readonly decode?: boolean; readonly encode?: boolean };
}

export interface StreamIngressStatus {
  readonly observedGeneration?: number;
  readonly target?: string;
  readonly upstream?: string;
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

/** `9000/TCP`. */
export function portKey(port: number, protocol: string): string {
  return `${port}/${protocol}`;
}

/** The port of a custom resource: `9000/TCP`. */
export function portText(cr: StreamIngress): string {
  return portKey(cr.spec.listen, cr.spec.protocol);
}

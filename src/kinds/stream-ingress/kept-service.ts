import type { AnyObject } from '../../contract/object.js';
import { holdings, isManaged } from './held.js';
import type { Holding } from './held.js';
import { ALLOW_FROM_ANNOTATION } from './permission.js';

/** What is kept of every Service, since any may be an upstream. */
export interface KeptService {
  readonly ports: readonly KeptPort[];
  /** Set where the Service stands for a host name, and has no endpoints of its own. */
  readonly external?: true;
  /** The namespaces of its annotation. */
  readonly allowFrom?: readonly string[];
}

export interface KeptPort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: string;
}

/** What is kept of the Service that opens a target's ports. */
export interface KeptTargetService extends KeptService {
  /** By `portKey`. */
  readonly open: Readonly<Record<string, OpenPort>>;
  /** Whether anything in it is ours. */
  readonly managed: boolean;
  readonly addresses: readonly KeptAddress[];
  /** The message of the condition `LoadBalancerPortsError`, where it holds. */
  readonly portsError?: string;
}

export interface OpenPort extends KeptPort, Holding {
  readonly targetPort?: number | string;
}

export interface KeptAddress {
  /** An IP address or a host name. */
  readonly address: string;
  /** What the load balancer says of single ports. */
  readonly errors: readonly { readonly port: number; readonly protocol: string; readonly error: string }[];
}

interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly targetPort?: number | string;
}

export function keepService(object: AnyObject): KeptService {
  const { type } = (object.spec ?? {}) as { readonly type?: string };
  const allowed = object.metadata.annotations?.[ALLOW_FROM_ANNOTATION];
  return {
    ports: portsOf(object).map(keptPort),
    ...(type === 'ExternalName' && { external: true }),
    ...(allowed !== undefined && { allowFrom: allowed.split(',').map((name) => name.trim()) }),
  };
}

export function keepTargetService(object: AnyObject): KeptTargetService {
  const held = holdings(object, ['f:spec', 'f:ports'], isPort);
  const open = portsOf(object).map((port) => {
    const kept = keptPort(port);
    const segment = `k:${JSON.stringify({ port: kept.port, protocol: kept.protocol })}`;
    const { targetPort } = port;
    const openPort = { ...kept, ...(targetPort !== undefined && { targetPort }), ...held(segment) };
    return [portKey(kept.port, kept.protocol), openPort] as const;
  });
  return {
    ...keepService(object),
    open: Object.fromEntries(open),
    managed: isManaged(object),
    ...keepLoadBalancer(object),
  };
}

/** `9000/TCP`. */
export function portKey(port: number, protocol: string): string {
  return `${port}/${protocol}`;
}

/** Whether it is more than a field that we leave to others, such as the node port. */
function isPort(fields: object): boolean {
  return ['.', 'f:name', 'f:port', 'f:protocol', 'f:targetPort'].some((field) => field in fields);
}

function keepLoadBalancer(object: AnyObject): Pick<KeptTargetService, 'addresses' | 'portsError'> {
  const { loadBalancer = {}, conditions = [] } = (object.status ?? {}) as {
    readonly loadBalancer?: { readonly ingress?: readonly Ingress[] };
    readonly conditions?: readonly { type: string; status: string; message?: string }[];
  };
  const failed = conditions.find(
    ({ type, status }) => type === 'LoadBalancerPortsError' && status === 'True',
  );
  return {
    addresses: (loadBalancer.ingress ?? []).map(({ ip, hostname, ports = [] }) => ({
      address: ip ?? hostname ?? '',
      errors: ports.flatMap(({ port, protocol, error }) => (error ? [{ port, protocol, error }] : [])),
    })),
    ...(failed && { portsError: failed.message ?? '' }),
  };
}

interface Ingress {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ports?: readonly { port: number; protocol: string; error?: string }[];
}

function portsOf(object: AnyObject): readonly ServicePort[] {
  return ((object.spec ?? {}) as { readonly ports?: readonly ServicePort[] }).ports ?? [];
}

function keptPort({ name, port, protocol = 'TCP' }: ServicePort): KeptPort {
  return { ...(name !== undefined && { name }), port, protocol };
}

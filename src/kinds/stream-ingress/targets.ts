import type { Protocol } from './spec.js';

/**
 * A proxy that opens ports, as the admin describes it. A custom resource chooses one by name and never says what
 * it consists of.
 */
export type Target = NginxTarget | GatewayTarget;

/** An ingress-nginx: two ConfigMaps with what it forwards, and the Service with its ports. */
export interface NginxTarget extends Limits {
  readonly kind: 'IngressNginx';
  readonly name: string;
  /** Of all the objects below. */
  readonly namespace: string;
  readonly service: string;
  readonly tcpConfigMap: string;
  readonly udpConfigMap: string;
  /** Whose arguments are looked at. @default - they aren't */
  readonly controller?: ControllerRef;
}

/** A Gateway: every port is a ListenerSet and a route of its own. */
export interface GatewayTarget extends Limits {
  readonly kind: 'Gateway';
  readonly name: string;
  readonly gateway: { readonly namespace: string; readonly name: string };
}

/** The version of TCPRoute and UDPRoute: `v1` since Gateway API 1.6. */
export type RouteVersion = 'v1' | 'v1alpha2';

/** What speaks for another namespace: a ReferenceGrant of the Gateway API, or an annotation on the Service. */
export type CrossNamespace = 'ReferenceGrant' | 'Annotation';

export interface ControllerRef {
  readonly kind: 'Deployment' | 'DaemonSet';
  readonly name: string;
}

/** What may be asked of a target. */
export interface Limits {
  /** @default - every port */
  readonly portRanges?: readonly PortRange[];
  /** Never opened, for either protocol. */
  readonly reservedPorts: readonly number[];
  /** Whose custom resources are served. @default - those of every namespace */
  readonly namespaces?: readonly string[];
  /** How many ports are open at once. @default - any number */
  readonly maxListeners?: number;
}

/** Both ends are in it. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export interface Targets {
  readonly all: readonly Target[];
  /** The one for custom resources without a class. @default - there is none, they have to name one */
  readonly defaultName?: string;
  readonly crossNamespace: CrossNamespace;
  readonly routeVersion: RouteVersion;
}

/**
 * What ingress-nginx listens at itself: HTTP, HTTPS, TLS passthrough, health, default server, profiler, status and
 * stream configuration, and its admission webhook at 8443, which it doesn't look for: a second listener there makes
 * every reload fail.
 * @see https://github.com/kubernetes/ingress-nginx/blob/main/internal/ingress/controller/controller.go
 */
export const NGINX_RESERVED_PORTS: readonly number[] = [80, 443, 442, 8181, 8443, 10245, 10246, 10247, 10254];

export function targetNamed({ all }: Targets, name: string): Target | undefined {
  return all.find((target) => target.name === name);
}

/** In place of a target's name where no class is named and there is no default; no target is called so. */
export const NO_TARGET = '-';

/** The name of the target that a class stands for, whether there is one of that name or not. */
export function targetName({ defaultName = NO_TARGET }: Targets, className: string | undefined): string {
  return className ?? defaultName;
}

export function configMapName(target: NginxTarget, protocol: Protocol): string {
  return protocol === 'TCP' ? target.tcpConfigMap : target.udpConfigMap;
}

export function isNginx(target: Target): target is NginxTarget {
  return target.kind === 'IngressNginx';
}

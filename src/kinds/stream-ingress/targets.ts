import type { StructuralSchema } from '../../contract/crd.js';
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
type CrossNamespace = 'ReferenceGrant' | 'Annotation';

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
const NO_TARGET = '-';

/** The name of the target that a class stands for, whether there is one of that name or not. */
export function targetName({ defaultName = NO_TARGET }: Targets, className: string | undefined): string {
  return className ?? defaultName;
}

/**
 * Takes as many as a target has room for; whoever is open stays open, also where an older one would come in.
 * @param wanted those whose port is to be open, the oldest first; who only waits takes nobody's place
 */
export function withinLimit<T>(
  { maxListeners = Infinity }: Target,
  wanted: readonly T[],
  isOpen: (one: T) => boolean,
): { readonly within: readonly T[]; readonly beyond: readonly T[] } {
  const ordered = [...wanted.filter(isOpen), ...wanted.filter((one) => !isOpen(one))];
  return { within: ordered.slice(0, maxListeners), beyond: ordered.slice(maxListeners) };
}

/** The message to those for whom there is no room. */
export function tooManyListeners({ name, maxListeners = 0 }: Target): string {
  return `the target ${name} has its ${maxListeners} ports open already; this one is opened once another is closed`;
}

export function configMapName(target: NginxTarget, protocol: Protocol): string {
  return protocol === 'TCP' ? target.tcpConfigMap : target.udpConfigMap;
}

export function isNginx(target: Target): target is NginxTarget {
  return target.kind === 'IngressNginx';
}

/** The section `streamingress` of an admin's policy. */
export interface StreamIngressPolicy {
  /** The target of those that name none. @default - the only one, if there is one alone */
  readonly defaultClass?: string;
  /** @default - the one that the flags describe */
  readonly targets?: readonly TargetProps[];
  /** @default ReferenceGrant */
  readonly crossNamespace?: CrossNamespace;
  /** @default v1 */
  readonly routeVersion?: RouteVersion;
}

/** A target as an admin writes it. */
export interface TargetProps {
  readonly name: string;
  /** @default IngressNginx */
  readonly kind?: 'IngressNginx' | 'Gateway';
  readonly ingressNamespace?: string;
  readonly ingressService?: string;
  readonly tcpServicesConfigMap?: string;
  readonly udpServicesConfigMap?: string;
  /** `Deployment/name` or `DaemonSet/name`. */
  readonly ingressController?: string;
  /** `namespace/name`. */
  readonly gateway?: string;
  /** Each `9000` or `9000-9099`. */
  readonly portRanges?: readonly string[];
  readonly reservedPorts?: readonly number[];
  readonly namespaces?: readonly string[];
  readonly maxListeners?: number;
}

const LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';

const label = (description: string): StructuralSchema => ({
  type: 'string',
  maxLength: 63,
  pattern: LABEL,
  description,
});

const objectName = (description: string): StructuralSchema => ({
  type: 'string',
  maxLength: 253,
  pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
  description,
});

function setOf(description: string, maxItems: number, items: StructuralSchema): StructuralSchema {
  return { type: 'array', description, maxItems, 'x-kubernetes-list-type': 'set', items };
}

const target: StructuralSchema = {
  type: 'object',
  description: 'A proxy that opens ports.',
  required: ['name'],
  properties: {
    name: label('What a StreamIngress gives as its className.'),
    kind: {
      type: 'string',
      enum: ['IngressNginx', 'Gateway'],
      description: 'What opens the ports: an ingress-nginx, or a Gateway of the Gateway API.',
    },
    ingressNamespace: label('The namespace of ingress-nginx, its Service and its ConfigMaps.'),
    ingressService: label('The Service of ingress-nginx.'),
    tcpServicesConfigMap: objectName('The ConfigMap with the TCP ports.'),
    udpServicesConfigMap: objectName('The ConfigMap with the UDP ports.'),
    ingressController: {
      type: 'string',
      maxLength: 264,
      pattern: '^(Deployment|DaemonSet)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      description:
        'The workload of ingress-nginx, e.g. Deployment/ingress-nginx-controller, if its arguments are to be looked at.',
    },
    gateway: {
      type: 'string',
      maxLength: 317,
      pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      description: 'The Gateway, as namespace/name.',
    },
    portRanges: setOf('The ports that may be opened, each as a number or a range, e.g. 9000-9099.', 64, {
      type: 'string',
      maxLength: 11,
      pattern: '^[0-9]{1,5}(-[0-9]{1,5})?$',
    }),
    reservedPorts: setOf(
      'The ports that are never opened, in place of those at which ingress-nginx listens by default.',
      1024,
      { type: 'integer', format: 'int32', minimum: 1, maximum: 65535 },
    ),
    namespaces: setOf(
      'The namespaces whose StreamIngresses are served. All unless it is given.',
      1024,
      label(''),
    ),
    maxListeners: {
      type: 'integer',
      format: 'int32',
      minimum: 1,
      description: 'The most ports that are open at once, as a load balancer may limit them.',
    },
  },
};

/** The schema of `StreamIngressPolicy`. */
export const policySchema: StructuralSchema = {
  type: 'object',
  description: 'The proxies that StreamIngresses may use, and what is allowed of each.',
  properties: {
    defaultClass: label(
      'The target of a StreamIngress without className. By default the only one, if there is one alone.',
    ),
    targets: {
      type: 'array',
      maxItems: 64,
      description: 'The targets, beside the one that the flags describe.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: target,
    },
    crossNamespace: {
      type: 'string',
      enum: ['ReferenceGrant', 'Annotation'],
      description:
        'How a namespace permits that others lead to its Services: by a ReferenceGrant, or, where the cluster has none, by an annotation on the Service.',
    },
    routeVersion: {
      type: 'string',
      enum: ['v1', 'v1alpha2'],
      description: 'The version in which TCPRoute and UDPRoute are written. v1 unless it is given.',
    },
  },
};

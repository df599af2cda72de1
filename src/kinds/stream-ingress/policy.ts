import type { StructuralSchema } from '../../contract/crd.js';
import type { CrossNamespace, RouteVersion } from './targets.js';

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

import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps, KindConstruct, RenderedKind } from '../../contract/kind.js';
import { childLabels } from '../../contract/names.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { API_VERSION, KIND } from './spec.js';
import type { Protocol, StreamIngressSpec } from './spec.js';
import type { GatewayTarget, RouteVersion } from './targets.js';

const GATEWAY_GROUP = 'gateway.networking.k8s.io';

export interface GatewayPortProps extends CustomResourceProps<StreamIngressSpec> {
  readonly gateway: GatewayTarget['gateway'];
  /** @default v1 */
  readonly routeVersion?: RouteVersion;
}

/**
 * A port of a Gateway: a ListenerSet that adds it, and the TCPRoute or UDPRoute that leads from there to the Service,
 * both named as the custom resource.
 *
 * @throws OperatorError `PortNotFound` where the port of the Service is given by name, since a route takes a number
 */
export class GatewayPort extends Construct {
  constructor(scope: Construct, id: string, props: GatewayPortProps) {
    super(scope, id);
    const { metadata, spec, gateway, routeVersion = 'v1' } = props;
    const { listen, protocol = 'TCP', upstream } = spec;
    const section = listenerName(protocol, listen);
    const child = (apiVersion: string, kind: string, childSpec: object): ApiObject =>
      new ApiObject(this, kind, {
        apiVersion,
        kind,
        metadata: {
          ...metadata,
          labels: childLabels({ apiVersion: API_VERSION, kind: KIND }, metadata.name),
        },
        spec: childSpec,
      });
    child(`${GATEWAY_GROUP}/v1`, 'ListenerSet', {
      parentRef: { group: GATEWAY_GROUP, kind: 'Gateway', ...gateway },
      listeners: [{ name: section, port: listen, protocol }],
    });
    this.node.defaultChild = child(`${GATEWAY_GROUP}/${routeVersion}`, routeKind(protocol), {
      parentRefs: [{ group: GATEWAY_GROUP, kind: 'ListenerSet', name: metadata.name, sectionName: section }],
      rules: [{ backendRefs: [backend(upstream, metadata.namespace)] }],
    });
  }
}

function backend({ namespace, service, port }: StreamIngressSpec['upstream'], own: string | undefined) {
  if (typeof port === 'string') {
    throw new OperatorError({
      reason: 'PortNotFound',
      path: ['spec', 'upstream', 'port'],
      message: `spec.upstream.port: a route takes the number of a port, and "${port}" is a name; give the number`,
    });
  }
  return { name: service, ...(namespace !== undefined && namespace !== own && { namespace }), port };
}

export function listenerName(protocol: Protocol, listen: number): string {
  return `${protocol.toLowerCase()}-${listen}`;
}

export function routeKind(protocol: Protocol): 'TCPRoute' | 'UDPRoute' {
  return `${protocol}Route`;
}

export const listenerSetType = gatewayType('ListenerSet', 'v1');

/** ListenerSet, TCPRoute and UDPRoute, as they are written. */
export function gatewayTypes(routeVersion: RouteVersion): ResourceType[] {
  return [listenerSetType, gatewayType('TCPRoute', routeVersion), gatewayType('UDPRoute', routeVersion)];
}

function gatewayType(kind: string, version: string): ResourceType {
  return resourceType({ apiVersion: `${GATEWAY_GROUP}/${version}`, kind });
}

/** What renders a custom resource for one target. */
export function gatewayRendering(
  type: ResourceType,
  { gateway }: GatewayTarget,
  routeVersion: RouteVersion,
): RenderedKind {
  class TargetsPort extends GatewayPort {
    constructor(scope: Construct, id: string, props: CustomResourceProps<StreamIngressSpec>) {
      super(scope, id, { ...props, gateway, routeVersion });
    }
  }
  const construct: KindConstruct<StreamIngressSpec> = TargetsPort;
  return { type, construct, children: gatewayTypes(routeVersion) };
}

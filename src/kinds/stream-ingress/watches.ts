import type { Watch } from '../../contract/controller.js';
import { keepIdentity, keepStatus } from '../../contract/projections.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { gatewayTypes } from './gateway-port.js';
import { keepArguments } from './kept-arguments.js';
import { keepConfigMap } from './kept-config-map.js';
import { keepRoute } from './kept-route.js';
import { keepService, keepTargetService } from './kept-service.js';
import { keepSlice } from './kept-slice.js';
import { grantOf } from './permission.js';
import type { StreamIngress } from './spec.js';
import { isNginx, targetName } from './targets.js';
import type { NginxTarget, Targets } from './targets.js';

export const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
export const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
export const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
/** In the version that every Gateway API since 0.6 serves. */
export const grants = resourceType({
  apiVersion: 'gateway.networking.k8s.io/v1beta1',
  kind: 'ReferenceGrant',
});

/** What is watched; the keys are names of targets. Watches of two controllers share what they keep. */
export interface Watches {
  readonly crs: Watch;
  /** Where upstreams are. */
  readonly services: Watch;
  /** Those that open the ports of an ingress-nginx, each by its name. */
  readonly targetServices: readonly Watch[];
  readonly slices: Watch;
  /** None where annotations count instead. */
  readonly grants: readonly Watch[];
  /** Those that an ingress-nginx reads, each by its name. */
  readonly configMaps: readonly Watch[];
  /** The workloads whose arguments are looked at, each by its name. */
  readonly workloads: readonly Watch[];
  /** None without a Gateway. */
  readonly children: readonly Watch[];
}

/** An object beside whose identity something of ours is kept. */
export type Kept<What = unknown> = AnyObject & { readonly kept: What };

export function watchesFor(type: ResourceType, targets: Targets): Watches {
  const nginx = targets.all.filter(isNginx);
  const everyTarget = targets.all.map(({ name }) => name);
  const gateways = targets.all.filter((target) => !isNginx(target)).map(({ name }) => name);
  return {
    crs: {
      type,
      keep: keepResource,
      mapsTo: (cr) => [targetName(targets, (cr as unknown as StreamIngress).spec.className)],
    },
    services: { type: services, readOnly: true, keep: keepUpstream, mapsTo: () => everyTarget },
    targetServices: nginx.map(({ namespace, service }) => ({
      // It may be an upstream too, of whichever target.
      ...{ type: services, keep: keepTarget, mapsTo: () => everyTarget },
      ...{ namespaces: [namespace], name: service },
    })),
    slices: { type: slices, readOnly: true, keep: keepSlices, mapsTo: () => everyTarget },
    grants:
      targets.crossNamespace === 'ReferenceGrant'
        ? [{ type: grants, readOnly: true, optional: true, keep: keepGrant, mapsTo: () => everyTarget }]
        : [],
    configMaps: nginx.flatMap(({ name: target, namespace, tcpConfigMap, udpConfigMap }) =>
      [tcpConfigMap, udpConfigMap].map((name) => ({
        ...{ type: configMaps, keep: keepPorts, mapsTo: () => [target] },
        ...{ namespaces: [namespace], name },
      })),
    ),
    workloads: workloadWatches(nginx),
    children:
      gateways.length > 0
        ? gatewayTypes(targets.routeVersion).map((child) => ({
            type: child,
            keep: child.kind === 'ListenerSet' ? keepStatus : keepBackends,
            optional: true,
            writes: ['create', 'patch', 'delete'] as const,
            mapsTo: () => gateways,
          }))
        : [],
  };
}

/** Whole but for the bookkeeping that nobody reads. */
function keepResource(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

function keepUpstream(object: AnyObject): AnyObject {
  return { ...keepIdentity(object), kept: keepService(object) };
}

function keepTarget(object: AnyObject): AnyObject {
  return { ...withoutStatus(keepStatus(object)), kept: keepTargetService(object) };
}

function keepPorts(object: AnyObject): AnyObject {
  return { ...keepStatus(object), kept: keepConfigMap(object) };
}

function keepSlices(object: AnyObject): AnyObject | undefined {
  const kept = keepSlice(object);
  return kept && { ...keepIdentity(object), kept };
}

function keepGrant(object: AnyObject): AnyObject | undefined {
  const kept = grantOf(object);
  return kept && { ...keepIdentity(object), kept };
}

function keepBackends(object: AnyObject): AnyObject {
  return { ...keepStatus(object), kept: keepRoute(object) };
}

function workloadWatches(nginx: readonly NginxTarget[]): Watch[] {
  const targetsOf = new Map<string, { watch: Omit<Watch, 'mapsTo'>; targets: readonly string[] }>();
  for (const { name: target, namespace, controller } of nginx) {
    if (!controller) continue;
    const { kind, name } = controller;
    const id = `${kind} ${namespace}/${name}`;
    const type = resourceType({ apiVersion: 'apps/v1', kind });
    const watch = { type, readOnly: true, namespaces: [namespace], name, keep: keepWorkload };
    targetsOf.set(id, { watch, targets: [...(targetsOf.get(id)?.targets ?? []), target] });
  }
  return [...targetsOf.values()].map(({ watch, targets }) => ({ ...watch, mapsTo: () => targets }));
}

function keepWorkload(object: AnyObject): AnyObject {
  return { ...keepIdentity(object), kept: keepArguments(object) };
}

function withoutStatus({ status, ...rest }: AnyObject): AnyObject {
  return rest;
}

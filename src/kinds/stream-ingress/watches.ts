import type { Watch } from '../../contract/controller.js';
import { keepIdentity, keepStatus } from '../../contract/projections.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { gatewayTypes } from './gateway-port.js';
import { keepArguments } from './kept-arguments.js';
import { keepConfigMap } from './kept-config-map.js';
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
  readonly services: Watch;
  readonly slices: Watch;
  /** None where annotations count instead. */
  readonly grants: readonly Watch[];
  /** None without an ingress-nginx. */
  readonly configMaps: readonly Watch[];
  /** The workloads whose arguments are looked at. */
  readonly workloads: readonly Watch[];
  /** None without a Gateway. */
  readonly children: readonly Watch[];
}

/** An object beside whose identity something of ours is kept. */
export type Kept<What = unknown> = AnyObject & { readonly kept: What };

/** @param watched the namespaces that the operator watches. @default - all */
export function watchesFor(type: ResourceType, targets: Targets, watched?: readonly string[]): Watches {
  const nginx = targets.all.filter(isNginx);
  const everyTarget = targets.all.map(({ name }) => name);
  const gateways = targets.all.filter((target) => !isNginx(target)).map(({ name }) => name);
  return {
    crs: {
      type,
      keep: keepResource,
      mapsTo: (cr) => [targetName(targets, (cr as unknown as StreamIngress).spec.className)],
    },
    services: {
      ...{ type: services, keep: keepServices(nginx), mapsTo: () => everyTarget },
      // The upstreams, and the targets' own.
      ...(watched && { namespaces: unique([...watched, ...nginx.map(({ namespace }) => namespace)]) }),
    },
    slices: { type: slices, readOnly: true, keep: keepSlices, mapsTo: () => everyTarget },
    grants:
      targets.crossNamespace === 'ReferenceGrant'
        ? [{ type: grants, readOnly: true, optional: true, keep: keepGrant, mapsTo: () => everyTarget }]
        : [],
    configMaps: nginx.length > 0 ? [configMapWatch(nginx)] : [],
    workloads: workloadWatches(nginx),
    children:
      gateways.length > 0
        ? gatewayTypes(targets.routeVersion).map((child) => ({
            type: child,
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

function keepServices(nginx: readonly NginxTarget[]) {
  const ofTargets = new Set(nginx.map(({ namespace, service }) => `${namespace}/${service}`));
  return (object: AnyObject): AnyObject =>
    ofTargets.has(keyOf(object))
      ? { ...withoutStatus(keepStatus(object)), kept: keepTargetService(object) }
      : { ...keepIdentity(object), kept: keepService(object) };
}

function keepSlices(object: AnyObject): AnyObject | undefined {
  const kept = keepSlice(object);
  return kept && { ...keepIdentity(object), kept };
}

function keepGrant(object: AnyObject): AnyObject | undefined {
  const kept = grantOf(object);
  return kept && { ...keepIdentity(object), kept };
}

function configMapWatch(nginx: readonly NginxTarget[]): Watch {
  const targetOf = new Map<string, string>(
    nginx.flatMap(({ name, namespace, tcpConfigMap, udpConfigMap }) =>
      [tcpConfigMap, udpConfigMap].map((map) => [`${namespace}/${map}`, name] as const),
    ),
  );
  return {
    type: configMaps,
    namespaces: unique(nginx.map(({ namespace }) => namespace)),
    keep: (object) =>
      targetOf.has(keyOf(object))
        ? { ...keepStatus(object), kept: keepConfigMap(object) }
        : keepIdentity(object),
    mapsTo: (object) => [targetOf.get(keyOf(object)) ?? []].flat(),
  };
}

function workloadWatches(nginx: readonly NginxTarget[]): Watch[] {
  return (['Deployment', 'DaemonSet'] as const).flatMap((kind) => {
    const looked = nginx.flatMap(({ name, namespace, controller }) =>
      controller?.kind === kind ? [{ target: name, namespace, name: controller.name }] : [],
    );
    const [first] = looked;
    if (!first) return [];
    const targetsOf = (object: AnyObject): string[] =>
      looked
        .filter(({ namespace, name }) => objectKey(namespace, name) === keyOf(object))
        .map(({ target }) => target);
    const names = unique(looked.map(({ name }) => name));
    return [
      {
        type: resourceType({ apiVersion: 'apps/v1', kind }),
        readOnly: true,
        namespaces: unique(looked.map(({ namespace }) => namespace)),
        // A right on the one object is enough, where it is one.
        ...(names.length === 1 && { name: first.name }),
        keep: (object) =>
          targetsOf(object).length > 0 ? { ...keepIdentity(object), kept: keepArguments(object) } : undefined,
        mapsTo: targetsOf,
      },
    ];
  });
}

function withoutStatus({ status, ...rest }: AnyObject): AnyObject {
  return rest;
}

function keyOf({ metadata }: AnyObject): string {
  return objectKey(metadata.namespace, metadata.name);
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}

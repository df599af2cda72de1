import type { Reader, TypeRef, Watch } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { keepIdentity, keepStatus } from '../../contract/projections.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { claimsOf } from './claims.js';
import type { Claims } from './claims.js';
import { gatewayTypes } from './gateway-port.js';
import {
  grantOf,
  keepArguments,
  keepConfigMap,
  keepRoute,
  keepService,
  keepSlice,
  keepTargetService,
} from './kept.js';
import type {
  Grant,
  KeptArguments,
  KeptConfigMap,
  KeptService,
  KeptSlice,
  KeptTargetService,
} from './kept.js';
import type { SharedState } from './openings.js';
import { resolve } from './resolve.js';
import type { Resolution, Upstreams } from './resolve.js';
import type { StreamIngress } from './spec.js';
import { isNginx, targetName } from './targets.js';
import type { NginxTarget, Target, Targets } from './targets.js';

/** What one target's custom resources ask for, and what is known of their upstreams. */
export interface View {
  readonly claims: Claims;
  resolution(cr: StreamIngress): Resolution;
}

/** @param withEndpoints false where nobody asks whether anything is ready */
export function viewOf(
  targets: Targets,
  target: Target,
  crs: readonly StreamIngress[],
  reader: Reader,
  withEndpoints: boolean,
): View {
  const known = upstreamsIn(targets, target, reader, withEndpoints);
  const found = new Map<StreamIngress, Resolution>();
  return {
    claims: claimsOf(target, crs),
    resolution: (cr) => {
      const resolution = found.get(cr) ?? resolve(cr, known);
      found.set(cr, resolution);
      return resolution;
    },
  };
}

function upstreamsIn(
  { crossNamespace }: Targets,
  { name }: Target,
  reader: Reader,
  withEndpoints: boolean,
): Upstreams {
  const ready = new Map<string, Set<string>>();
  for (const { kept } of withEndpoints ? (reader.mappedTo(slices, name) as readonly Kept<KeptSlice>[]) : []) {
    const ports = ready.get(kept.service) ?? new Set();
    for (const port of kept.readyPorts) ports.add(port);
    ready.set(kept.service, ports);
  }
  return {
    service: (key) => keptOf(reader, services, key) as KeptService | undefined,
    readyPorts: (key) => ready.get(key) ?? NONE,
    grants:
      crossNamespace === 'ReferenceGrant'
        ? (reader.mappedTo(grants, name) as readonly Kept<Grant>[]).map(({ kept }) => kept)
        : undefined,
  };
}

const NONE: ReadonlySet<string> = new Set();

/** The shared objects of an ingress-nginx. */
export function sharedStateIn(target: NginxTarget, reader: Reader): SharedState {
  const { namespace, service, tcpConfigMap, udpConfigMap } = target;
  const map = (name: string) =>
    keptOf(reader, configMaps, `${namespace}/${name}`) as KeptConfigMap | undefined;
  return {
    configMaps: { TCP: map(tcpConfigMap), UDP: map(udpConfigMap) },
    service: keptOf(reader, services, `${namespace}/${service}`) as KeptTargetService | undefined,
  };
}

/** What the controller of a target reads: null where it isn't there, undefined where nobody looks. */
export function argumentsIn(
  { namespace, controller }: NginxTarget,
  reader: Reader,
): KeptArguments | null | undefined {
  if (!controller) return undefined;
  const type = { apiVersion: 'apps/v1', kind: controller.kind };
  return keptOf(reader, type, `${namespace}/${controller.name}`) ?? null;
}

/** All custom resources of a target, or of a class that is none. */
export function resourcesOf(type: TypeRef, target: string, reader: Reader): readonly StreamIngress[] {
  return reader.mappedTo(type, target) as unknown as readonly StreamIngress[];
}

function keptOf(reader: Reader, type: TypeRef, key: string): unknown {
  return (reader.get(type, key) as Kept | undefined)?.kept;
}

const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
/** In the version that every Gateway API since 0.6 serves. */
const grants = resourceType({
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

const keepUpstream = keeping(keepService, keepIdentity);
const keepTarget = keeping(keepTargetService, (object) => withoutStatus(keepStatus(object)));
const keepPorts = keeping(keepConfigMap, keepStatus);
const keepSlices = keeping(keepSlice, keepIdentity);
const keepGrant = keeping(grantOf, keepIdentity);
const keepBackends = keeping(keepRoute, keepStatus);
const keepWorkload = keeping(keepArguments, keepIdentity);

/** Keeps what one function takes from an object beside what another leaves of it; nothing where the first takes nothing. */
function keeping(take: (object: AnyObject) => unknown, beside: (object: AnyObject) => AnyObject) {
  return (object: AnyObject): AnyObject | undefined => {
    const kept = take(object);
    return kept === undefined ? undefined : { ...beside(object), kept };
  };
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

function withoutStatus({ status, ...rest }: AnyObject): AnyObject {
  return rest;
}

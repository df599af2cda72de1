import type { Reader, TypeRef } from '../../contract/controller.js';
import { claimsOf } from './claims.js';
import type { Claims } from './claims.js';
import type { KeptArguments } from './kept-arguments.js';
import type { KeptConfigMap } from './kept-config-map.js';
import type { KeptService, KeptTargetService } from './kept-service.js';
import type { KeptSlice } from './kept-slice.js';
import type { SharedState } from './openings.js';
import type { Grant } from './permission.js';
import { resolve } from './resolve.js';
import type { Resolution, Upstreams } from './resolve.js';
import type { StreamIngress } from './spec.js';
import type { NginxTarget, Target, Targets } from './targets.js';
import { configMaps, grants, services, slices } from './watches.js';
import type { Kept } from './watches.js';

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

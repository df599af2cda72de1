import type { ChangeSet } from '../../contract/change.js';
import type {
  Controller,
  EventStep,
  Plan,
  Reader,
  Settle,
  TypeRef,
  Watch,
} from '../../contract/controller.js';
import type { Render, RenderedKind } from '../../contract/kind.js';
import { statusFieldManager } from '../../contract/names.js';
import { objectKey, refOf, splitKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { keepIdentity, keepStatus } from '../../contract/projections.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { claimsOf, classRefusal, resolve } from './claims.js';
import type { Claims, Resolution } from './claims.js';
import {
  childrenOf,
  dropChildren,
  gatewayRendering,
  gatewayTypes,
  planGateway,
  rememberingRender,
} from './gateway.js';
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
import {
  addressesOf,
  entryIn,
  notClosed,
  openings,
  portIn,
  programmed,
  sharedSteps,
  stillOpen,
} from './nginx.js';
import type { SharedState } from './nginx.js';
import { KIND } from './spec.js';
import type { StreamIngress } from './spec.js';
import { stalledEvent } from '../../contract/status.js';
import { explanationsOf, readinessOf, statusOf } from './status.js';
import type { Findings } from './status.js';
import { configMapKey, isNginx, serviceKey, targetName, targetNamed } from './targets.js';
import type { NginxTarget, Target, Targets } from './targets.js';

/** Claims of one target's custom resources, and the state of their upstreams. */
export interface View {
  readonly claims: Claims;
  readonly resolution: (cr: StreamIngress) => Resolution;
}

const NO_PORTS: ReadonlySet<string> = new Set();

/** @param withEndpoints false where it doesn't matter whether anything is ready */
export function viewOf(
  { crossNamespace }: Targets,
  target: Target,
  crs: readonly StreamIngress[],
  reader: Reader,
  withEndpoints: boolean,
): View {
  const keptFor = (type: TypeRef) => reader.mappedTo(type, target.name) as readonly Kept[];
  const ready = new Map<string, Set<string>>();
  for (const { kept } of withEndpoints ? keptFor(slices) : []) {
    const { service, readyPorts } = kept as KeptSlice;
    ready.set(service, new Set([...(ready.get(service) ?? []), ...readyPorts]));
  }
  const upstreams = {
    service: (key: string) => keptOf(reader, services, key) as KeptService | undefined,
    readyPorts: (key: string) => ready.get(key) ?? NO_PORTS,
    grants:
      crossNamespace === 'ReferenceGrant' ? keptFor(grants).map(({ kept }) => kept as Grant) : undefined,
  };
  const found = new Map<StreamIngress, Resolution>();
  return {
    claims: claimsOf(target, crs),
    resolution: (cr) => {
      const resolution = found.get(cr) ?? resolve(cr, upstreams);
      found.set(cr, resolution);
      return resolution;
    },
  };
}

/** Returns the shared objects of an ingress-nginx. */
export function sharedStateIn(target: NginxTarget, reader: Reader): SharedState {
  const map = (protocol: 'TCP' | 'UDP') =>
    keptOf(reader, configMaps, configMapKey(target, protocol)) as KeptConfigMap | undefined;
  return {
    configMaps: { TCP: map('TCP'), UDP: map('UDP') },
    service: keptOf(reader, services, serviceKey(target)) as KeptTargetService | undefined,
  };
}

/** Returns what the controller of a target reads: null where it isn't there, undefined where that isn't checked. */
export function argumentsIn(target: NginxTarget, reader: Reader): KeptArguments | null | undefined {
  if (!target.ingressController) return undefined;
  const { kind, name } = workload(target.ingressController);
  const found = keptOf(reader, { apiVersion: 'apps/v1', kind }, objectKey(target.ingressNamespace, name));
  return (found as KeptArguments | undefined) ?? null;
}

function workload(text: string): { readonly kind: string; readonly name: string } {
  const { namespace: kind = '', name } = splitKey(text);
  return { kind, name };
}

/** Returns all custom resources of a target, or of a class that is none. */
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

/** The watches; the keys are names of targets. Watches of two controllers share what they keep. */
export interface Watches {
  readonly crs: Watch;
  /** Upstreams. */
  readonly services: Watch;
  /** None where annotations count instead. */
  readonly grants: readonly Watch[];
  /** Those that open the ports of an ingress-nginx, each by its name. */
  readonly targetServices: readonly Watch[];
  readonly slices: Watch;
  /** Those that an ingress-nginx reads, each by its name. */
  readonly configMaps: readonly Watch[];
  /** Workloads whose arguments are checked, each by its name. */
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
  const mapsTo = (): readonly string[] => everyTarget;
  const grantWatch: Watch = { type: grants, readOnly: true, optional: true, keep: keepGrant, mapsTo };
  const controllers = nginx.filter(({ ingressController }) => ingressController !== undefined);
  const idOf = ({ ingressNamespace, ingressController }: NginxTarget): string =>
    `${ingressNamespace} ${ingressController}`;
  const distinct = new Map(controllers.map((target) => [idOf(target), target]));
  return {
    crs: {
      type,
      keep: keepResource,
      mapsTo: (cr) => [targetName(targets, (cr as unknown as StreamIngress).spec.className)],
    },
    services: { type: services, readOnly: true, keep: keepUpstream, mapsTo },
    grants: targets.crossNamespace === 'ReferenceGrant' ? [grantWatch] : [],
    targetServices: nginx.map(({ ingressNamespace, ingressService }) => ({
      // It may be an upstream too, of whichever target.
      ...{ type: services, keep: keepTarget, mapsTo },
      ...{ namespaces: [ingressNamespace], name: ingressService },
    })),
    slices: { type: slices, readOnly: true, keep: keepSlices, mapsTo },
    configMaps: nginx.flatMap((target) =>
      [target.tcpServicesConfigMap, target.udpServicesConfigMap].map((name) => ({
        ...{ type: configMaps, keep: keepPorts, mapsTo: () => [target.name] },
        ...{ namespaces: [target.ingressNamespace], name },
      })),
    ),
    workloads: [...distinct].map(([id, { ingressNamespace, ingressController = '' }]) => {
      const { kind, name } = workload(ingressController);
      const its = controllers.filter((target) => idOf(target) === id).map((target) => target.name);
      return {
        ...{ type: resourceType({ apiVersion: 'apps/v1', kind }), readOnly: true, keep: keepWorkload },
        ...{ namespaces: [ingressNamespace], name, mapsTo: () => its },
      };
    }),
    children: (gateways.length > 0 ? gatewayTypes(targets.routeVersion) : []).map((child) => ({
      type: child,
      keep: child.kind === 'ListenerSet' ? keepStatus : keepBackends,
      optional: true,
      writes: ['create', 'patch', 'delete'],
      mapsTo: () => gateways,
    })),
  };
}

/** Leaves out the bookkeeping that nothing here reads. */
function keepResource(object: AnyObject): AnyObject {
  const { managedFields, ...metadata } = object.metadata as AnyObject['metadata'] & {
    managedFields?: unknown;
  };
  return { ...object, metadata };
}

const keepUpstream = keeping(keepService, keepIdentity);
const keepTarget = keeping(keepTargetService, (object) => {
  const { status, ...rest } = keepStatus(object);
  return rest;
});
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

type FindingsOf = (cr: StreamIngress, changes: ChangeSet) => Findings;

/**
 * Writes the status of every custom resource: whether it holds the port, whether the upstream is there, and whether the
 * target has the port, read back from its objects. For a Gateway it also keeps the children.
 *
 * Somewhere in a cluster some Service always gains or loses its last ready Pod, and each such change recomputes all
 * statuses of a target: so a few are taken together, for much less than the two seconds within which a loser has its
 * condition.
 */
export class StatusController implements Controller {
  readonly name = 'streamingress';
  readonly kind = KIND;
  readonly settle: Settle = { quietMilliseconds: 100, longestMilliseconds: 500 };
  readonly watches: readonly Watch[];
  /** By the name of a Gateway's target. */
  private readonly gateways: ReadonlyMap<
    string,
    { readonly rendering: RenderedKind; readonly render: (cr: StreamIngress) => AnyObject[] }
  >;

  constructor(
    private readonly type: ResourceType,
    private readonly targets: Targets,
    watches: Watches,
    render: Render,
  ) {
    const { crs, services, targetServices, slices, grants, configMaps, workloads, children } = watches;
    this.watches = [
      // The owner of children that block its deletion has to be one that we may finalize.
      { ...crs, writes: children.length > 0 ? ['status', 'finalizers'] : ['status'] },
      ...[services, ...targetServices, slices, ...grants, ...configMaps, ...workloads, ...children],
    ];
    this.gateways = new Map(
      targets.all.flatMap((target) => {
        if (isNginx(target)) return [];
        const rendering = gatewayRendering(type, target, targets.routeVersion);
        return [[target.name, { rendering, render: rememberingRender(render, rendering) }] as const];
      }),
    );
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const crs = resourcesOf(this.type, key, reader).filter(({ metadata }) => !metadata.deletionTimestamp);
    const target = targetNamed(this.targets, key);
    if (!target) {
      const refused: FindingsOf = (cr) => ({ refusal: classRefusal(cr.spec.className), addresses: [] });
      return { ...plan(crs, refused, now), delete: this.leftovers(crs, reader) };
    }
    const view = viewOf(this.targets, target, crs, reader, true);
    const gateway = this.gateways.get(key);
    if (isNginx(target) || !gateway) {
      const findingsOf = nginxFindings(target as NginxTarget, view, reader);
      return { ...plan(crs, findingsOf, now), delete: this.leftovers(crs, reader) };
    }
    const { findings: found, ...steps } = planGateway(
      target,
      view,
      gateway.rendering,
      gateway.render,
      reader,
    );
    const findingsOf: FindingsOf = (cr, changes) => {
      const common = findings(key, view, cr);
      return common.refusal ? common : { ...common, ...found(cr, changes) };
    };
    return { ...plan(crs, findingsOf, now), ...steps };
  }

  /** Deletes what those have on a Gateway whose class was one and isn't any more; it is known where there is another Gateway. */
  private leftovers(crs: readonly StreamIngress[], reader: Reader): Plan['delete'] {
    if (this.gateways.size === 0) return [];
    const types = gatewayTypes(this.targets.routeVersion);
    return crs.flatMap((cr) => dropChildren(childrenOf(types, cr, reader)).delete);
  }
}

function nginxFindings(target: NginxTarget, view: View, reader: Reader): FindingsOf {
  const state = sharedStateIn(target, reader);
  const opened = openings(target, view.claims.holders, view.resolution, state);
  const readBack = { state, openings: opened, controller: argumentsIn(target, reader) };
  return (cr) => {
    const common = findings(target.name, view, cr);
    if (!common.refusal)
      return { ...common, programmed: programmed(target, cr, readBack), addresses: addressesOf(cr, state) };
    const left = common.refusal.reason === 'PortConflict' ? undefined : stillOpen(target, cr, readBack);
    return left ? { ...common, programmed: left } : common;
  };
}

function findings(target: string, view: View, cr: StreamIngress): Findings {
  const refusal = view.claims.refused.get(cr);
  return { target, ...(refusal && { refusal }), resolution: view.resolution(cr), addresses: [] };
}

/** Plans statuses and events alone; findings may depend on what was applied. */
function plan(crs: readonly StreamIngress[], findingsOf: FindingsOf, now: Date): Plan {
  return {
    apply: [],
    delete: [],
    status: crs.map((cr) => ({
      target: cr,
      fieldManager: statusFieldManager(KIND),
      status: (changes) => statusOf(cr, findingsOf(cr, changes), now),
    })),
    events: crs.map((cr) => ({
      regarding: { ...refOf(cr), uid: cr.metadata.uid ?? '' },
      event: (changes) => stalledEvent(cr, readinessOf(cr, findingsOf(cr, changes))),
    })),
    explain: () => crs.flatMap((cr) => explanationsOf(cr, findingsOf(cr, []))),
  };
}

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** Custom resources that get an event of one failure, of those to be opened and of those to be closed. */
const MAX_EVENTS = 10;

/**
 * Writes the ConfigMaps and the Service of each ingress-nginx: one apply for each object, of all that its custom
 * resources come to. A burst is waited out, since every change makes ingress-nginx reload its configuration.
 */
export class SharedController implements Controller {
  readonly name = 'streamingress-targets';
  readonly kind = KIND;
  readonly settle: Settle = { quietMilliseconds: 1000, longestMilliseconds: 5000 };
  readonly watches: readonly Watch[];

  constructor(
    private readonly type: ResourceType,
    private readonly targets: Targets,
    { crs, services, targetServices, grants, configMaps }: Watches,
  ) {
    this.watches = [
      ...[crs, services],
      ...targetServices.map((watch) => ({ ...watch, writes: ['patch'] as const })),
      ...grants,
      ...configMaps.map((watch) => ({ ...watch, writes: ['create', 'patch'] as const })),
    ];
  }

  reconcile(key: string, reader: Reader): Plan {
    const target = targetNamed(this.targets, key);
    if (!target || !isNginx(target)) return NOTHING;
    const crs = resourcesOf(this.type, key, reader);
    const { claims, resolution } = viewOf(this.targets, target, crs, reader, false);
    const state = sharedStateIn(target, reader);
    const { entries, open } = openings(target, claims.holders, resolution, state);
    const apply = sharedSteps(target, entries, state);
    const waiting = entries.filter(
      (entry) => entryIn(entry, state)?.value !== entry.value || !portIn(entry, state),
    );
    // Nothing is to be open for these; the port of a loser is another one's.
    const refused = [...claims.refused].filter(([, { reason }]) => reason !== 'PortConflict');
    const unwanted = [...claims.holders.filter((cr) => !open.has(cr)), ...refused.map(([cr]) => cr)];
    const closing = unwanted.filter((cr) => notClosed(target, cr, entries, state) !== undefined);
    // Where the Service is applied twice, it is first for those to be closed and last for those to be opened.
    const twice = apply.filter(({ object }) => object.kind === 'Service').length > 1;
    return {
      ...NOTHING,
      apply,
      events: [
        ...failureEvents(
          waiting.map(({ cr }) => cr),
          'Open',
          (changes) => changes.slice(twice ? 1 : 0),
        ),
        ...failureEvents(closing, 'Close', (changes) => changes.slice(0, twice ? -1 : undefined)),
      ],
    };
  }
}

/** Events to those that wait for a failed write; their status is written by the other controller, from what is read back. */
function failureEvents(
  crs: readonly StreamIngress[],
  action: string,
  relevant: (changes: ChangeSet) => ChangeSet,
): EventStep[] {
  return crs.slice(0, MAX_EVENTS).map((cr) => ({
    regarding: { ...refOf(cr), uid: cr.metadata.uid ?? '' },
    event: (changes) => {
      const error = relevant(changes).find((change) => change.error)?.error;
      return error && { type: 'Warning', reason: error.reason, action, note: error.message };
    },
  }));
}

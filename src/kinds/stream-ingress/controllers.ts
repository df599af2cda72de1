import type { ChangeSet } from '../../contract/change.js';
import type { Controller, Reader, Write } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { statusOrError } from '../../values/origin.js';
import { NOTHING } from '../../contract/plan.js';
import type { Plan } from '../../contract/plan.js';
import type { Render } from '../../contract/kind.js';
import { statusFieldManager } from '../../contract/names.js';
import { refOf } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { share } from '../../engine/steps/share.js';
import { stalledEvent } from '../../author/status.js';
import { claimsOf, classRefusal, resolve, type Resolution, type View } from './claims.js';
import { dropChildren, planGateway, gatewayRendering, rememberingRender } from './gateway.js';
import { addressesOf, entryIn, keptRefusal, notClosed, openings, portIn } from './nginx.js';
import { programmed, refusedCondition, sharedSteps } from './nginx.js';
import { KIND, type StreamIngress } from './spec.js';
import { explanationsOf, readinessOf, statusOf, type Findings } from './status.js';
import { isNginx, type NginxTarget, type Target, type Targets } from './targets.js';
import { childrenOf, gatewayTypes, resourcesOf, sharedStateIn, upstreamsIn } from './watched.js';
import type { Watches } from './watched.js';

/** @param withEndpoints false where it doesn't matter whether anything is ready */
function viewOf(
  targets: Targets,
  target: Target,
  crs: readonly StreamIngress[],
  reader: Reader,
  withEndpoints: boolean,
): View {
  const upstreams = upstreamsIn(targets, target, reader, withEndpoints);
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

type FindingsOf = (cr: StreamIngress, changes: ChangeSet) => Findings | undefined;

/**
 * Writes the status of every custom resource: whether it holds the port, whether the upstream is there, and whether the
 * target has the port, read back from its objects. For a Gateway it also keeps the children.
 *
 * Somewhere in a cluster some Service always gains or loses its last ready Pod, and each such change recomputes all
 * statuses of a target: so a few are taken together, for much less than the two seconds within which a loser has its
 * condition.
 */
export function statusController(
  type: ResourceType,
  targets: Targets,
  watches: Watches,
  render: Render,
): Controller {
  const { crs, upstreams, targetServices, slices, grants, configMaps, workloads, children } = watches;
  const types = gatewayTypes(targets.routeVersion);
  const plans = new Map(
    targets.all.flatMap((target) => {
      if (isNginx(target)) return [];
      const rendering = gatewayRendering(type, target, targets.routeVersion);
      return [[target.name, { target, types, render: rememberingRender(render, rendering) }] as const];
    }),
  );
  return {
    name: 'streamingress',
    kind: KIND,
    explains: true,
    settle: { quietMilliseconds: 100, longestMilliseconds: 500 },
    watches: [
      // The owner of children that block its deletion has to be one that we may finalize.
      { ...crs, writes: children.length > 0 ? ['status', 'finalizers'] : ['status'] },
      ...[upstreams, ...targetServices, slices, ...grants, ...configMaps, ...workloads, ...children],
    ],
    reconcile(key, reader, now) {
      const all = resourcesOf(type, key, reader).filter(({ metadata }) => !metadata.deletionTimestamp);
      const target = targets.all.find(({ name }) => name === key);
      const view = target && viewOf(targets, target, all, reader, true);
      const gateway = view && plans.get(key);
      if (gateway) {
        const { findings: found, steps } = planGateway(gateway, view, reader);
        const findingsOf: FindingsOf = (cr, changes) => {
          const common = findings(key, view, cr);
          return common.refusal ? common : { ...common, ...found(cr, changes) };
        };
        return { ...statusPlan(all, findingsOf, now), steps };
      }
      // What a class has made that was a Gateway's goes; it is known where there is another Gateway.
      const leftovers =
        plans.size > 0 ? all.flatMap((cr) => dropChildren(childrenOf(types, cr, reader)).pruned) : [];
      const findingsOf: FindingsOf = view
        ? nginxFindings(target as NginxTarget, view, reader)
        : (cr) => ({ refusal: classRefusal(cr.spec.className) });
      return { ...statusPlan(all, findingsOf, now), steps: leftovers };
    },
  };
}

function nginxFindings(target: NginxTarget, view: View, reader: Reader): FindingsOf {
  const state = sharedStateIn(target, reader);
  const opened = openings(target, view.claims.holders, view.resolution, state);
  return (cr) => {
    const common = findings(target.name, view, cr);
    if (!common.refusal) {
      const condition = keptRefusal(cr, programmed(target, cr, { state, openings: opened, reader }));
      return { ...common, programmed: condition, addresses: addressesOf(cr, state) };
    }
    // The port of a loser is another one's.
    const isLoser = common.refusal.reason === 'PortConflict';
    const left = isLoser ? undefined : notClosed(target, cr, opened.entries, state);
    return left ? { ...common, programmed: keptRefusal(cr, left) } : common;
  };
}

function findings(target: string, view: View, cr: StreamIngress): Findings {
  const refusal = view.claims.refused.get(cr);
  return { target, ...(refusal && { refusal }), resolution: view.resolution(cr) };
}

/** Plans statuses and events alone, of those with findings; these may depend on what was applied. */
function statusPlan(crs: readonly StreamIngress[], findingsOf: FindingsOf, now: Date): Plan {
  return {
    steps: [],
    conclude: (changes) => {
      const told = crs.flatMap((cr) => {
        const found = statusOrError(refOf(cr), () => {
          const findings = findingsOf(cr, changes);
          if (!findings) return undefined;
          const event = stalledEvent(cr, readinessOf(cr, findings));
          return { findings, status: statusOf(cr, findings, now), event };
        });
        return found ? [{ cr, found }] : [];
      });
      const good = told.flatMap(({ cr, found }) =>
        found instanceof OperatorError ? [] : [{ cr, ...found }],
      );
      return {
        status: told.map(({ cr, found }) => ({
          target: cr,
          fieldManager: statusFieldManager(KIND),
          status: found instanceof OperatorError ? found : found.status,
        })),
        events: good.flatMap(({ cr, event }) =>
          event ? [{ regarding: { ...refOf(cr), uid: cr.metadata.uid ?? '' }, event }] : [],
        ),
        get explanations() {
          return good.flatMap(({ cr, findings }) => explanationsOf(cr, findings));
        },
      };
    },
  };
}

/**
 * Writes the ConfigMaps and the Service of each ingress-nginx: one apply for each object, of all that its custom
 * resources come to. A burst is waited out, since every change makes ingress-nginx reload its configuration. What the API
 * server refuses of it is in no object to be read back, so it is reported here; the other controller keeps it.
 */
export function sharedController(
  type: ResourceType,
  targets: Targets,
  { crs, upstreams, targetServices, grants, configMaps }: Watches,
): Controller {
  const writing = (watches: Watches['configMaps'], ...writes: readonly Write[]) =>
    watches.map((watch) => ({ ...watch, writes }));
  return {
    name: 'streamingress-targets',
    kind: KIND,
    explains: true,
    handlers: [share],
    settle: { quietMilliseconds: 1000, longestMilliseconds: 5000 },
    watches: [
      ...[crs, upstreams, ...writing(targetServices, 'patch'), ...grants],
      ...writing(configMaps, 'create', 'patch'),
    ],
    reconcile(key, reader, now) {
      const target = targets.all.find(({ name }) => name === key);
      if (!target || !isNginx(target)) return NOTHING;
      const view = viewOf(targets, target, resourcesOf(type, key, reader), reader, false);
      const { holders, refused } = view.claims;
      const state = sharedStateIn(target, reader);
      const opened = openings(target, holders, view.resolution, state);
      const { entries, open } = opened;
      const opening = entries.filter(
        (entry) => entryIn(entry, state)?.value !== entry.value || !portIn(entry, state),
      );
      // Nothing is to be open for these; the port of a loser is another one's.
      const unwanted = [...refused].filter(([, { reason }]) => reason !== 'PortConflict').map(([cr]) => cr);
      const closing = [...holders.filter((cr) => !open.has(cr)), ...unwanted].filter((cr) =>
        notClosed(target, cr, entries, state),
      );
      const findingsOf: FindingsOf = (cr, changes) => {
        const programmed = refusedCondition(target, cr, opened, state, changes);
        // Endpoints aren't watched here, and the other controller writes the first status of each generation.
        const resolution = cr.status?.conditions?.find(
          (known) => known.type === 'ResolvedRefs' && known.observedGeneration === cr.metadata.generation,
        );
        return programmed && resolution && { ...findings(key, view, cr), resolution, programmed };
      };
      return {
        ...statusPlan([...opening.map(({ cr }) => cr), ...closing], findingsOf, now),
        steps: sharedSteps(target, entries, state),
      };
    },
  };
}

import type { ChangeSet } from '../../contract/change.js';
import type { Controller, Reader, Write } from '../../contract/controller.js';
import { NOTHING } from '../../contract/plan.js';
import type { Plan, Step } from '../../contract/plan.js';
import type { ResourceType } from '../../contract/resource.js';
import { share } from '../../engine/steps/share.js';
import { concludeEach, stalledEvent } from '../../author/status.js';
import { classRefusal, viewOf, type View } from './claims.js';
import { dropChildren, planGateway } from './gateway.js';
import { NginxPorts } from './nginx.js';
import { KIND, type StreamIngress } from './spec.js';
import { explanationsOf, readinessOf, statusOf, type Findings } from './status.js';
import { isNginx, type Targets } from './targets.js';
import { childrenOf, gatewayTypes, resourcesOf, sharedStateIn, upstreamsIn } from './watched.js';
import type { Watches } from './watched.js';

type FindingsOf = (cr: StreamIngress, changes: ChangeSet) => Findings | undefined;

/**
 * Writes the status of every custom resource: whether it holds the port, whether the upstream is there, and whether the
 * target has the port, read back from its objects. For a Gateway it also keeps the children.
 *
 * Somewhere in a cluster some Service always gains or loses its last ready Pod, and each such change recomputes all
 * statuses of a target: so a few are taken together, for much less than the two seconds within which a loser has its
 * condition.
 */
export function statusController(type: ResourceType, targets: Targets, watches: Watches): Controller {
  const { crs, upstreams, targetServices, slices, grants, configMaps, workloads, children } = watches;
  const types = gatewayTypes(targets.routeVersion);
  const leftBy = (cr: StreamIngress, reader: Reader): readonly Step[] =>
    dropChildren(childrenOf(types, cr, reader)).pruned;
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
      // What a class has made that was a Gateway's goes; it is known where there is another Gateway.
      const leftovers = () => (children.length > 0 ? all.flatMap((cr) => leftBy(cr, reader)) : []);
      if (!target) {
        const refused: FindingsOf = (cr) => ({ refusal: classRefusal(cr.spec.className) });
        return statusPlan(all, leftovers(), refused, now);
      }
      const view = viewOf(target, all, upstreamsIn(targets, target, reader, true));
      if (isNginx(target)) {
        const ports = new NginxPorts(target, view, sharedStateIn(target, reader));
        const findingsOf: FindingsOf = (cr) => {
          const common = commonFindings(key, view, cr);
          return { ...common, ...ports.findings(cr, common.refusal, reader) };
        };
        return statusPlan(all, leftovers(), findingsOf, now);
      }
      const { findings, steps } = planGateway({ target, types }, view, reader);
      const findingsOf: FindingsOf = (cr, changes) => {
        const common = commonFindings(key, view, cr);
        return common.refusal ? common : { ...common, ...findings(cr, changes) };
      };
      return statusPlan(all, steps, findingsOf, now);
    },
  };
}

function commonFindings(target: string, { refused, resolution }: View, cr: StreamIngress): Findings {
  const refusal = refused.get(cr);
  return { target, ...(refusal && { refusal }), resolution: resolution(cr) };
}

/** Plans statuses and events beside the steps, of those with findings; these may depend on what was applied. */
function statusPlan(
  crs: readonly StreamIngress[],
  steps: readonly Step[],
  findingsOf: FindingsOf,
  now: Date,
): Plan {
  return {
    steps,
    conclude: (changes) => {
      const items = crs.map((cr) => ({ cr }));
      const { reports, ...conclusion } = concludeEach(KIND, items, ({ cr }) => {
        const findings = findingsOf(cr, changes);
        if (!findings) return undefined;
        const event = stalledEvent(cr, readinessOf(cr, findings));
        return { cr, findings, status: statusOf(cr, findings, now), events: [event] };
      });
      return {
        ...conclusion,
        get explanations() {
          return reports.flatMap(({ cr, findings }) => explanationsOf(cr, findings));
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
      const upstreamsNow = upstreamsIn(targets, target, reader, false);
      const view = viewOf(target, resourcesOf(type, key, reader), upstreamsNow);
      const ports = new NginxPorts(target, view, sharedStateIn(target, reader));
      const findingsOf: FindingsOf = (cr, changes) => {
        const programmed = ports.refused(cr, changes);
        // Endpoints aren't watched here, and the other controller writes the first status of each generation.
        const resolution = cr.status?.conditions?.find(
          (known) => known.type === 'ResolvedRefs' && known.observedGeneration === cr.metadata.generation,
        );
        return programmed && resolution && { ...commonFindings(key, view, cr), resolution, programmed };
      };
      return statusPlan(ports.moving, ports.steps, findingsOf, now);
    },
  };
}

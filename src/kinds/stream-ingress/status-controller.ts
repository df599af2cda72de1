import type { ChangeSet } from '../../contract/change.js';
import type { Controller, Plan, Reader, Settle, Watch, DeleteStep } from '../../contract/controller.js';
import type { Render } from '../../contract/kind.js';
import { statusFieldManager } from '../../contract/names.js';
import { refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { classRefusal } from './claims.js';
import { gatewayRendering, gatewayTypes } from './gateway-port.js';
import { childrenOf, dropChildren, planGateway, rememberingRender } from './gateway.js';
import { addressesOf, openings, programmed, stillOpen } from './openings.js';
import { KIND } from './spec.js';
import type { StreamIngress } from './spec.js';
import { explanationsOf, stalledEvent, statusOf } from './status.js';
import type { Findings } from './status.js';
import { isNginx, targetNamed } from './targets.js';
import type { GatewayTarget, NginxTarget, Targets } from './targets.js';
import { argumentsIn, resourcesOf, sharedStateIn, viewOf } from './view.js';
import type { View, Watches } from './view.js';

type FindingsOf = (cr: StreamIngress, changes: ChangeSet) => Findings;

/**
 * Tells every custom resource how it fares: who has the port, whether the upstream is there, and whether the target has
 * the port, read back from its objects. For a Gateway it also keeps the children.
 *
 * Somewhere in a cluster some Service always gains or loses its last ready Pod, and each such change recomputes all
 * statuses of a target: so a few are taken together, for much less than the two seconds within which a loser is told.
 */
export class StatusController implements Controller {
  readonly name = 'streamingress';
  readonly kind = KIND;
  readonly settle: Settle = { quietMilliseconds: 100, longestMilliseconds: 500 };
  readonly watches: readonly Watch[];
  private readonly renders: ReadonlyMap<string, (cr: StreamIngress) => AnyObject[]>;

  constructor(
    private readonly type: ResourceType,
    private readonly targets: Targets,
    watches: Watches,
    render: Render,
  ) {
    const { crs, services, targetServices, slices, grants, configMaps, workloads, children } = watches;
    this.watches = [
      // Whoever owns children that block its deletion has to be one that we may finalize.
      { ...crs, writes: children.length > 0 ? ['status', 'finalizers'] : ['status'] },
      ...[services, ...targetServices, slices, ...grants, ...configMaps, ...workloads, ...children],
    ];
    this.renders = new Map(
      targets.all.flatMap((target) =>
        isNginx(target) ? [] : [[target.name, rememberingRender(render, this.rendering(target))] as const],
      ),
    );
  }

  reconcile(key: string, reader: Reader, now: Date): Plan {
    const crs = resourcesOf(this.type, key, reader).filter(({ metadata }) => !metadata.deletionTimestamp);
    const target = targetNamed(this.targets, key);
    if (target && !isNginx(target)) return this.gatewayPlan(target, crs, reader, now);
    const findingsOf: FindingsOf = target
      ? this.nginxFindings(target, viewOf(this.targets, target, crs, reader, true), reader)
      : (cr) => ({ refusal: classRefusal(cr.spec.className), addresses: [] });
    return { ...plan(crs, findingsOf, now), delete: this.leftovers(crs, reader) };
  }

  /** What those have on a Gateway whose class was one and isn't any more; it is known where there is another Gateway. */
  private leftovers(crs: readonly StreamIngress[], reader: Reader): DeleteStep[] {
    if (this.renders.size === 0) return [];
    const rendered = { children: gatewayTypes(this.targets.routeVersion) };
    return crs.flatMap((cr) => dropChildren(childrenOf(rendered, cr, reader)).delete);
  }

  private nginxFindings(target: NginxTarget, view: View, reader: Reader): FindingsOf {
    const state = sharedStateIn(target, reader);
    const controller = argumentsIn(target, reader);
    const opened = openings(target, view.claims.holders, (cr) => view.resolution(cr), state);
    const readBack = { state, openings: opened, ...(controller !== undefined && { controller }) };
    return (cr) => {
      const common = findings(target.name, view, cr);
      if (!common.refusal)
        return { ...common, programmed: programmed(target, cr, readBack), addresses: addressesOf(cr, state) };
      const left = common.refusal.reason === 'PortConflict' ? undefined : stillOpen(target, cr, readBack);
      return left ? { ...common, programmed: left } : common;
    };
  }

  private gatewayPlan(target: GatewayTarget, crs: readonly StreamIngress[], reader: Reader, now: Date): Plan {
    const view = viewOf(this.targets, target, crs, reader, true);
    const render = this.renders.get(target.name) ?? (() => []);
    const gateway = planGateway(target, view, this.rendering(target), render, reader);
    const findingsOf: FindingsOf = (cr, changes) => {
      const common = findings(target.name, view, cr);
      return common.refusal ? common : { ...common, ...gateway.findings(cr, changes) };
    };
    const { apply, delete: deletes, deleteFirst } = gateway;
    return { ...plan(crs, findingsOf, now), apply, delete: deletes, deleteFirst };
  }

  private rendering(target: GatewayTarget) {
    return gatewayRendering(this.type, target, this.targets.routeVersion);
  }
}

function findings(target: string, view: View, cr: StreamIngress): Findings {
  const refusal = view.claims.refused.get(cr);
  return { target, ...(refusal && { refusal }), resolution: view.resolution(cr), addresses: [] };
}

/** Only statuses and events; what is found may depend on what was applied. */
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
      event: (changes) => stalledEvent(cr, findingsOf(cr, changes)),
    })),
    explain: () => crs.flatMap((cr) => explanationsOf(cr, findingsOf(cr, []))),
  };
}

import type { ChangeSet } from '../../contract/change.js';
import type { ConditionProps } from '../../contract/conditions.js';
import type { ApplyStep, Plan, Reader, DeleteStep } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import type { Render, RenderedKind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { listenerSetType } from './gateway-port.js';
import { FIELD_MANAGER } from './kept.js';
import type { KeptRoute } from './kept.js';
import type { Resolution } from './resolve.js';
import { serviceKey, upstreamOf } from './spec.js';
import type { StreamIngress } from './spec.js';
import { programmedCondition as condition } from './status.js';
import type { Findings, Programmed } from './status.js';
import { tooManyListeners, withinLimit } from './targets.js';
import type { GatewayTarget } from './targets.js';
import type { Kept, View } from './view.js';

/** What is done for the custom resources of a Gateway, and what can be said of each afterwards. */
interface GatewayPlan extends Pick<Plan, 'apply' | 'delete'> {
  /** Nobody's failed apply may keep what has to go. */
  readonly deleteFirst: true;
  readonly findings: (cr: StreamIngress, changes: ChangeSet) => Pick<Findings, 'programmed' | 'resolution'>;
}

export function planGateway(
  target: GatewayTarget,
  view: View,
  rendering: RenderedKind,
  render: (cr: StreamIngress) => readonly AnyObject[],
  reader: Reader,
): GatewayPlan {
  const { claims } = view;
  const childrenNow = (cr: StreamIngress): AnyObject[] => childrenOf(rendering, cr, reader);
  const plans = new Map<StreamIngress, ChildPlan>();
  for (const cr of claims.refused.keys()) plans.set(cr, dropChildren(childrenNow(cr)));
  for (const cr of claims.holders)
    plans.set(cr, planChildren(cr, view.resolution(cr), childrenNow(cr), render));
  const open = claims.holders.filter((cr) => plans.get(cr)?.open);
  const excess = new Set(withinLimit(target, open, (cr) => childrenNow(cr).length > 0).beyond);
  for (const cr of excess) plans.set(cr, dropChildren(childrenNow(cr)));
  return {
    apply: [...plans.values()].flatMap(({ apply }) => apply),
    delete: [...plans.values()].flatMap((plan) => plan.delete),
    deleteFirst: true,
    findings: (cr, changes) => {
      if (excess.has(cr))
        return { programmed: condition('False', 'TooManyListeners', tooManyListeners(target)) };
      const children = childrenNow(cr);
      const mirrored = view.resolution(cr).status === 'True' ? refsByGateway(children) : undefined;
      return {
        programmed: programmedByGateway(children, plans.get(cr)?.error ?? failureOf(cr, rendering, changes)),
        ...(mirrored && { resolution: mirrored }),
      };
    },
  };
}

function failureOf(
  { metadata }: StreamIngress,
  { children }: RenderedKind,
  changes: ChangeSet,
): OperatorError | undefined {
  const failed = changes.find(
    ({ ref, error }) =>
      error &&
      ref.name === metadata.name &&
      ref.namespace === metadata.namespace &&
      children.some(({ kind }) => kind === ref.kind),
  );
  return failed?.error;
}

/** What is to be done with the children of one custom resource. */
interface ChildPlan {
  readonly apply: readonly ApplyStep[];
  readonly delete: readonly DeleteStep[];
  /** Whether the port is open, or is opened. */
  readonly open: boolean;
  /** Why nothing can be rendered. */
  readonly error?: OperatorError;
}

/**
 * Plans the ListenerSet and the route of a holder: made once the upstream is there, left as they are while it is lost, and
 * deleted where it isn't permitted. A listener that is open stays open also when the upstream is edited to a Service that isn't
 * seen, which may be there and only be late: the route alone moves, or goes where the number of its port isn't known. It isn't
 * left to the former Service, since nobody checks any more whether that is permitted.
 */
function planChildren(
  cr: StreamIngress,
  { gate, port }: Resolution,
  present: readonly AnyObject[],
  render: (cr: StreamIngress) => readonly AnyObject[],
): ChildPlan {
  if (gate === 'shut') return dropChildren(present);
  const routes = present.filter(({ kind }) => kind !== listenerSetType.kind);
  const leads = leadToUpstream(routes, cr);
  const open =
    leads ||
    present.some(({ kind, metadata }) => kind === listenerSetType.kind && !metadata.deletionTimestamp);
  const left = { ...dropChildren(leads ? [] : routes), open };
  if (gate === 'keep' && (leads || !open || typeof cr.spec.upstream.port === 'string')) return left;
  try {
    const objects = render(port === undefined ? cr : withPort(cr, port));
    return { apply: objects.map((object) => applyStep(cr, object)), delete: [], open: true };
  } catch (error) {
    if (error instanceof OperatorError) return { ...left, error };
    throw error;
  }
}

export function dropChildren(present: readonly AnyObject[]): ChildPlan {
  const left = present.filter(({ metadata }) => !metadata.deletionTimestamp);
  return { apply: [], delete: left.map((object) => ({ object })), open: false };
}

/** Reports whether these routes, as they are, lead to the Service of a custom resource, at whatever port. */
function leadToUpstream(routes: readonly AnyObject[], cr: StreamIngress): boolean {
  const upstream = serviceKey(upstreamOf(cr));
  const leadTo = (routes as Kept<KeptRoute>[]).flatMap(({ kept }) => kept);
  return leadTo.length > 0 && leadTo.every((key) => key === upstream);
}

export function childrenOf(
  { children }: Pick<RenderedKind, 'children'>,
  { metadata }: StreamIngress,
  reader: Reader,
): AnyObject[] {
  return children.flatMap((type) => reader.controlledBy(type, metadata.uid ?? ''));
}

/** Renders a custom resource once for as long as it stays as it is. */
export function rememberingRender(
  render: Render,
  rendering: RenderedKind,
): (cr: StreamIngress) => AnyObject[] {
  const known = new WeakMap<object, { readonly spec: string; readonly objects: AnyObject[] }>();
  return (cr) => {
    const spec = JSON.stringify(cr.spec);
    const before = known.get(cr.metadata);
    if (before?.spec === spec) return before.objects;
    const objects = render(rendering, cr);
    known.set(cr.metadata, { spec, objects });
    return objects;
  };
}

/** A route takes numbers, and the number of a named port is the Service's to say. */
function withPort(cr: StreamIngress, port: number): StreamIngress {
  return { ...cr, spec: { ...cr.spec, upstream: { ...cr.spec.upstream, port } } };
}

function applyStep(cr: StreamIngress, object: AnyObject): ApplyStep {
  const { apiVersion, kind, metadata } = cr;
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '' };
  return {
    object,
    fieldManager: FIELD_MANAGER,
    owner: { ...owner, controller: true, blockOwnerDeletion: true },
  };
}

interface Reported {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

interface ListenerSetStatus {
  readonly conditions?: readonly Reported[];
  readonly listeners?: readonly { readonly conditions?: readonly Reported[] }[];
}

interface RouteStatus {
  readonly parents?: readonly { readonly conditions?: readonly Reported[] }[];
}

/** What the Gateway's controller says of the children of one custom resource, about their present generation. */
export function programmedByGateway(
  children: readonly AnyObject[],
  failure: OperatorError | undefined,
): Programmed {
  if (failure) {
    const { reason, message, retry } = failure;
    return { ...condition('False', reason, message), stalls: retry === 'onChange' };
  }
  const set = children.find(({ kind }) => kind === 'ListenerSet');
  const route = children.find(({ kind }) => kind !== 'ListenerSet');
  if (!set || !route) return condition('Unknown', 'Pending', 'The port has yet to be opened');
  const { conditions, listeners = [] } = (set.status ?? {}) as ListenerSetStatus;
  const ofSet = present(set, conditions);
  const ofRoute = present(route, routeConditions(route));
  const refusal = refusalIn(ofSet, present(set, listeners.flatMap(conditionsOf)), ofRoute);
  if (refusal) return condition('False', refusal.reason ?? refusal.type, refusal.message ?? '');
  const programmed = ofSet.some(said('Programmed', 'True'));
  const accepted = ofRoute.some(said('Accepted', 'True'));
  if (programmed && accepted) return condition('True', 'Programmed', 'The Gateway has the port');
  return condition('Unknown', 'Pending', 'The Gateway has yet to take the port');
}

/** What the Gateway's controller says against the upstream. */
export function refsByGateway(children: readonly AnyObject[]): Omit<ConditionProps, 'type'> | undefined {
  const route = children.find(({ kind }) => kind !== 'ListenerSet');
  const found = route && present(route, routeConditions(route)).find(isUnresolved);
  return (
    found && { status: 'False', reason: found.reason ?? 'RefNotPermitted', message: found.message ?? '' }
  );
}

function isUnresolved({ type, status }: Reported): boolean {
  return type === 'ResolvedRefs' && status === 'False';
}

/**
 * The most particular of what is said against the port: that the Gateway doesn't take it from here, then what is wrong with
 * the listener, then with the route, and last what may pass or only says that something is wrong below.
 */
function refusalIn(
  ofSet: readonly Reported[],
  ofListener: readonly Reported[],
  ofRoute: readonly Reported[],
): Reported | undefined {
  const notAccepted = ofSet.filter(said('Accepted', 'False'));
  return [
    ...notAccepted.filter(({ reason }) => reason !== 'ListenersNotValid'),
    ...ofListener.filter(said('Conflicted', 'True')),
    ...ofListener.filter(said('Accepted', 'False')),
    ...ofListener.filter(isUnresolved),
    ...ofRoute.filter(said('Accepted', 'False')),
    ...ofListener.filter(said('Programmed', 'False')),
    ...notAccepted,
    ...ofSet.filter(said('Programmed', 'False')),
  ][0];
}

function said(wanted: string, held: string): (reported: Reported) => boolean {
  return ({ type, status }) => type === wanted && status === held;
}

function routeConditions(route: AnyObject): readonly Reported[] {
  return ((route.status ?? {}) as RouteStatus).parents?.flatMap(conditionsOf) ?? [];
}

function conditionsOf({
  conditions = [],
}: {
  readonly conditions?: readonly Reported[];
}): readonly Reported[] {
  return conditions;
}

function present({ metadata }: AnyObject, conditions: readonly Reported[] = []): readonly Reported[] {
  const { generation = 0 } = metadata;
  return conditions.filter(({ observedGeneration = generation }) => observedGeneration >= generation);
}

import type { ChangeSet } from '../../contract/change.js';
import type { ConditionProps } from '../../contract/conditions.js';
import type { Reader } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { childLabels } from '../../contract/names.js';
import { ownerOf, splitKey, type AnyObject } from '../../contract/object.js';
import type { OwnStep, Plan, PruneStep } from '../../contract/plan.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Resolution, View } from './claims.js';
import { API_VERSION, KIND, upstreamKey, type StreamIngress } from './spec.js';
import { programmedCondition as condition } from './status.js';
import type { Findings, Programmed } from './status.js';
import { beyondBounds, type GatewayTarget } from './targets.js';
import { childrenOf, FIELD_MANAGER, GATEWAY_GROUP, LISTENER_SET } from './watched.js';
import type { KeptRoute } from './watched.js';

/**
 * Renders a custom resource: a port of a Gateway is a ListenerSet that adds it, and the TCPRoute or UDPRoute that leads from
 * there to the Service, both named as the custom resource.
 * @param port of the Service
 * @returns `PortNotFound` for a port that is given by name, since a route takes a number
 */
export function gatewayObjects(
  { target, types }: GatewayContext,
  { metadata, spec: { listen, protocol, upstream } }: StreamIngress,
  port = upstream.port,
): AnyObject[] | OperatorError {
  const { name, namespace } = metadata;
  if (typeof port === 'string')
    return new OperatorError({
      reason: 'PortNotFound',
      path: ['spec', 'upstream', 'port'],
      message: `spec.upstream.port: a route takes the number of a port, and "${port}" is a name; give the number`,
    });
  const sectionName = `${protocol.toLowerCase()}-${listen}`;
  const gateway = splitKey(target.gateway);
  const labels = childLabels({ apiVersion: API_VERSION, kind: KIND }, name);
  const isElsewhere = upstream.namespace !== undefined && upstream.namespace !== namespace;
  const backend = { name: upstream.service, ...(isElsewhere && { namespace: upstream.namespace }), port };
  const specs: Readonly<Record<string, object>> = {
    [LISTENER_SET]: {
      listeners: [{ name: sectionName, port: listen, protocol }],
      parentRef: { group: GATEWAY_GROUP, kind: 'Gateway', name: gateway.name, namespace: gateway.namespace },
    },
    [`${protocol}Route`]: {
      parentRefs: [{ group: GATEWAY_GROUP, kind: LISTENER_SET, name, sectionName }],
      rules: [{ backendRefs: [backend] }],
    },
  };
  return types.flatMap(({ apiVersion, kind }) => {
    const spec = specs[kind];
    return spec
      ? { apiVersion, kind, metadata: { labels, name, ...(namespace && { namespace }) }, spec }
      : [];
  });
}

/** Steps for the custom resources of a Gateway, and what can be said of each afterwards. */
interface GatewayPlan extends Pick<Plan, 'steps'> {
  readonly findings: (cr: StreamIngress, changes: ChangeSet) => Pick<Findings, 'programmed' | 'resolution'>;
}

/** A Gateway, and the types of its children. */
export interface GatewayContext {
  readonly target: GatewayTarget;
  readonly types: readonly ResourceType[];
}

export function planGateway(context: GatewayContext, view: View, reader: Reader): GatewayPlan {
  const { target, types } = context;
  const childrenNow = (cr: StreamIngress): AnyObject[] => childrenOf(types, cr, reader);
  const plans = new Map<StreamIngress, ChildPlan>();
  for (const cr of view.refused.keys()) plans.set(cr, dropChildren(childrenNow(cr)));
  for (const cr of view.holders)
    plans.set(cr, planChildren(context, cr, view.resolution(cr), childrenNow(cr)));
  const open = view.holders.filter((cr) => plans.get(cr)?.open);
  // Users who may write routes can forge one; with a ListenerSet they have the port without us.
  const hasListener = (cr: StreamIngress) => childrenNow(cr).some(({ kind }) => kind === LISTENER_SET);
  const excess = beyondBounds(target, open, hasListener);
  for (const cr of excess.keys()) plans.set(cr, dropChildren(childrenNow(cr)));
  const all = [...plans.values()];
  return {
    // No failed apply of one may keep what another has lost the right to.
    steps: [...all.flatMap(({ pruned }) => pruned), ...all.flatMap(({ applied }) => applied)],
    findings: (cr, changes) => {
      const why = excess.get(cr);
      if (why !== undefined) return { programmed: condition('False', 'TooManyListeners', why) };
      const children = childrenNow(cr);
      const { name, namespace } = cr.metadata;
      const failed = changes.find(
        ({ ref, error }) => error && ref.name === name && ref.namespace === namespace,
      );
      const mirrored = view.resolution(cr).status === 'True' ? refsByGateway(children) : undefined;
      return {
        programmed: programmedByGateway(children, plans.get(cr)?.error ?? failed?.error),
        ...(mirrored && { resolution: mirrored }),
      };
    },
  };
}

/** Plan for the children of one custom resource. */
interface ChildPlan {
  readonly applied: readonly OwnStep[];
  readonly pruned: readonly PruneStep[];
  /** Whether the port is open, or is opened. */
  readonly open: boolean;
  /** Error of the rendering, where nothing can be rendered. */
  readonly error?: OperatorError;
}

/**
 * Plans the ListenerSet and the route of a holder: created once the upstream is there, left as they are while it is lost, and
 * deleted where it isn't permitted. A listener that is open stays open also when the upstream is edited to a Service that isn't
 * seen, which may be there and only be late: the route alone moves, or goes where the number of its port isn't known. It isn't
 * left to the former Service, since it isn't checked any more whether that is permitted.
 */
function planChildren(
  context: GatewayContext,
  cr: StreamIngress,
  { gate, port }: Resolution,
  present: readonly AnyObject[],
): ChildPlan {
  if (gate === 'shut') return dropChildren(present);
  const { spec } = cr;
  const routes = present.filter((child) => child.kind !== LISTENER_SET) as KeptRoute[];
  const leadTo = routes.flatMap(({ backends }) => backends);
  const leads = leadTo.length > 0 && leadTo.every((key) => key === upstreamKey(cr));
  const open =
    leads || present.some((child) => child.kind === LISTENER_SET && !child.metadata.deletionTimestamp);
  const left = { ...dropChildren(leads ? [] : routes), open };
  if (gate === 'keep' && (leads || !open || typeof spec.upstream.port === 'string')) return left;
  const objects = gatewayObjects(context, cr, port);
  if (objects instanceof OperatorError) return { ...left, error: objects };
  const owner = ownerOf(cr);
  const applied = objects.map(
    (object) => ({ do: 'own', object, fieldManager: FIELD_MANAGER, owner }) as const,
  );
  return { applied, pruned: [], open: true };
}

export function dropChildren(present: readonly AnyObject[]): ChildPlan {
  const left = present.filter(({ metadata }) => !metadata.deletionTimestamp);
  return { applied: [], pruned: left.map((object) => ({ do: 'prune', object })), open: false };
}

interface WithConditions {
  readonly conditions?: readonly Reported[];
}

/** A condition as the Gateway's controller writes it. */
type Reported = Partial<Omit<ConditionProps, 'type' | 'status'>> &
  Record<'type' | 'status', string> & { readonly observedGeneration?: number };

/** Returns the condition by what the Gateway's controller says of the present generation of the children. */
export function programmedByGateway(
  children: readonly AnyObject[],
  failure: OperatorError | undefined,
): Programmed {
  if (failure) {
    const { reason, message, retry } = failure;
    return { ...condition('False', reason, message), stalls: retry === 'onChange' };
  }
  const set = children.find(({ kind }) => kind === LISTENER_SET);
  const route = routeIn(children);
  if (!set || !route) return condition('Unknown', 'Pending', 'The port has yet to be opened');
  const { listeners = [], ...ofAll } = (set.status ?? {}) as WithConditions & {
    readonly listeners?: readonly WithConditions[];
  };
  const ofSet = present(set, [ofAll]);
  const ofListener = present(set, listeners);
  const ofRoute = routeConditions(route);
  const notAccepted = ofSet.filter(said('Accepted', 'False'));
  // The most particular comes first: that the Gateway doesn't take the port from here, then what is wrong with the
  // listener, then with the route, and last what may pass or only says that something is wrong below.
  const [refusal] = [
    ...notAccepted.filter(({ reason }) => reason !== 'ListenersNotValid'),
    ...ofListener.filter(said('Conflicted', 'True')),
    ...ofListener.filter(said('Accepted', 'False')),
    ...ofListener.filter(said('ResolvedRefs', 'False')),
    ...ofRoute.filter(said('Accepted', 'False')),
    ...ofListener.filter(said('Programmed', 'False')),
    ...notAccepted,
    ...ofSet.filter(said('Programmed', 'False')),
  ];
  if (refusal) return condition('False', refusal.reason ?? refusal.type, refusal.message ?? '');
  if (ofSet.some(said('Programmed', 'True')) && ofRoute.some(said('Accepted', 'True')))
    return condition('True', 'Programmed', 'The Gateway has the port');
  return condition('Unknown', 'Pending', 'The Gateway has yet to take the port');
}

/** Returns what the Gateway's controller says against the upstream. */
export function refsByGateway(children: readonly AnyObject[]): Omit<ConditionProps, 'type'> | undefined {
  const route = routeIn(children);
  const found = route && routeConditions(route).find(said('ResolvedRefs', 'False'));
  return (
    found && { status: 'False', reason: found.reason ?? 'RefNotPermitted', message: found.message ?? '' }
  );
}

function routeIn(children: readonly AnyObject[]): AnyObject | undefined {
  return children.find(({ kind }) => kind !== LISTENER_SET);
}

function said(wanted: string, held: string): (reported: Reported) => boolean {
  return ({ type, status }) => type === wanted && status === held;
}

function routeConditions(route: AnyObject): readonly Reported[] {
  const { parents = [] } = (route.status ?? {}) as { readonly parents?: readonly WithConditions[] };
  return present(route, parents);
}

/** Returns the conditions, but for what was said of an earlier generation. */
function present({ metadata: { generation = 0 } }: AnyObject, parts: readonly WithConditions[]): Reported[] {
  const all = parts.flatMap(({ conditions = [] }) => conditions);
  return all.filter(({ observedGeneration = generation }) => observedGeneration >= generation);
}

import type { ConditionProps } from '../../contract/conditions.js';
import type { OperatorError } from '../../contract/error.js';
import type { AnyObject } from '../../contract/object.js';
import type { Programmed } from './status.js';

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

function condition(status: ConditionProps['status'], reason: string, message: string): Programmed {
  return { type: 'Programmed', status, reason, message };
}

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

/** Those that the Gateway's controller speaks of the port with. */
const ASKED: readonly string[] = ['Accepted', 'Programmed'];

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
  const ofSet = ((set.status ?? {}) as ListenerSetStatus).conditions;
  const ofListeners = ((set.status ?? {}) as ListenerSetStatus).listeners?.flatMap(conditionsOf);
  const said = [
    ...present(set, ofSet),
    ...present(set, ofListeners),
    ...present(route, routeConditions(route)),
  ];
  const refusal = said.find(isRefusal);
  if (refusal) return condition('False', refusal.reason ?? refusal.type, refusal.message ?? '');
  const programmed = present(set, ofSet).some(holds('Programmed'));
  const accepted = present(route, routeConditions(route)).some(holds('Accepted'));
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

function isRefusal({ type, status }: Reported): boolean {
  return ASKED.includes(type) ? status === 'False' : type === 'Conflicted' && status === 'True';
}

function holds(wanted: string): (reported: Reported) => boolean {
  return ({ type, status }) => type === wanted && status === 'True';
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

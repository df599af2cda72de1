import { OperatorError } from '../../contract/error.js';
import type { FlagValues, Kind, KindContext, Policy, Render } from '../../contract/kind.js';
import { kindName } from '../../install/arguments.js';
import type { Cluster } from '../../install/cluster.js';
import { flagsOf, installedOperators } from '../../install/installed.js';
import type { InstalledOperator } from '../../install/installed.js';
import { DEFAULT_NAMESPACE } from '../../install/names.js';
import type { PolicyOf } from './operator-policy.js';

export interface OperatorContextProps {
  readonly cluster: Pick<Cluster, 'find' | 'list'>;
  readonly render: Render;
  /** Asked for the policy of the operator that is installed, unless one is given. */
  readonly policyOf: PolicyOf;
  /** As they were given: each goes before what the operator has. */
  readonly flags: FlagValues;
  /** @default - the operator is looked for */
  readonly operatorNamespace?: string;
  /** @default - those that the operator watches */
  readonly watchNamespaces?: readonly string[];
  /** What the admin allows. @default - what the operator that is installed has */
  readonly policy?: Policy;
  readonly warn: (line: string) => void;
}

/** What the controllers of a kind are made with, where there are custom resources in these namespaces. */
export type ContextFor = (kind: Kind, namespaces: readonly string[]) => Promise<KindContext>;

/**
 * What the operator that is installed makes controllers with, as far as it isn't given; what `install` has for defaults
 * where there is none, or nobody can tell. What is assumed is said where it may count.
 */
export function operatorContext(props: OperatorContextProps): ContextFor {
  const { render, flags, watchNamespaces, operatorNamespace } = props;
  const warn = once(props.warn);
  let looking: Promise<readonly InstalledOperator[] | OperatorError> | undefined;
  return async (kind, namespaces) => {
    const found = await (looking ??= look(props));
    const operators = found instanceof OperatorError ? [] : found.filter(looksAfter(kind));
    const operator = operators.length > 1 ? choose(kind, operators, namespaces, warn) : operators[0];
    if (found instanceof OperatorError) for (const line of unseen(kind, found, props)) warn(line);
    const watched = watchNamespaces ?? operator?.watchNamespaces;
    const policy = props.policy ?? (kind.policySchema && operator && (await props.policyOf(operator)));
    const section = policy?.[kind.type.kind.toLowerCase()];
    return {
      render: (rendered, cr) => render(rendered, cr, policy),
      flags: { ...(operator && flagsOf(operator, kind.flags ?? [])), ...flags },
      operatorNamespace: operatorNamespace ?? operator?.namespace ?? DEFAULT_NAMESPACE,
      ...(section !== undefined && { policy: section }),
      ...(watched && { namespaces: watched }),
    };
  };
}

async function look({
  cluster,
  operatorNamespace,
}: OperatorContextProps): Promise<readonly InstalledOperator[] | OperatorError> {
  try {
    return await installedOperators(cluster, operatorNamespace);
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
}

function looksAfter(kind: Kind): (operator: InstalledOperator) => boolean {
  return ({ kinds }) => kinds.includes(kindName(kind));
}

/** Of several, one that watches where the custom resources are. */
function choose(
  kind: Kind,
  operators: readonly InstalledOperator[],
  namespaces: readonly string[],
  warn: (line: string) => void,
): InstalledOperator | undefined {
  const there = operators.filter(
    ({ watchNamespaces }) => !watchNamespaces || namespaces.some((name) => watchNamespaces.includes(name)),
  );
  const candidates = there.length > 0 ? there : operators;
  const [first] = candidates;
  if (first && candidates.length > 1) {
    const all = candidates.map(({ namespace }) => namespace).join(', ');
    warn(
      `${kindName(kind)} is looked after by operators in ${all}: the one in ${first.namespace} is taken; ` +
        'name one with --operator-namespace',
    );
  }
  return first;
}

/** What is assumed where nobody may look, as far as it counts for a kind. */
function unseen(
  kind: Kind,
  { message }: OperatorError,
  { operatorNamespace, policy }: OperatorContextProps,
): string[] {
  const mayBeRestricted = kind.policySchema !== undefined && policy === undefined;
  if (operatorNamespace !== undefined) {
    if (!mayBeRestricted) return [];
    return [
      `By which policy the operator in ${operatorNamespace} works can't be seen (${message}): nothing is taken to be ` +
        'forbidden; give it with --policy',
    ];
  }
  if (!mayBeRestricted && !kind.flags) return [];
  return [
    `Which operator is installed can't be seen (${message}): one in ${DEFAULT_NAMESPACE}, without flags, that ` +
      'forbids nothing, is assumed; say more with --operator-namespace, --policy and the flags that "run" has',
  ];
}

function once(tell: (line: string) => void): (line: string) => void {
  const told = new Set<string>();
  return (line) => {
    if (told.has(line)) return;
    told.add(line);
    tell(line);
  };
}

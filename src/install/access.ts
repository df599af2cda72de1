import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import type { Kind } from '../contract/kind.js';
import { accessName, INSTALL_NAME } from './names.js';
import type { InstallProps } from './props.js';
import { leaseRules, rulesFor } from './rules.js';
import type { PolicyRule } from './rules.js';

/** Stands for the whole cluster among namespaces, of which none has this name. */
const CLUSTER = '';

const RBAC = 'rbac.authorization.k8s.io';

/** What rights depend on, beside the kinds. */
export type Surroundings = Pick<InstallProps, 'namespace' | 'watchNamespaces' | 'flags' | 'policy'>;

type Places = Pick<InstallProps, 'namespace' | 'watchNamespaces'>;

/** A Role, a ClusterRole, or what binds it. */
export interface AccessObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  /** None in what binds. */
  readonly rules?: readonly PolicyRule[];
}

/** The rights of the operator's ServiceAccount: as few as its kinds, flags and namespaces allow. */
export class OperatorAccess extends Construct {
  constructor(scope: Construct, id: string, props: InstallProps) {
    super(scope, id);
    for (const object of accessObjects(installedRules(props.kinds, props), props)) {
      const { namespace } = object.metadata;
      const what = object.kind.endsWith('Binding') ? 'binding' : 'role';
      new ApiObject(this, `${what}-${namespace === undefined ? 'cluster' : `in-${namespace}`}`, object);
    }
  }
}

/** What an installation may do: what its controllers need, and the election in its own namespace. */
export function installedRules(kinds: readonly Kind[], props: Surroundings): PolicyRule[] {
  const election = leaseRules().map((rule) => ({ ...rule, namespaces: [props.namespace] }));
  return [...operatorRules(kinds, props), ...election];
}

/** What the controllers of these kinds need, as flags and policy make them. */
export function operatorRules(
  kinds: readonly Kind[],
  { namespace, watchNamespaces, flags, policy }: Surroundings,
): PolicyRule[] {
  const restricted = kinds.map((kind): Kind => {
    const section = policy?.parsed[kind.name];
    if (section === undefined) return kind;
    return { ...kind, controllers: (context) => kind.controllers({ ...context, policy: section }) };
  });
  return rulesFor(restricted, {
    operatorNamespace: namespace,
    ...(flags && { flags }),
    ...(watchNamespaces && { namespaces: watchNamespaces }),
  });
}

/** The Roles and ClusterRoles that hold these rules, each followed by what binds it to the operator's ServiceAccount. */
export function accessObjects(rules: readonly PolicyRule[], places: Places): AccessObject[] {
  return [...rulesByNamespace(rules, places)].flatMap(([at, granted]) => {
    const prefix = at === CLUSTER ? 'Cluster' : '';
    const metadata = { name: accessName(places.namespace), ...(at !== CLUSTER && { namespace: at }) };
    const common = { apiVersion: `${RBAC}/v1`, metadata };
    const subject = { kind: 'ServiceAccount', name: INSTALL_NAME, namespace: places.namespace };
    return [
      { ...common, kind: `${prefix}Role`, rules: granted },
      {
        ...{ ...common, kind: `${prefix}RoleBinding` },
        roleRef: { apiGroup: RBAC, kind: `${prefix}Role`, name: metadata.name },
        subjects: [subject],
      },
    ];
  });
}

/** Which rights are needed in which namespace, or in the whole cluster. */
function rulesByNamespace(
  all: readonly PolicyRule[],
  { watchNamespaces = [CLUSTER] }: Places,
): Map<string, PolicyRule[]> {
  const rules = new Map<string, PolicyRule[]>();
  for (const { namespaces = watchNamespaces, ...rule } of all)
    // What says where it holds is no part of a Role.
    for (const namespace of namespaces) rules.set(namespace, [...(rules.get(namespace) ?? []), rule]);
  return new Map([...rules].sort(([a], [b]) => (a < b ? -1 : 1)));
}

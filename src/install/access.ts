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

/** The rights of the operator's ServiceAccount: as few as its kinds, flags and namespaces allow. */
export class OperatorAccess extends Construct {
  constructor(scope: Construct, id: string, props: InstallProps) {
    super(scope, id);
    for (const [namespace, rules] of rulesByNamespace(props)) {
      const prefix = namespace === CLUSTER ? 'Cluster' : '';
      const metadata = {
        name: accessName(props.namespace),
        ...(namespace !== CLUSTER && { namespace }),
      };
      const common = { apiVersion: `${RBAC}/v1`, metadata };
      const at = namespace === CLUSTER ? 'cluster' : `in-${namespace}`;
      new ApiObject(this, `role-${at}`, { ...common, kind: `${prefix}Role`, rules });
      new ApiObject(this, `binding-${at}`, {
        ...{ ...common, kind: `${prefix}RoleBinding` },
        roleRef: { apiGroup: RBAC, kind: `${prefix}Role`, name: metadata.name },
        subjects: [{ kind: 'ServiceAccount', name: INSTALL_NAME, namespace: props.namespace }],
      });
    }
  }
}

/** Which rights are needed in which namespace, or in the whole cluster. */
function rulesByNamespace(props: InstallProps): Map<string, object[]> {
  const rules = new Map<string, object[]>();
  const add = (namespace: string, rule: PolicyRule): void => {
    // What says where it holds is no part of a Role.
    const { namespaces, ...rest } = rule;
    rules.set(namespace, [...(rules.get(namespace) ?? []), rest]);
  };
  for (const rule of operatorRules(props.kinds, props))
    for (const namespace of rule.namespaces ?? props.watchNamespaces ?? [CLUSTER]) add(namespace, rule);
  for (const rule of leaseRules()) add(props.namespace, rule);
  return new Map([...rules].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** What the controllers of these kinds need, as flags and policy make them. */
export function operatorRules(
  kinds: readonly Kind[],
  {
    namespace,
    watchNamespaces,
    flags,
    policy,
  }: Pick<InstallProps, 'namespace' | 'watchNamespaces' | 'flags' | 'policy'>,
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

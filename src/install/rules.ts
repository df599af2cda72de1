import type { Watch, Write } from '../contract/controller.js';
import type { KindContext, StandaloneController } from '../contract/kind.js';
import { LEASE_NAME } from '../contract/names.js';
import { groupOf } from '../contract/object.js';
import { definitionName, definitionType, isBuiltIn } from '../contract/resource.js';
import { accessName, INSTALL_NAME } from './names.js';
import type { InstallProps } from './props.js';

/** Rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Only the objects of these names. @default - all */
  readonly resourceNames?: readonly string[];
  /** A Role in each of these namespaces is enough. @default - wherever the operator watches */
  readonly namespaces?: readonly string[];
}

/**
 * Returns the rights that the controllers of these kinds need, and no more: `list` and `watch` on what they watch, and the
 * verbs of `writes`, with `get`. A type that need not be installed needs its rights all the same, since they are checked first.
 * CRDs may be read by name, to find out whether one that isn't served was removed; not with `namespaces`, where Roles have
 * to be enough.
 */
export function rulesFor(
  kinds: readonly StandaloneController[],
  context: Omit<KindContext, 'render'> = {},
): PolicyRule[] {
  const controllers = kinds.flatMap((kind) => kind.controllers({ ...context, render: () => [] }));
  const lookups = controllers.flatMap((controller) => controller.lookups ?? []);
  const watches = controllers.flatMap((controller) => controller.watches);
  const rules = [...watches, ...lookups].flatMap(rulesOf);
  // A Role can't grant rights on cluster-scoped objects.
  const definitions = { apiGroups: [groupOf(definitionType.apiVersion)], resources: [definitionType.plural] };
  for (const { type } of context.namespaces ? [] : [...watches, ...lookups])
    if (!isBuiltIn(type))
      rules.push({ ...definitions, verbs: ['get'], resourceNames: [definitionName(type)] });
  rules.push({ apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] });
  return merge(rules);
}

/** Verbs in the order in which they are written. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const;

const ON_OBJECT: readonly Write[] = ['create', 'patch', 'delete'];

function rulesOf({ type, writes: rights, name, namespaces }: Omit<Watch, 'keep' | 'mapsTo'>): PolicyRule[] {
  const writes = rights ?? [];
  const apiGroups = [groupOf(type.apiVersion)];
  const within = namespaces === '*' ? [CLUSTER] : namespaces;
  const unnamed = { apiGroups, resources: [type.plural], ...(within && { namespaces: within }) };
  const of = (subresource: string, verbs: readonly string[]): PolicyRule => ({
    ...{ ...unnamed, resources: [type.plural + subresource], verbs },
    ...(name !== undefined && { resourceNames: [name] }),
  });
  const onObject = ON_OBJECT.filter((write) => writes.includes(write));
  const named = onObject.filter((verb) => name === undefined || verb !== 'create');
  return [
    // A single object is read only after a write has shown that it differs from the cache.
    of('', [...(rights ? ['get'] : []), 'list', 'watch', ...named]),
    // The name of a new object isn't known when the right to create it is checked.
    ...(named.length < onObject.length ? [{ ...unnamed, verbs: ['create'] }] : []),
    ...(writes.includes('status') ? [of('/status', ['patch'])] : []),
    ...(writes.includes('finalizers') ? [of('/finalizers', ['update'])] : []),
  ];
}

/**
 * Returns the rights of leader election; a Role in the namespace of the lease is enough.
 *
 * **Caveats.** `create` can't be limited to a name, since the name of a new object isn't known when rights are checked: any
 * Lease can be created in that namespace.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
 */
export function leaseRules(name = LEASE_NAME): PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, verbs: ['create'] },
    { ...leases, verbs: ['get', 'update'], resourceNames: [name] },
  ];
}

/** Makes one rule of those on the same objects, with the verbs of all; then one of those with the same verbs on named objects. */
function merge(rules: readonly PolicyRule[]): PolicyRule[] {
  const ofOne = combine(rules, ({ resourceNames = [] }) => resourceNames, 'verbs');
  return combine(
    ofOne.map((rule) => ({ ...rule, verbs: VERBS.filter((verb) => rule.verbs.includes(verb)) })),
    ({ resourceNames, verbs }) => [resourceNames ? 'named' : 'all', ...verbs],
    'resourceNames',
  );
}

/** Joins rules on the same resources and namespaces that are equal in `alike` too; `united` is the field that is joined. */
function combine(
  rules: readonly PolicyRule[],
  alike: (rule: PolicyRule) => readonly string[],
  united: 'verbs' | 'resourceNames',
): PolicyRule[] {
  const combined = new Map<string, PolicyRule>();
  for (const next of rules) {
    const { apiGroups, resources, namespaces = [] } = next;
    const id = JSON.stringify([apiGroups, resources, namespaces, alike(next)]);
    const values = new Set([...(combined.get(id)?.[united] ?? []), ...(next[united] ?? [])]);
    combined.set(id, { ...next, ...(next[united] && { [united]: [...values] }) });
  }
  return [...combined.values()];
}

export type RightsProps = Pick<InstallProps, 'namespace' | 'watchNamespaces' | 'flags' | 'policy'>;

/** A Role, a ClusterRole, or a binding of one. */
export interface AccessObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly PolicyRule[];
}

/** Stands for the whole cluster among namespaces. */
export const CLUSTER = '';

/** Has the API server judge who reads metrics: such requests are about the cluster, so no Role can give the right to make them. */
const REVIEW_RULES: readonly PolicyRule[] = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
];

/**
 * Returns the rights of an installation: those of its controllers, of leader election in its own namespace, and of what
 * keeps its metrics from others.
 */
export function installedRules(
  kinds: readonly StandaloneController[],
  props: RightsProps & Pick<InstallProps, 'secureMetrics'>,
): PolicyRule[] {
  const within = (rules: readonly PolicyRule[], namespace: string): PolicyRule[] =>
    rules.map((rule) => ({ ...rule, namespaces: [namespace] }));
  return [
    ...operatorRules(kinds, props),
    ...within(leaseRules(), props.namespace),
    ...(props.secureMetrics ? within(REVIEW_RULES, CLUSTER) : []),
  ];
}

/** Returns what the controllers of these kinds need with these flags and this policy. */
export function operatorRules(
  kinds: readonly StandaloneController[],
  { namespace, watchNamespaces, flags, policy }: RightsProps,
): PolicyRule[] {
  const restricted = kinds.map((kind): StandaloneController => {
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

/** Returns the Roles and ClusterRoles with these rules, each followed by its binding to the operator's ServiceAccount. */
export function accessObjects(
  rules: readonly PolicyRule[],
  { namespace: home, watchNamespaces = [CLUSTER] }: Pick<InstallProps, 'namespace' | 'watchNamespaces'>,
): AccessObject[] {
  const granted = new Map<string, PolicyRule[]>();
  for (const { namespaces = watchNamespaces, ...rule } of rules)
    for (const namespace of namespaces) granted.set(namespace, [...(granted.get(namespace) ?? []), rule]);
  const apiGroup = 'rbac.authorization.k8s.io';
  return [...granted].flatMap(([namespace, granted]) => {
    const prefix = namespace === CLUSTER ? 'Cluster' : '';
    const name = accessName(home);
    const common = {
      apiVersion: `${apiGroup}/v1`,
      metadata: { name, ...(namespace !== CLUSTER && { namespace }) },
    };
    return [
      { ...common, kind: `${prefix}Role`, rules: granted },
      {
        ...{ ...common, kind: `${prefix}RoleBinding` },
        roleRef: { apiGroup, kind: `${prefix}Role`, name },
        subjects: [{ kind: 'ServiceAccount', name: INSTALL_NAME, namespace: home }],
      },
    ];
  });
}

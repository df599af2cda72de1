import type { Watch, Write } from '../contract/controller.js';
import type { Kind, KindContext } from '../contract/kind.js';
import { LEASE_NAME } from '../contract/names.js';
import { groupOf } from '../contract/object.js';
import { definitionName, definitionType, isBuiltIn } from '../contract/resource.js';

/** One rule of a Role or ClusterRole. */
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
 * The rights that the controllers of these kinds need, and no more: what they watch is listed and watched, and what a
 * watch declares in `writes` may be done, and looked at where it fails. A type that need not be installed needs its
 * rights all the same: they are asked for first. The CRDs of kinds may be read, by name, to find out
 * whether one that isn't served was removed; not with `namespaces`, for which Roles are enough.
 */
export function rulesFor(kinds: readonly Kind[], context: Omit<KindContext, 'render'> = {}): PolicyRule[] {
  const watches = kinds
    .flatMap((kind) => kind.controllers({ ...context, render: () => [] }))
    .flatMap((controller) => controller.watches);
  const rules = watches.flatMap(rulesOf);
  // A Role can't give a right on what is in no namespace.
  const definitions = { apiGroups: [groupOf(definitionType.apiVersion)], resources: [definitionType.plural] };
  for (const { type } of context.namespaces ? [] : watches)
    if (!isBuiltIn(type))
      rules.push({ ...definitions, verbs: ['get'], resourceNames: [definitionName(type)] });
  rules.push({ apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] });
  return merge(rules);
}

/** In the order in which they are written down. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const;

const ON_OBJECT: readonly Write[] = ['create', 'patch', 'delete'];

function rulesOf({ type, writes = [], name, namespaces }: Watch): PolicyRule[] {
  const of = (subresource: string, verbs: readonly string[]): PolicyRule => ({
    apiGroups: [groupOf(type.apiVersion)],
    resources: [type.plural + subresource],
    verbs,
    ...(name !== undefined && { resourceNames: [name] }),
    ...(namespaces && { namespaces }),
  });
  const onObject = ON_OBJECT.filter((write) => writes.includes(write));
  const named = onObject.filter((verb) => name === undefined || verb !== 'create');
  return [
    // A single object is read only where a write has shown that it isn't as it was known to be.
    of('', [...(writes.length > 0 ? ['get'] : []), 'list', 'watch', ...named]),
    // The name of a new object isn't known when the right to make it is asked for.
    ...(named.length < onObject.length ? [withoutName(of('', ['create']))] : []),
    ...(writes.includes('status') ? [of('/status', ['patch'])] : []),
    ...(writes.includes('finalizers') ? [of('/finalizers', ['update'])] : []),
  ];
}

function withoutName({ resourceNames, ...rule }: PolicyRule): PolicyRule {
  return rule;
}

/**
 * The rights of leader election; a Role in the namespace of the lease suffices.
 *
 * **Caveats.** The right to create can't be limited to a name, since Kubernetes doesn't know the name of a new object
 * when it asks for it: whoever has these rights may make any Lease in that namespace, but touch no other's.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
 */
export function leaseRules(name = LEASE_NAME): PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, verbs: ['create'] },
    { ...leases, verbs: ['get', 'update'], resourceNames: [name] },
  ];
}

/** Kinds may share types: one rule for each, with the verbs of all; and one for names with which the same may be done. */
function merge(rules: readonly PolicyRule[]): PolicyRule[] {
  const ofOne = combine(rules, ({ resourceNames = [] }) => resourceNames, 'verbs');
  return combine(
    ofOne.map((rule) => ({ ...rule, verbs: VERBS.filter((verb) => rule.verbs.includes(verb)) })),
    ({ resourceNames, verbs }) => [resourceNames ? 'named' : 'all', ...verbs],
    'resourceNames',
  );
}

/** Makes one of the rules for the same place and resource that are alike in this too, with what each has in `united`. */
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

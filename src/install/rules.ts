import type { Kind } from '../contract/kind.js';
import { LEASE_NAME } from '../contract/names.js';
import { groupOf } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';

/** One rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Only the objects of these names. @default - all */
  readonly resourceNames?: readonly string[];
}

/**
 * The rights that a controller of these kinds needs, and no more: custom resources are read and their status is
 * written, children are written, former children are only found and deleted, related objects are only read. A type that
 * need not be installed needs its rights all the same: they are asked for first.
 */
export function rulesFor(kinds: readonly Kind[]): PolicyRule[] {
  const rules = kinds.flatMap((kind) => [
    rule(kind.type, '', ['get', 'list', 'watch']),
    rule(kind.type, '/status', ['patch']),
    // An owner reference that blocks the owner's deletion may only be set by who may finalize the owner.
    // https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement
    rule(kind.type, '/finalizers', ['update']),
    ...kind.children.map((type) => rule(type, '', ['get', 'list', 'watch', 'create', 'patch', 'delete'])),
    ...kind.formerChildren.map((type) => rule(type, '', ['get', 'list', 'watch', 'delete'])),
    ...kind.related.map((type) => rule(type, '', ['get', 'list', 'watch'])),
  ]);
  rules.push({ apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] });
  return merge(rules);
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

function rule(type: ResourceType, subresource: string, verbs: readonly string[]): PolicyRule {
  return { apiGroups: [groupOf(type.apiVersion)], resources: [type.plural + subresource], verbs };
}

/** Kinds may share child types: one rule for each, with the verbs of all. */
function merge(rules: readonly PolicyRule[]): PolicyRule[] {
  const merged = new Map<string, PolicyRule>();
  for (const next of rules) {
    const id = `${next.apiGroups.join()}/${next.resources.join()}`;
    const verbs = new Set([...(merged.get(id)?.verbs ?? []), ...next.verbs]);
    merged.set(id, { ...next, verbs: [...verbs] });
  }
  return [...merged.values()];
}

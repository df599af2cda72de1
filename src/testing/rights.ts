import { resourceType } from '../contract/resource.js';
import type { PolicyRule } from '../install/rules.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

const rbac = (kind: string, namespaced: boolean) =>
  resourceType({ apiVersion: 'rbac.authorization.k8s.io/v1', kind, namespaced });
const reviews = resourceType({
  ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' },
  namespaced: false,
});

export interface Grant {
  readonly user: string;
  readonly rules: readonly PolicyRule[];
  /** Roles in these, and nothing cluster-wide. @default - a ClusterRole */
  readonly namespaces?: readonly string[];
  /** Of several grants, what this one is for. @default controller */
  readonly role?: string;
}

/** Gives a user exactly these rights, in place of those it was given here for the same before, and waits until they hold. */
export async function grant(
  cluster: Cluster,
  { user, rules, namespaces, role = 'controller' }: Grant,
): Promise<void> {
  const bound = async (
    purpose: string,
    of: readonly PolicyRule[],
    where: string | undefined,
  ): Promise<void> => {
    await bind(cluster, { user, rules: of, role: purpose }, where);
    await eventually(() => requireRights(cluster, user, of, where));
  };
  const anywhere = rules.filter((rule) => !rule.namespaces);
  for (const namespace of namespaces ?? [undefined]) await bound(role, anywhere, namespace);
  for (const namespace of new Set(rules.flatMap((rule) => rule.namespaces ?? []))) {
    const here = rules.filter((rule) => rule.namespaces?.includes(namespace));
    // What says where it holds is no part of a Role.
    await bound(
      `${role}-shared`,
      here.map(({ namespaces: _, ...rule }) => rule),
      namespace,
    );
  }
}

async function bind(
  cluster: Cluster,
  { user, rules, role: purpose }: Required<Omit<Grant, 'namespaces'>>,
  namespace: string | undefined,
): Promise<void> {
  const prefix = namespace === undefined ? 'Cluster' : '';
  const { apiVersion } = rbac('Role', true);
  const metadata = { name: `${purpose}-${user}`, ...(namespace !== undefined && { namespace }) };
  const role = { apiVersion, kind: `${prefix}Role`, metadata, rules };
  const binding = {
    ...{ apiVersion, kind: `${prefix}RoleBinding`, metadata },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: metadata.name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  };
  for (const object of [role, binding])
    await cluster.apply(rbac(object.kind, namespace !== undefined), object, 'test');
}

async function requireRights(
  cluster: Cluster,
  user: string,
  rules: readonly PolicyRule[],
  namespace: string | undefined,
): Promise<void> {
  const every = rules.flatMap(({ resourceNames = [undefined], ...rule }) =>
    resourceNames.map((name) => ({ ...rule, name })),
  );
  for (const { apiGroups, resources, verbs, name } of every) {
    for (const verb of verbs) {
      const [resource, subresource] = (resources[0] ?? '').split('/');
      const resourceAttributes = { group: apiGroups[0], resource, subresource, verb, namespace, name };
      const { status } = await cluster.create(reviews, {
        ...{ apiVersion: reviews.apiVersion, kind: reviews.kind, metadata: { name: '' } },
        spec: { user, resourceAttributes },
      });
      const { allowed } = status as { allowed: boolean };
      if (!allowed) throw new Error(`${user} may not ${verb} ${resources.join()} yet`);
    }
  }
}

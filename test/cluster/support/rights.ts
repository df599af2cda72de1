import { resourceType } from '../../../src/contract/resource.js';
import { accessObjects } from '../../../src/install/access.js';
import type { PolicyRule } from '../../../src/install/rules.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { identityOf } from './identity.js';

const reviews = resourceType({
  ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' },
  namespaced: false,
});

export interface Grant {
  /** Its ServiceAccount, in a namespace of this name, has the rights. */
  readonly user: string;
  readonly rules: readonly PolicyRule[];
  /** Roles in these, and nothing cluster-wide. @default - a ClusterRole */
  readonly namespaces?: readonly string[];
}

/**
 * Gives an operator exactly these rights, by the very objects that an installation has, in place of those that it was
 * given in the same namespaces before. Waits until they hold.
 */
export async function grant(cluster: Cluster, { user, rules, namespaces }: Grant): Promise<void> {
  const places = { namespace: user, ...(namespaces && { watchNamespaces: namespaces }) };
  const objects = accessObjects(rules, places);
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object;
    const type = resourceType({ apiVersion, kind, namespaced: metadata.namespace !== undefined });
    await cluster.apply(type, { ...object }, 'test');
  }
  for (const { metadata, rules: granted } of objects)
    if (granted) await eventually(() => requireRights(cluster, user, granted, metadata.namespace));
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
      const [resource, subresource] = resources[0]!.split('/');
      const resourceAttributes = { group: apiGroups[0], resource, subresource, verb, namespace, name };
      const { status } = await cluster.create(reviews, {
        ...{ apiVersion: reviews.apiVersion, kind: reviews.kind, metadata: { name: '' } },
        spec: { user: identityOf(user), resourceAttributes },
      });
      const { allowed } = status as { allowed: boolean };
      if (!allowed) throw new Error(`${user} may not ${verb} ${resources.join()} yet`);
    }
  }
}

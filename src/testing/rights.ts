import { resourceType } from '../contract/resource.js';
import { accessObjects } from '../install/access.js';
import type { AccessObject } from '../install/access.js';
import type { PolicyRule } from '../install/rules.js';
import { identityOf } from './account.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

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
export async function grant(cluster: Cluster, given: Grant): Promise<void> {
  const objects = grantObjects(given);
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object;
    const type = resourceType({ apiVersion, kind, namespaced: metadata.namespace !== undefined });
    await cluster.apply(type, { ...object }, 'test');
  }
  for (const { metadata, rules: granted } of objects)
    if (granted) await eventually(() => requireRights(cluster, given.user, granted, metadata.namespace));
}

/** Takes away what somebody was granted in the whole cluster. What holds in a namespace goes with it. */
export async function withdraw(cluster: Cluster, given: Grant): Promise<void> {
  const everywhere = grantObjects(given).filter(({ metadata }) => metadata.namespace === undefined);
  for (const { apiVersion, kind, metadata } of everywhere) {
    const type = resourceType({ apiVersion, kind, namespaced: false });
    await cluster.delete({ type, name: metadata.name }, { mayBeMissing: true });
  }
}

/** The Roles and ClusterRoles of a grant, each followed by what binds it. */
export function grantObjects({ user, rules, namespaces }: Grant): AccessObject[] {
  return accessObjects(rules, { namespace: user, ...(namespaces && { watchNamespaces: namespaces }) });
}

async function requireRights(
  cluster: Cluster,
  user: string,
  rules: readonly PolicyRule[],
  namespace: string | undefined,
): Promise<void> {
  const held = await heldRights(cluster, user, rules, namespace);
  const missing = every(rules)
    .map(textOf)
    .filter((right) => !held.includes(right));
  if (missing.length > 0) throw new Error(`${user} may not ${missing.join(', ')} yet`);
}

interface Asked {
  readonly group: string | undefined;
  readonly resource: string;
  readonly verb: string;
  readonly name: string | undefined;
}

function every(rules: readonly PolicyRule[]): Asked[] {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) => resourceNames.map((name) => ({ group: apiGroups[0], resource, verb, name }))),
    ),
  );
}

function textOf({ verb, resource, name }: Asked): string {
  return [verb, resource, ...(name === undefined ? [] : [name])].join(' ');
}

/** Which of these rights the API server says that it has, however it came by them. */
export async function heldRights(
  cluster: Cluster,
  user: string,
  rules: readonly PolicyRule[],
  namespace: string | undefined,
): Promise<string[]> {
  const answers = await Promise.all(
    every(rules).map(async (asked) => {
      const [resource, subresource] = asked.resource.split('/');
      const { status } = await cluster.create(reviews, {
        ...{ apiVersion: reviews.apiVersion, kind: reviews.kind, metadata: { name: '' } },
        spec: {
          user: identityOf(user),
          resourceAttributes: { ...asked, resource, subresource, namespace },
        },
      });
      return (status as { allowed: boolean }).allowed ? [textOf(asked)] : [];
    }),
  );
  return answers.flat();
}

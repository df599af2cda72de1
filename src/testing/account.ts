import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { kubeconfigFor } from '#sandbox/kubeconfig.js';
import { paths } from '#sandbox/layout.js';
import { resourceType } from '../contract/resource.js';
import { accessObjects } from '../install/access.js';
import type { AccessObject } from '../install/access.js';
import { INSTALL_NAME } from '../install/names.js';
import type { PolicyRule } from '../install/rules.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });

/** Longer than any test. */
const LIFETIME_SECONDS = 86_400;

/** By sandbox and user. */
const known = new Map<string, Promise<string>>();

/**
 * Who the API server takes an operator under test for: the ServiceAccount that an installation in a namespace of this
 * name would run as. A name that says so itself is left as it is.
 */
export function identityOf(user: string): string {
  return user.includes(':') ? user : `system:serviceaccount:${user}:${INSTALL_NAME}`;
}

/**
 * The token of an operator's own ServiceAccount, in a namespace that is called like the user, as an installation there
 * would have it. Both are made if need be.
 */
export function accountToken(cluster: Cluster, user: string): Promise<string> {
  const id = `${cluster.sandbox.dir} ${user}`;
  const token = known.get(id) ?? makeAccount(cluster, user);
  known.set(id, token);
  return token;
}

/** The path of a kubeconfig with which an operator is its own ServiceAccount. */
export async function accountKubeconfig(cluster: Cluster, user: string): Promise<string> {
  const { sandbox } = cluster;
  const token = await accountToken(cluster, user);
  const ca = readFileSync(paths(sandbox).ca, 'utf8');
  const path = paths(sandbox).kubeconfig(`${user}-account`);
  const config = kubeconfigFor({ url: sandbox.url, ca }, { name: identityOf(user), token });
  await writeFile(path, config, { mode: 0o600 });
  return path;
}

async function makeAccount(cluster: Cluster, user: string): Promise<string> {
  const metadata = { name: user };
  await cluster.apply(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }, 'test');
  const account = { name: INSTALL_NAME, namespace: user };
  await cluster.apply(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account }, 'test');
  return tokenOf(cluster, account);
}

/** As the Pods of a ServiceAccount are given one. */
export async function tokenOf(
  cluster: Cluster,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
  const answer = await cluster.send('POST', path, {
    body: { ...request, spec: { expirationSeconds: LIFETIME_SECONDS } },
  });
  if (answer.status !== 201) throw new Error(`No token: ${answer.status} ${String(answer.body.message)}`);
  return (answer.body.status as { token: string }).token;
}

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

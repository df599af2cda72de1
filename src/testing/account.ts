import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { kubeconfigFor } from '#sandbox/users.js';
import { paths } from '#sandbox/layout.js';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType, resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { accessObjects } from '../install/rules.js';
import type { AccessObject } from '../install/rules.js';
import { INSTALL_NAME } from '../install/names.js';
import { typeOf } from '../install/objects.js';
import type { PolicyRule } from '../install/rules.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });

/** Time for which a token is valid, longer than any test. */
const LIFETIME_SECONDS = 86_400;

const known = new Map<string, Promise<string>>();

/** Returns the ServiceAccount of an installation in a namespace of this name; a whole user name is returned as it is. */
export function identityOf(user: string): string {
  return user.includes(':') ? user : `system:serviceaccount:${user}:${INSTALL_NAME}`;
}

/** Returns a token of that ServiceAccount. The account and its namespace are made if need be. */
export function accountToken(cluster: Cluster, user: string): Promise<string> {
  const id = `${cluster.sandbox.dir} ${user}`;
  const token = known.get(id) ?? makeAccount(cluster, user);
  known.set(id, token);
  return token;
}

/** Returns the path of a kubeconfig for that ServiceAccount. */
export async function accountKubeconfig(cluster: Cluster, user: string): Promise<string> {
  const { sandbox } = cluster;
  const token = await accountToken(cluster, user);
  const ca = readFileSync(paths(sandbox).ca, 'utf8');
  const path = paths(sandbox).kubeconfig(`${user}-account`);
  const config = kubeconfigFor({ url: sandbox.url, ca }, { name: identityOf(user), token });
  await writeFile(path, config, { mode: 0o600 });
  return path;
}

export async function ensureNamespace(cluster: Cluster, name: string): Promise<void> {
  await cluster.apply(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, 'test');
}

async function makeAccount(cluster: Cluster, user: string): Promise<string> {
  await ensureNamespace(cluster, user);
  const metadata = { name: INSTALL_NAME, namespace: user };
  await cluster.apply(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }, 'test');
  return tokenOf(cluster, metadata);
}

/** Requests a token as for a Pod of a ServiceAccount. */
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
  /** Namespace of the ServiceAccount that gets the rights. */
  readonly user: string;
  readonly rules: readonly PolicyRule[];
  /** Roles in these, and nothing cluster-wide. @default - a ClusterRole */
  readonly namespaces?: readonly string[];
}

/** Grants exactly these rights by the objects of an installation, in place of earlier ones there, and waits for them. */
export async function grant(cluster: Cluster, given: Grant): Promise<void> {
  const { user } = given;
  const objects = grantObjects(given);
  for (const object of objects) await cluster.apply(typeOf(object), { ...object }, 'test');
  for (const { metadata, rules = [] } of objects)
    await eventually(async () => {
      const held = await heldRights(cluster, user, rules, metadata.namespace);
      const missing = rightsIn(rules).flatMap(({ text }) => (held.includes(text) ? [] : [text]));
      if (missing.length > 0) throw new Error(`${user} may not ${missing.join(', ')} yet`);
    });
}

/** Withdraws what was granted in the whole cluster. What holds in a namespace goes with it. */
export async function withdraw(cluster: Cluster, given: Grant): Promise<void> {
  for (const object of grantObjects(given))
    if (object.metadata.namespace === undefined)
      await cluster.delete({ type: typeOf(object), name: object.metadata.name }, { mayBeMissing: true });
}

/** Returns the Roles and ClusterRoles of a grant, each followed by its binding. */
export function grantObjects({ user, rules, namespaces }: Grant): AccessObject[] {
  return accessObjects(rules, { namespace: user, ...(namespaces && { watchNamespaces: namespaces }) });
}

function rightsIn(rules: readonly PolicyRule[]) {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    resources.flatMap((path) =>
      verbs.flatMap((verb) =>
        resourceNames.map((name) => {
          const [resource, subresource] = path.split('/');
          const text = [verb, path, ...(name === undefined ? [] : [name])].join(' ');
          return { text, asked: { group: apiGroups[0], resource, subresource, verb, name } };
        }),
      ),
    ),
  );
}

/** Returns which of these rights the API server says that the operator has, granted in whatever way. */
export async function heldRights(
  cluster: Cluster,
  user: string,
  rules: readonly PolicyRule[],
  namespace: string | undefined,
): Promise<string[]> {
  const answers = await Promise.all(
    rightsIn(rules).map(async ({ text, asked }) => {
      const { status } = await cluster.create(reviews, {
        ...{ apiVersion: reviews.apiVersion, kind: reviews.kind, metadata: { name: '' } },
        spec: { user: identityOf(user), resourceAttributes: { ...asked, namespace } },
      });
      return (status as { allowed: boolean }).allowed ? [text] : [];
    }),
  );
  return answers.flat();
}

/** Installs CRDs, all at once, and waits until the whole API server knows them. Nothing else is left; tests may call it at once. */
export async function installCrd(
  cluster: Cluster,
  ...kinds: readonly Pick<Kind, 'type' | 'crd'>[]
): Promise<void> {
  await Promise.all(kinds.map((kind) => serve(cluster, kind)));
  // Not before all are served: what admission finds when it is first asked, it keeps for half a minute.
  await Promise.all(kinds.map((kind) => makeKnownToAdmission(cluster, kind)));
}

async function serve(cluster: Cluster, { type, crd }: Pick<Kind, 'type' | 'crd'>): Promise<void> {
  await eventually(() => cluster.apply(definitionType, crd as unknown as AnyObject, 'test'));
  // Established isn't enough: the type is served a moment later, and in discovery another one later.
  await eventually(() => cluster.list(type, 'default'));
  await eventually(() => requireDiscovered(cluster, type));
}

const DISCOVERY = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

interface DiscoveredGroup {
  readonly metadata: { readonly name: string };
  readonly versions?: readonly { version: string; resources: readonly { readonly resource: string }[] }[];
}

/** @throws where discovery lacks the type */
async function requireDiscovered(cluster: Cluster, { apiVersion, plural }: ResourceType): Promise<void> {
  const [group, version] = apiVersion.split('/');
  const { body } = await cluster.send('GET', '/apis', { accept: DISCOVERY });
  const { versions = [] } =
    (body.items as readonly DiscoveredGroup[]).find(({ metadata }) => metadata.name === group) ?? {};
  const served = versions.find((one) => one.version === version)?.resources ?? [];
  if (!served.some(({ resource }) => resource === plural)) throw new Error(`Discovery lacks ${plural}`);
}

/** Account that may create ConfigMaps, and finalize nothing: an admin may do both, and isn't asked about a kind. */
const PROBE_USER = 'system:serviceaccount:kube-system:root-ca-cert-publisher';

/**
 * Waits until the admission plugin OwnerReferencesPermissionEnforcement knows a kind: it looks for new ones every half minute
 * only, and refuses children of those that it doesn't know yet.
 */
async function makeKnownToAdmission(
  cluster: Cluster,
  { type: { apiVersion, kind } }: Pick<Kind, 'type'>,
): Promise<void> {
  const owner = { apiVersion, kind, name: 'probe', uid: 'probe', blockOwnerDeletion: true };
  const probe = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'probe', ownerReferences: [owner] },
  };
  await eventually(async () => {
    const { body } = await cluster.send('POST', '/api/v1/namespaces/default/configmaps', {
      ...{ query: { dryRun: 'All' }, impersonate: PROBE_USER, body: probe },
    });
    const answer = String(body.message);
    if (!answer.includes("can't set finalizers on")) throw new Error(`${kind} isn't known yet: ${answer}`);
  });
}

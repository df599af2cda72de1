import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { kubeconfigFor } from '#sandbox/kubeconfig.js';
import { paths } from '#sandbox/layout.js';
import { resourceType } from '../contract/resource.js';
import { INSTALL_NAME } from '../install/names.js';
import type { Cluster } from './cluster.js';

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

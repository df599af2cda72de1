import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { paths } from '../../../sandbox/layout.js';
import { accountKubeconfig } from './accounts.js';
import type { Cluster } from './cluster.js';

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: object }];
  readonly contexts: readonly [{ readonly context: object }];
}

export interface KubeconfigChanges {
  /** Where it leads to. @default - the API server */
  readonly server?: string;
  /** Of the context, which is the operator's own. @default default */
  readonly namespace?: string;
}

/** A copy of an operator's kubeconfig that differs in this. Returns its path. */
export async function kubeconfigLike(
  cluster: Cluster,
  user: string,
  { server, namespace }: KubeconfigChanges,
): Promise<string> {
  const own = parse(readFileSync(await accountKubeconfig(cluster, user), 'utf8')) as Kubeconfig;
  if (server !== undefined) Object.assign(own.clusters[0].cluster, { server });
  if (namespace !== undefined) Object.assign(own.contexts[0].context, { namespace });
  const path = paths(cluster.sandbox).kubeconfig(`${user}-changed`);
  await writeFile(path, stringify(own), { mode: 0o600 });
  return path;
}

import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { tokenOf } from './accounts.js';
import type { Cluster } from './cluster.js';

interface Kubeconfig {
  readonly clusters: readonly unknown[];
}

/** A kubeconfig with the token of a ServiceAccount, as its Pods are given one. Returns its path. */
export async function kubeconfigOf(
  cluster: Cluster,
  folder: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const token = await tokenOf(cluster, { namespace, name });
  const admins = parse(readFileSync(cluster.sandbox.adminKubeconfig, 'utf8')) as Kubeconfig;
  const [only] = admins.clusters as [{ name: string }];
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', clusters: [only], 'current-context': 'own' },
    users: [{ name: 'own', user: { token } }],
    contexts: [{ name: 'own', context: { cluster: only.name, user: 'own', namespace } }],
  };
  const file = join(folder, `${namespace}-${name}.yaml`);
  await writeFile(file, stringify(config));
  return file;
}

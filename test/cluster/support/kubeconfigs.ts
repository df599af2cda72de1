import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import type { SandboxClient } from '../../../sandbox/client.js';
import { paths } from '../../../sandbox/layout.js';

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

/** A copy of a user's kubeconfig that differs in this. Returns its path. */
export async function kubeconfigLike(
  sandbox: SandboxClient,
  user: string,
  { server, namespace }: KubeconfigChanges,
): Promise<string> {
  const own = parse(readFileSync(sandbox.kubeconfig(user), 'utf8')) as Kubeconfig;
  if (server !== undefined) Object.assign(own.clusters[0].cluster, { server });
  if (namespace !== undefined) Object.assign(own.contexts[0].context, { namespace });
  const path = paths(sandbox).kubeconfig(`${user}-changed`);
  await writeFile(path, stringify(own), { mode: 0o600 });
  return path;
}

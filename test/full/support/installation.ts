import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repoFolder } from '../../../sandbox/paths.js';
import type { Kind } from '../../../src/contract/kind.js';
import { deployments } from './cluster.js';
import type { Cluster } from './cluster.js';
import { startController } from './controller.js';
import type { RunningController } from './controller.js';
import { kubeconfigOf } from './service-account.js';

/** What a command has come to. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `reconstruct` as it is built, however it ends. */
export async function command(...args: readonly string[]): Promise<Outcome> {
  try {
    const file = join(repoFolder(), 'lib/bundle/reconstruct.mjs');
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file, ...args]);
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}

export interface InstalledControllerProps {
  readonly cluster: Cluster;
  /** A user without any rights. */
  readonly user: string;
  /** Where the kubeconfig of the ServiceAccount may be put. */
  readonly folder: string;
  readonly namespace: string;
  readonly kinds: readonly Kind[];
}

/**
 * Starts the controller as its Pod would: with the arguments of the Deployment and as its ServiceAccount, which has
 * the rights that were installed and no others.
 */
export async function startInstalled(props: InstalledControllerProps): Promise<RunningController> {
  const { cluster, user, folder, namespace, kinds } = props;
  const place = { type: deployments, namespace, name: 'reconstruct' };
  const { spec } = await cluster.get<{
    spec: { template: { spec: { serviceAccountName: string; containers: [{ args: string[] }] } } };
  }>(place);
  const { serviceAccountName, containers } = spec.template.spec;
  // Here are no addresses of its own.
  const args = containers[0].args.slice(1).filter((arg) => !arg.includes('-bind-address='));
  return startController({
    ...{ cluster, user, kinds, args, rights: () => [] },
    kubeconfig: await kubeconfigOf(cluster, folder, { namespace, name: serviceAccountName }),
  });
}

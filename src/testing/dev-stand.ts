import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSandbox } from '#sandbox/control-plane.js';
import type { Sandbox } from '#sandbox/control-plane.js';
import { startWatchdog } from '#sandbox/watchdog.js';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType } from '../contract/resource.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import type { PolicyRule } from '../install/rules.js';
import { accountKubeconfig, grant, installCrd } from './account.js';
import { Cluster } from './cluster.js';

/** Ends processes together with this one, however it ends. */
export { startWatchdog as startGuard };

/**
 * Starts a sandbox for `reconstruct dev`, with the ServiceAccount that an installation would have. Nothing of it outlives
 * this process.
 * @param log takes lines of the sandbox
 */
export async function startStand(log: (line: string) => void) {
  const sandbox = await startEmpty(log);
  const cluster = new Cluster(sandbox);
  const stop = async (): Promise<void> => {
    await cluster.close();
    await sandbox.stop();
  };
  try {
    const { adminKubeconfig, kubectlPath } = sandbox;
    return {
      ...{ adminKubeconfig, kubectlPath, stop },
      operatorKubeconfig: await accountKubeconfig(cluster, DEFAULT_NAMESPACE),
      applyCrd: async ({ type, crd }: Pick<Kind, 'type' | 'crd'>, isNew: boolean) => {
        await cluster.apply(definitionType, crd as unknown as AnyObject, 'test');
        if (isNew) await installCrd(cluster, { type, crd });
      },
      grant: (rules: readonly PolicyRule[]) => grant(cluster, { user: DEFAULT_NAMESPACE, rules }),
      restartControllerManager: () => sandbox.restartControllerManager(),
      kubectl: (args: readonly string[]) => sandbox.kubectl(args, { allowFailure: true }),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a sandbox in which nothing is installed, for `reconstruct dev --no-operator`. Its path is typed, or copied from a line of 80 characters. */
export function startEmpty(log: (line: string) => void): Promise<Sandbox> {
  const dataDir = join(tmpdir(), `reconstruct-dev-${randomBytes(4).toString('hex')}`);
  return startSandbox({ auditLog: false, log, dataDir });
}

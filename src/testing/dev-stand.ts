import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { startSandbox } from '#sandbox/control-plane.js';
import type { Sandbox } from '#sandbox/control-plane.js';
import { startWatchdog } from '#sandbox/watchdog.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { messageOf } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import type { PolicyRule } from '../install/rules.js';
import { accountKubeconfig, grant, installCrd } from './account.js';
import { Cluster } from './cluster.js';

/** Ends processes together with this one, however it ends. */
export { startWatchdog as startGuard };

/** Parts of a kind that are installed: plain data, which another process may have loaded. */
export interface StandKind {
  readonly type: ResourceType;
  readonly crd: CustomResourceDefinition;
}

/**
 * Starts a sandbox for `reconstruct dev`, with the ServiceAccount that an installation would have. Nothing of it outlives
 * this process.
 * @param log takes lines of the sandbox
 */
export async function startStand(log: (line: string) => void): Promise<DevStand> {
  const sandbox = await startSandbox({ auditLog: false, log, dataDir: shortFolder() });
  const cluster = new Cluster(sandbox);
  try {
    return new DevStand(sandbox, cluster, await accountKubeconfig(cluster, DEFAULT_NAMESPACE));
  } catch (error) {
    await cluster.close();
    await sandbox.stop();
    throw error;
  }
}

/** Starts a sandbox in which nothing is installed, for `reconstruct dev --no-operator`. */
export function startEmpty(log: (line: string) => void): Promise<Sandbox> {
  return startSandbox({ auditLog: false, log, dataDir: shortFolder() });
}

/** Its path is typed, or copied from a line of 80 characters. */
function shortFolder(): string {
  return join(tmpdir(), `reconstruct-dev-${randomBytes(4).toString('hex')}`);
}

class DevStand {
  readonly adminKubeconfig: string;
  readonly kubectlPath: string;
  private readonly crds = new Map<string, CustomResourceDefinition>();
  private rules: readonly PolicyRule[] = [];

  constructor(
    private readonly sandbox: Sandbox,
    private readonly cluster: Cluster,
    readonly operatorKubeconfig: string,
  ) {
    this.adminKubeconfig = sandbox.adminKubeconfig;
    this.kubectlPath = sandbox.kubectlPath;
  }

  /** Applies the CRDs that have changed, and gives the operator exactly these rights. CRDs that are `left` stay. */
  async install(kinds: readonly StandKind[], rules: readonly PolicyRule[]) {
    const refused: { readonly crd: string; readonly why: string }[] = [];
    const wanted = new Set(kinds.map(({ crd }) => crd.metadata.name));
    const left = [...this.crds.keys()].filter((name) => !wanted.has(name));
    // They may be removed, and the kind come back.
    for (const name of left) this.crds.delete(name);
    const changed = kinds.filter(({ crd }) => !isDeepStrictEqual(this.crds.get(crd.metadata.name), crd));
    const install = async ({ type, crd }: StandKind): Promise<boolean> => {
      const { name } = crd.metadata;
      const isNew = !this.crds.has(name);
      try {
        await this.cluster.apply(definitionType, crd as unknown as AnyObject, 'test');
        if (isNew) await installCrd(this.cluster, { type, crd });
        this.crds.set(name, crd);
        return isNew;
      } catch (error) {
        refused.push({ crd: name, why: `The CRD ${name} is refused: ${messageOf(error)}` });
        return false;
      }
    };
    const added = await Promise.all(changed.map(install));
    if (!isDeepStrictEqual(this.rules, rules)) {
      await grant(this.cluster, { user: DEFAULT_NAMESPACE, rules });
      this.rules = rules;
    }
    // Its garbage collector would learn of them half a minute later.
    if (added.includes(true)) await this.sandbox.restartControllerManager();
    return { refused, left, changed: changed.length > refused.length };
  }

  /** Has kubectl apply the files of a folder. @returns the lines that it prints for what was applied, and for what was not */
  async applyFolder(folder: string) {
    const apply = ['apply', '--server-side', '--force-conflicts', '--recursive', '-f', folder];
    const kubectl = (args: readonly string[]) => this.sandbox.kubectl(args, { allowFailure: true });
    let result = await kubectl(apply);
    if (result.code !== 0 && result.stdout !== '') {
      // What comes before its namespace or its CRD is applied once that is there.
      await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
      result = await kubectl(apply);
    }
    const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
    return { applied: lines(result.stdout), refused: result.code === 0 ? [] : lines(result.stderr) };
  }

  async stop(): Promise<void> {
    await this.cluster.close();
    await this.sandbox.stop();
  }
}

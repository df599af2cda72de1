import { startSandbox } from '#sandbox/control-plane.js';
import type { Sandbox, SandboxOptions } from '#sandbox/control-plane.js';
import type { Kind } from '../contract/kind.js';
import { Cluster } from './cluster.js';
import { installCrd } from './install-crd.js';
import { Operator } from './operator.js';

/** What a sandbox is started with. */
export interface WithSandboxOptions extends SandboxOptions {
  /** Whose CRDs are there before the body begins. @default - none */
  readonly kinds?: readonly Kind[];
}

/** What a test has while its sandbox runs. */
export interface SandboxContext {
  /** The control plane, its kubeconfigs, and a kubectl for it. */
  readonly sandbox: Sandbox;
  /** The API server, as its admin. */
  readonly cluster: Cluster;
  /** Makes a namespace of its own; the purpose begins its name. */
  makeNamespace(purpose: string): Promise<string>;
  /** Starts the operator of the kinds, as the admin; it ends with the body, or by its `stop`. */
  run(kinds: readonly Kind[], namespaces?: readonly string[]): Promise<Operator>;
}

/**
 * Runs a body against a real control plane of its own, on this machine, and returns what it returned.
 *
 * **Guarantees.** Whatever happens in the body, nothing is left of the sandbox.
 *
 * **Assumptions.** Linux or macOS, and Go for the first start: the control plane is built from pinned sources then, which
 * takes minutes, and kept in the user's cache. `KUBEBUILDER_ASSETS` may name a folder with the programs instead.
 *
 * **Errors.** Where the programs aren't there and can't be built, one that names the ways out.
 */
export async function withSandbox<T>(
  { kinds = [], ...options }: WithSandboxOptions,
  body: (context: SandboxContext) => Promise<T>,
): Promise<T> {
  const sandbox = await startSandbox(options);
  const cluster = new Cluster(sandbox);
  const operators: Operator[] = [];
  try {
    for (const kind of kinds) await installCrd(cluster, kind);
    // Its garbage collector would learn of them half a minute later.
    if (kinds.length > 0 && options.apiOnly !== true) await sandbox.restartControllerManager();
    return await body({
      ...{ sandbox, cluster, makeNamespace: (purpose) => cluster.makeNamespace(purpose) },
      run: async (running, namespaces) => {
        const operator = await Operator.start({
          ...{ kubeconfig: sandbox.adminKubeconfig, kinds: running },
          ...(namespaces && { namespaces }),
        });
        operators.push(operator);
        return operator;
      },
    });
  } finally {
    for (const operator of operators) operator.kill();
    await cluster.close();
    await sandbox.stop();
  }
}

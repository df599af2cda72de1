import { startSandbox } from '#sandbox/control-plane.js';
import type { Sandbox, SandboxOptions } from '#sandbox/control-plane.js';
import type { Kind, KindContext, StandaloneController } from '../contract/kind.js';
import { loadKubeconfig } from '../client/kubeconfig.js';
import { Manager } from '../engine/loop/manager.js';
import { UndiciTransport } from '../client/transport.js';
import { render } from '../render/renderer.js';
import { createLogger, silentLogger } from '../telemetry/logger.js';
import type { Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import { installCrd } from './account.js';
import { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { Wire } from './wire.js';

/** Properties of an operator. */
export interface OperatorProps {
  /** Path of the kubeconfig to act with. */
  readonly kubeconfig: string;
  /** Kinds, and controllers without a CRD. */
  readonly kinds: readonly (Kind | StandaloneController)[];
  /** @default - all */
  readonly namespaces?: readonly string[];
  /** Flags, policy, settings, selector and held updates, as on the command line. @default - none of them */
  readonly given?: Pick<KindContext, 'flags' | 'policy' | 'inForce' | 'selector' | 'upgrades'>;
  /**
   * Called before anything is asked for, to put faults in.
   * @default - there are none
   * @internal
   */
  readonly prepare?: (wire: Wire) => void;
  /**
   * Log of the engine.
   * @default - none
   * @internal
   */
  readonly log?: Logger;
  /** Longest wait until it knows all objects, in milliseconds. @default 60000 */
  readonly startMilliseconds?: number;
}

/**
 * Engine with some kinds in this process, the same as that of `reconstruct run`.
 *
 * **Guarantees.** After `kill` no request of it gets through, and whatever it knew is gone: the next one begins with
 * nothing but what the API server has.
 *
 * **Caveats.** What a kind keeps in variables of its modules outlives a kill, as it doesn't in a real process.
 */
export class Operator implements Disposable {
  /** @internal */
  readonly wire: Wire;
  private readonly manager: Manager;
  private readonly stopping = new AbortController();
  private readonly ended: Promise<void>;

  private constructor(props: OperatorProps) {
    const { kubeconfig, kinds, namespaces, given, prepare, log = silentLogger } = props;
    this.wire = new Wire(new UndiciTransport(loadKubeconfig({ kubeconfig }), 'reconstruct-testing'));
    prepare?.(this.wire);
    this.manager = new Manager({
      controllers: kinds.flatMap((kind) =>
        kind.controllers({ ...given, render, ...(namespaces && { namespaces }) }),
      ),
      ...{ transport: this.wire, log, metrics: new Metrics(), instance: 'testing' },
      // Backoff without jitter.
      random: () => 0,
      ...(namespaces && { namespaces }),
    });
    // Nothing of the engine keeps a process alive.
    const keepAlive = setInterval(() => undefined, 2 ** 30);
    this.ended = this.manager.run(this.stopping.signal).finally(() => {
      clearInterval(keepAlive);
    });
    this.wire.onDeath = () => {
      this.stopping.abort();
    };
  }

  /** @throws where it isn't ready in time; nothing of it goes on then */
  static async start(props: OperatorProps): Promise<Operator> {
    const operator = new Operator(props);
    try {
      await eventually(
        () => {
          const [first] = operator.manager.notReady();
          if (first) throw new Error(`The operator isn't ready: ${first.what}: ${first.why}`);
        },
        { deadlineMilliseconds: props.startMilliseconds ?? 60_000 },
      );
      return operator;
    } catch (error) {
      operator.kill();
      throw error;
    }
  }

  /** Waits until nothing has been asked for so long. @throws where it doesn't come to rest within the deadline */
  async quiet(milliseconds: number, deadlineMilliseconds = 30_000): Promise<void> {
    await eventually(
      () => {
        if (this.wire.quietMilliseconds < milliseconds)
          throw new Error(
            `The operator doesn't come to rest; its last writes: ${this.wire.writes.slice(-5).join(', ') || 'none'}`,
          );
      },
      { deadlineMilliseconds, intervalMilliseconds: 20 },
    );
  }

  /** Finishes what is under way. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.ended;
  }

  /** Waits for nothing, since whatever it still tries comes to nothing: its events alone are tried for seconds. */
  kill(): void {
    this.wire.kill();
    // Nothing may wait for its end.
    this.ended.catch(() => undefined);
  }

  [Symbol.dispose](): void {
    this.kill();
  }
}

/** Options of `withSandbox`. */
export interface WithSandboxOptions extends SandboxOptions {
  /** Kinds whose CRDs are installed before the body begins. @default - none */
  readonly kinds?: readonly Kind[];
}

/** Means of a test while its sandbox runs. */
export interface SandboxContext {
  /** Control plane, its kubeconfigs, and a kubectl for it. */
  readonly sandbox: Sandbox;
  /** API server, as its admin. */
  readonly cluster: Cluster;
  /** Makes a namespace of its own; the purpose begins its name. */
  makeNamespace(purpose: string): Promise<string>;
  /**
   * Starts the operator of kinds and controllers without a CRD, as the admin; it ends with the body, or by its `stop`. Its warnings and errors
   * are written to standard error.
   */
  run(kinds: readonly (Kind | StandaloneController)[], namespaces?: readonly string[]): Promise<Operator>;
}

/**
 * Runs a body against a real control plane of its own, on this machine, and returns what it returned.
 *
 * **Guarantees.** Whatever happens in the body, nothing is left of the sandbox.
 *
 * **Assumptions.** Linux or macOS. The first start downloads the programs of the control plane into the user's cache, or
 * builds them where their releases can't be reached, which takes minutes. `RECONSTRUCT_CONTROL_PLANE` may name a folder with them.
 *
 * **Errors.** Where the programs can be neither found, downloaded nor built, one that names the ways out.
 */
export async function withSandbox<T>(
  { kinds = [], ...options }: WithSandboxOptions,
  body: (context: SandboxContext) => Promise<T>,
): Promise<T> {
  const log = await createLogger({ level: 'warn', format: 'pretty' });
  const sandbox = await startSandbox(options);
  const cluster = new Cluster(sandbox);
  const operators: Operator[] = [];
  try {
    await installCrd(cluster, ...kinds);
    // Its garbage collector would learn of them half a minute later.
    if (kinds.length > 0 && options.apiOnly !== true) await sandbox.restartControllerManager();
    return await body({
      ...{ sandbox, cluster, makeNamespace: (purpose) => cluster.makeNamespace(purpose) },
      run: async (running, namespaces) => {
        const operator = await Operator.start({
          ...{ kubeconfig: sandbox.adminKubeconfig, kinds: running, log },
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

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { outputOf, type KubectlResult } from '../client.js';
import { repoFolder } from '../paths.js';
import { killGroup, type Watchdog } from '../watchdog.js';
import { shellCommand, type Show } from './show.js';

/** Full name of the resource, and so of its CRD: the user's cluster may serve AppServices of another group too. */
export const appServices = 'appservices.kosmos.io';

export interface KubectlProps {
  /** The program's path, or its name on the PATH. */
  readonly program: string;
  readonly env: NodeJS.ProcessEnv;
  /** Arguments that every command begins with: the context and the namespace. */
  readonly prefix: readonly string[];
  readonly show: Show;
  readonly watchdog: Watchdog;
  /** Whether commands end with the demo. @default false: a command under way is finished */
  readonly endWithDemo?: boolean;
  /** Aborted, no further command is run. @default - commands are always run */
  readonly signal?: AbortSignal;
}

/** An object as kubectl gives it, as far as the demo looks at one. */
export interface LiveObject {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

/** kubectl on one cluster, in the repository's folder. */
export class Kubectl {
  constructor(private readonly props: KubectlProps) {}

  with(changes: Partial<Pick<KubectlProps, 'prefix'>>): Kubectl {
    return new Kubectl({ ...this.props, ...changes });
  }

  /** For cleaning up after an interruption. */
  uninterrupted(): Kubectl {
    const { signal, ...props } = this.props;
    return new Kubectl(props);
  }

  /** The command as one types it. */
  typed(args: readonly string[]): string {
    return shellCommand(['kubectl', ...this.props.prefix, ...args]);
  }

  /** Runs a command and shows both it and what it prints. **Errors**: when it fails, with what it printed. */
  async demonstrate(...args: readonly string[]): Promise<string> {
    this.props.show.command(this.typed(args));
    const { stdout, stderr } = await this.run(...args);
    this.props.show.output(`${stdout}${stderr}`);
    return stdout;
  }

  /** Shows a command that was run before and what is to be seen of its output. */
  show(args: readonly string[], output: string): void {
    this.props.show.command(this.typed(args));
    this.props.show.output(output);
  }

  /** **Errors**: when the command fails, with what it printed. */
  async run(...args: readonly string[]): Promise<KubectlResult> {
    const answer = await this.try(...args);
    if (answer.code === 0) return answer;
    throw new Error(`${this.typed(args)}\nfailed: ${`${answer.stderr}${answer.stdout}`.trim()}`);
  }

  /**
   * Runs kubectl like {@link run}, but returns a failure too.
   *
   * **Errors**: when kubectl cannot be started, and when it prints nothing for five minutes.
   */
  async try(...args: readonly string[]): Promise<KubectlResult> {
    const { signal, watchdog, endWithDemo = false } = this.props;
    signal?.throwIfAborted();
    const child = this.#spawn(args);
    const { pid } = child;
    if (endWithDemo && pid !== undefined) watchdog.watch(pid);
    const remedy =
      'see whether the cluster of the context answers: a login may wait for an answer, or a proxy hang';
    try {
      return await outputOf(child, this.typed(args), remedy);
    } catch (error) {
      if (pid !== undefined) killGroup(pid); // With what it has started, such as a login.
      throw error;
    } finally {
      if (endWithDemo && pid !== undefined) watchdog.forget(pid);
    }
  }

  /** Returns an object, or nothing if there is none. */
  async get(type: string, name: string): Promise<LiveObject | undefined> {
    const { stdout } = await this.run('get', type, name, '--ignore-not-found', '-o', 'json');
    return stdout === '' ? undefined : (JSON.parse(stdout) as LiveObject);
  }

  async list(type: string, selector: string): Promise<LiveObject[]> {
    const { stdout } = await this.run('get', type, '-l', selector, '-o', 'json');
    return (JSON.parse(stdout) as { items: LiveObject[] }).items;
  }

  /** Runs a command that prints lines until it is ended. @returns what ends it */
  follow(args: readonly string[], onLine: (line: string) => void): () => void {
    const child = this.#spawn(args);
    const { pid } = child;
    if (pid !== undefined) this.props.watchdog.watch(pid);
    child.on('error', () => undefined); // Then no line comes, which is seen.
    child.once('close', () => {
      if (pid !== undefined) this.props.watchdog.forget(pid);
    });
    child.stderr.resume();
    createInterface({ input: child.stdout }).on('line', onLine);
    return () => child.kill('SIGKILL');
  }

  #spawn(args: readonly string[]) {
    const { program, env, prefix } = this.props;
    // In a process group of its own: Ctrl-C is for the demo, which ends what it has started.
    return spawn(program, [...prefix, ...args], {
      cwd: repoFolder(),
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }
}

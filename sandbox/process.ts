import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { identify, type ProcessIdentity } from './process-identity.js';
import type { Watchdog } from './watchdog.js';

/** A program to run in the background. */
export interface ProcessProps {
  /** Its name, for messages. */
  readonly name: string;
  /** The path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** Its working folder, and its home: it reads nothing from the user's. */
  readonly dir: string;
  /** The file its output is appended to. */
  readonly logFile: string;
  readonly watchdog: Watchdog;
}

/**
 * The process becomes the program only when a line on its stdin says that it is watched: a starter that is killed
 * between the two would leave it running for ever.
 */
const runOnceWatched = 'read -r _ && exec "$0" "$@" </dev/null';

/** A program that runs in the background, in a process group of its own. */
export class ManagedProcess {
  readonly name: string;
  readonly identity: ProcessIdentity;
  readonly #props: ProcessProps;
  readonly #child: ChildProcess;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<void>;
  #outcome: string | undefined;
  #stopping = false;

  /** **Errors**: when the program cannot be run at all; see {@link failure} for one that ends later. */
  static async start(props: ProcessProps): Promise<ManagedProcess> {
    const log = openSync(props.logFile, 'a');
    try {
      const child = spawn('/bin/sh', ['-c', runOnceWatched, props.program, ...props.args], {
        cwd: props.dir,
        detached: true,
        env: { ...process.env, HOME: props.dir, KUBECONFIG: undefined },
        stdio: ['pipe', log, log],
      });
      if (child.pid !== undefined) props.watchdog.watch(child.pid);
      await once(child, 'spawn');
      child.stdin?.on('error', () => undefined); // It has ended already; `failure` tells.
      child.stdin?.end('\n');
      return new ManagedProcess(props, child, child.pid ?? 0);
    } catch (error) {
      throw new Error(`${props.name} cannot be started from ${props.program}.`, { cause: error });
    } finally {
      closeSync(log);
    }
  }

  private constructor(props: ProcessProps, child: ChildProcess, pid: number) {
    this.#props = props;
    this.#child = child;
    this.name = props.name;
    this.identity = identify(pid);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#outcome = signal ?? `exit code ${code ?? '?'}`;
        props.watchdog.forget(pid);
        resolve();
      });
    });
    child.unref(); // A sandbox alone does not keep its starter running.
  }

  /** Why the process is no longer there, although nobody stopped it: how it ended and the end of its log. */
  get failure(): Error | undefined {
    if (this.#outcome === undefined || this.#stopping) return undefined;
    return new Error(`${this.name} ended early (${this.#outcome}). ${this.logTail()}`);
  }

  /** The last lines of its log, introduced; nothing where the folder has been removed, as by an interrupt. */
  logTail(lines = 20): string {
    if (!existsSync(this.#props.logFile)) return 'Its log is gone.';
    const log = readFileSync(this.#props.logFile, 'utf8').trimEnd().split('\n');
    return `The end of its log:\n${log.slice(-lines).join('\n')}`;
  }

  /** Ends the process: SIGTERM, and SIGKILL if it still runs after `graceMilliseconds`. */
  async stop(graceMilliseconds = 5_000): Promise<void> {
    this.#stopping = true;
    if (this.#outcome !== undefined) return;
    this.#child.ref();
    this.#child.kill('SIGTERM');
    const patience = new AbortController();
    await Promise.race([
      this.ended,
      delay(graceMilliseconds, undefined, { signal: patience.signal }).catch(() => undefined),
    ]);
    patience.abort();
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}

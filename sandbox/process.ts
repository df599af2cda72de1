import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Watchdog } from './watchdog.js';

/** Names one process for good: a pid alone may be given to another process later. */
export interface ProcessIdentity {
  readonly pid: number;
  /**
   * Time at which it started, in clock ticks since boot.
   *
   * @default - unknown (no /proc on this system); then only the pid is compared
   */
  readonly startTime?: string;
}

/** Reads the identity of a process that runs now. */
export function identify(pid: number): ProcessIdentity {
  const stat = readStat(pid);
  return stat === undefined ? { pid } : { pid, startTime: stat.startTime };
}

/** Reports whether that very process still runs. A zombie, ended but not yet reaped, does not. */
export function isRunning(process_: ProcessIdentity): boolean {
  if (!pidExists(process_.pid)) return false;
  const stat = readStat(process_.pid);
  if (stat === undefined) return true;
  if (stat.state === 'Z' || stat.state === 'X') return false;
  return process_.startTime === undefined || process_.startTime === stat.startTime;
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readStat(pid: number): { readonly state: string; readonly startTime: string } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // Fields 3 (state) and 22 (start time) of proc(5), counted after the name, which may hold spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTime] = [fields[0], fields[19]];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}

/** A program to run in the background. */
export interface ProcessProps {
  /** Its name, for messages. */
  readonly name: string;
  /** The path of the program. */
  readonly program: string;
  readonly args: readonly string[];
  /** Its working folder. */
  readonly dir: string;
  /** @default - this process's, with its folder as home and without a kubeconfig: it reads nothing of the user's */
  readonly env?: NodeJS.ProcessEnv;
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
        env: props.env ?? { ...process.env, HOME: props.dir, KUBECONFIG: undefined },
        stdio: ['pipe', log, log],
      });
      if (child.pid !== undefined) props.watchdog.watch(child.pid);
      await once(child, 'spawn');
      child.stdin?.on('error', () => undefined); // It has ended already; `failure` says why.
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

  /** Reason for an unexpected end: how the process ended, and the end of its log. */
  get failure(): Error | undefined {
    if (this.#outcome === undefined || this.#stopping) return undefined;
    return new Error(`${this.name} ended early (${this.#outcome}). ${this.logTail()}`);
  }

  /** Lines of its log; none where the folder has been removed, as by an interrupt. */
  log(): string[] {
    if (!existsSync(this.#props.logFile)) return [];
    const text = readFileSync(this.#props.logFile, 'utf8').trimEnd();
    return text === '' ? [] : text.split('\n');
  }

  /** The last lines of its log, introduced. */
  logTail(lines = 20): string {
    if (!existsSync(this.#props.logFile)) return 'Its log is gone.';
    return `The end of its log:\n${this.log().slice(-lines).join('\n')}`;
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

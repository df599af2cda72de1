import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { repoFolder } from '../paths.js';
import type { Watchdog } from '../watchdog.js';

export interface ControllerProps {
  /** What follows `reconstruct`. */
  readonly args: readonly string[];
  /** The file that takes its log. */
  readonly logFile: string;
  readonly watchdog: Watchdog;
}

/** Milliseconds it gets to finish what is in flight. */
const grace = 5_000;

/** The controller: the real `reconstruct run`, as a process of its own. */
export class Controller {
  #outcome: string | undefined;
  readonly #ended: Promise<void>;

  static async start({ args, logFile, watchdog }: ControllerProps): Promise<Controller> {
    const log = openSync(logFile, 'a');
    try {
      const program = join(repoFolder(), 'lib', 'cli', 'main.js');
      const stdio = ['ignore', log, log] as const;
      const child = spawn(process.execPath, [program, ...args], {
        cwd: repoFolder(),
        detached: true,
        stdio: [...stdio],
      });
      if (child.pid !== undefined) watchdog.watch(child.pid);
      await once(child, 'spawn');
      return new Controller(child, logFile, watchdog);
    } finally {
      closeSync(log);
    }
  }

  private constructor(
    private readonly child: ChildProcess,
    private readonly logFile: string,
    watchdog: Watchdog,
  ) {
    this.#ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#outcome = signal ?? `exit code ${code ?? '?'}`;
        if (child.pid !== undefined) watchdog.forget(child.pid);
        resolve();
      });
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** How it has ended, if it has. */
  get outcome(): string | undefined {
    return this.#outcome;
  }

  /** What it has logged, by line. */
  log(): string[] {
    const log = readFileSync(this.logFile, 'utf8').trimEnd();
    return log === '' ? [] : log.split('\n');
  }

  /** SIGTERM, and SIGKILL if it does not end in time. */
  async stop(): Promise<void> {
    if (this.#outcome !== undefined) return;
    this.child.kill('SIGTERM');
    const patience = new AbortController();
    await Promise.race([
      this.#ended,
      delay(grace, undefined, { signal: patience.signal }).catch(() => undefined),
    ]);
    patience.abort();
    this.child.kill('SIGKILL');
    await this.#ended;
  }
}

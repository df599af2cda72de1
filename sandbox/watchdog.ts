import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { sandboxFolder } from './paths.js';
const cleanups = new Set<() => void>();
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs `cleanup` when this process exits or gets SIGINT, SIGTERM or SIGHUP. The cleanup must be synchronous: on
 * exit nothing else runs. The signal keeps its effect: without another listener it ends the process.
 *
 * @returns a function that takes the cleanup back
 */
export function onInterrupt(cleanup: () => void): () => void {
  if (cleanups.size === 0) install();
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) uninstall();
  };
}

function install(): void {
  process.on('exit', runCleanups);
  for (const signal of signals) process.on(signal, onSignal);
}

function uninstall(): void {
  process.off('exit', runCleanups);
  for (const signal of signals) process.off(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  runCleanups();
  uninstall();
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}

function runCleanups(): void {
  for (const cleanup of [...cleanups]) {
    cleanups.delete(cleanup);
    try {
      cleanup();
    } catch (error) {
      process.stderr.write(`${String(error)}\n`);
    }
  }
}

/**
 * Sees to it that processes and folders do not outlive this process.
 *
 * **Guarantees**: when this process exits or is interrupted, every watched process is killed with its group and
 * every watched folder removed; when it is killed by SIGKILL, a helper process does the same.
 * **Assumptions**: a watched process leads a process group of its own (spawned `detached`).
 */
export interface Watchdog {
  watch(pid: number): void;
  forget(pid: number): void;
  watchFolder(path: string): void;
  /** Lets everything watched be: it may run on. Resolves when the helper process has ended. */
  release(): Promise<void>;
}

/** Starts the helper process. It ends by itself when released or when this process ends. */
export async function startWatchdog(): Promise<Watchdog> {
  const helper = spawn(process.execPath, [join(sandboxFolder(), 'watchdog.mjs')], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: process.env.PATH },
  });
  const ended = once(helper, 'exit');
  await once(helper, 'spawn');
  helper.stdin.on('error', () => undefined); // The helper was killed; the hooks below still work.
  helper.unref();
  (helper.stdin as typeof helper.stdin & { unref?: () => void }).unref?.();

  const pids = new Set<number>();
  const folders = new Set<string>();
  const tell = (message: object): boolean => helper.stdin.write(`${JSON.stringify(message)}\n`);
  const takeBack = onInterrupt(() => {
    pids.forEach(killGroup);
    folders.forEach((folder) => {
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    });
  });
  return {
    watch: (pid) => {
      pids.add(pid);
      tell({ watch: pid });
    },
    forget: (pid) => {
      pids.delete(pid);
      tell({ forget: pid });
    },
    watchFolder: (folder) => {
      folders.add(folder);
      tell({ folder });
    },
    release: async () => {
      takeBack();
      helper.ref();
      tell({ release: true });
      helper.stdin.end();
      if (helper.exitCode === null && helper.signalCode === null) await ended;
    },
  };
}

/** Kills a process with its group, as far as they are there. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

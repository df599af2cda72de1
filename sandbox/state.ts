import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sandbox, SandboxRecord } from './control-plane.js';
import { tryLock } from './lock.js';
import { repoFolder } from './paths.js';
import { isRunning, type ProcessIdentity } from './process.js';
import { waitFor } from './wait.js';

/** A background sandbox by its folder, checked against the processes that run. */
export type SandboxState =
  /** No sandbox is there. */
  | { readonly kind: 'absent' }
  /** Leftovers of one that runs no more: after a restart of the machine, for example. */
  | { readonly kind: 'stale' }
  /** Some of its programs run, some have ended. */
  | { readonly kind: 'broken'; readonly record: SandboxRecord; readonly ended: readonly string[] }
  | { readonly kind: 'running'; readonly record: SandboxRecord };

/** **Errors**: on a name that cannot be a folder's. */
export function checkName(name: string): string {
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name)) return name;
  throw new Error(`The sandbox name "${name}" must consist of lower-case letters, digits and "-".`);
}

/** The names of the sandboxes below `root` that have a folder. */
export async function listStates(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** Takes the folder of a named sandbox, so that no other command changes it meanwhile. */
export async function lockSandbox(
  name: string,
): Promise<{ readonly dir: string; readonly release: () => Promise<void> }> {
  const dir = join(sandboxRoot(), checkName(name));
  await mkdir(sandboxRoot(), { recursive: true });
  const lock = await tryLock(`${dir}.lock`);
  if ('pid' in lock)
    throw new Error(`Process ${lock.pid} is starting or stopping the sandbox ${name}; wait for it.`);
  return { dir, release: () => lock.release() };
}

/** Records a sandbox in its own folder: so nothing is recorded of one that is gone. */
export async function writeState(record: SandboxRecord): Promise<void> {
  await writeFile(stateFile(record.handle.dir), JSON.stringify(record, undefined, 2), { mode: 0o600 });
}

/** Lets a sandbox run on when this process ends, recorded in its own folder; stops it where that fails. */
export async function letRunOn(sandbox: Sandbox): Promise<void> {
  try {
    // Recorded first, let go afterwards: at no time does one run that is neither watched nor known.
    await writeState({ handle: sandbox.handle, processes: sandbox.processes });
    await sandbox.detach();
  } catch (error) {
    await sandbox.stop();
    throw error;
  }
}

export async function readState(dir: string): Promise<SandboxState> {
  if ((await readdir(dir).catch(() => undefined)) === undefined) return { kind: 'absent' };
  let record: SandboxRecord;
  try {
    record = JSON.parse(await readFile(stateFile(dir), 'utf8')) as SandboxRecord;
  } catch {
    return { kind: 'stale' };
  }
  const processes = Object.entries(record.processes);
  const ended = processes.filter(([, process_]) => !isRunning(process_)).map(([name]) => name);
  if (ended.length === processes.length) return { kind: 'stale' };
  return ended.length > 0 ? { kind: 'broken', record, ended } : { kind: 'running', record };
}

/** Ends what still runs of a sandbox and removes its folder. */
export async function removeState(dir: string, state: SandboxState): Promise<void> {
  if ('record' in state) {
    const { etcd, ...others } = state.record.processes;
    await Promise.all(Object.values(others).map(endProcess));
    if (etcd !== undefined) await endProcess(etcd);
  }
  await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

/** SIGTERM, and SIGKILL after 5 s; the process is not a child of this one, so its end is asked for. */
async function endProcess(target: ProcessIdentity): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isRunning(target)) return;
    process.kill(target.pid, signal);
    const ended = (): true | undefined => !isRunning(target) || undefined;
    await waitFor(`process ${target.pid} to end`, ended, { timeoutMilliseconds: 5_000 }).catch(
      () => undefined,
    );
  }
  if (isRunning(target)) throw new Error(`Process ${target.pid} does not end; end it by hand and try again.`);
}

/** The folder of the sandboxes that run in the background. */
export function sandboxRoot(): string {
  return join(repoFolder(), '.sandbox');
}

function stateFile(dir: string): string {
  return join(dir, 'state.json');
}

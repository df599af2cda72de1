import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { rmSync } from 'node:fs';
import { identify, isRunning, type ProcessIdentity } from './process.js';
import { onInterrupt } from './watchdog.js';

/** Holder of a lock. */
export interface LockHolder extends ProcessIdentity {
  readonly id: string;
}

/** A lock this process holds. */
export interface Lock {
  release(): Promise<void>;
}

/**
 * Takes a lock between processes: a file that names its holder. A holder that has ended holds nothing.
 *
 * @returns the lock, or its holder if that is another live one
 */
export async function tryLock(path: string): Promise<Lock | LockHolder> {
  const mine: LockHolder = { ...identify(process.pid), id: randomUUID() };
  const draft = `${path}.${mine.id}`;
  // Linked into place with its content, so that no reader ever sees a lock without a holder.
  await writeFile(draft, JSON.stringify(mine));
  try {
    for (;;) {
      if (await linked(draft, path)) return heldLock(path);
      const holder = await readHolder(path);
      if (holder !== undefined && isRunning(holder)) return holder;
      if (holder !== undefined) await removeStale(path, holder);
    }
  } finally {
    await rm(draft, { force: true });
  }
}

/** Takes the lock, waiting while another holds it; `onWait` is called once per holder waited for. */
export async function waitForLock(path: string, onWait: (holder: LockHolder) => void): Promise<Lock> {
  let reported: string | undefined;
  for (;;) {
    const result = await tryLock(path);
    if ('release' in result) return result;
    if (reported !== result.id) onWait(result);
    reported = result.id;
    await delay(250);
  }
}

function heldLock(path: string): Lock {
  const takeBack = onInterrupt(() => {
    rmSync(path, { force: true });
  });
  return {
    release: async () => {
      takeBack();
      await rm(path, { force: true });
    },
  };
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function readHolder(path: string): Promise<LockHolder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as LockHolder;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`The lock ${path} cannot be read; remove it and try again.`, { cause: error });
  }
}

/** Moves a stale lock aside; only one process can. If a live lock came in between, it is put back. */
async function removeStale(path: string, stale: LockHolder): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const moved = await readHolder(aside);
  if (moved?.id !== stale.id) await linked(aside, path);
  await rm(aside, { force: true });
}

import { setTimeout as delay } from 'node:timers/promises';
import type { ManagedProcess } from './process.js';

/** Time to wait, and processes that the wait depends on. */
export interface WaitOptions {
  readonly timeoutMilliseconds: number;
  /** @default 50 */
  readonly intervalMilliseconds?: number;
  /**
   * Processes without which waiting has no use: when one ends early, so does the wait.
   *
   * @default - none
   */
  readonly processes?: readonly ManagedProcess[];
  /** @default - none */
  readonly signal?: AbortSignal;
}

/**
 * Asks `probe` again and again until it gives something other than `undefined`. A probe that throws counts as
 * "not yet".
 *
 * @param what completes the sentence "Timed out waiting for ..."
 */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
  options: WaitOptions,
): Promise<T> {
  const { timeoutMilliseconds, intervalMilliseconds = 50, processes = [], signal } = options;
  const deadline = Date.now() + timeoutMilliseconds;
  for (;;) {
    let cause: unknown;
    try {
      // A probe may hang, on a port that something else has taken; the end of a process is seen at once.
      const result = await Promise.race([
        probe(),
        ...processes.map(({ ended }) => ended.then(() => undefined)),
      ]);
      if (result !== undefined) return result;
    } catch (error) {
      cause = error;
    }
    for (const { failure } of processes) if (failure !== undefined) throw failure;
    if (Date.now() > deadline) {
      const logs = processes.map((process_) => `\n${process_.name}: ${process_.logTail()}`);
      const seconds = timeoutMilliseconds / 1_000;
      throw new Error(`Timed out waiting for ${what}, after ${seconds} s.${logs.join('')}`, { cause });
    }
    await delay(intervalMilliseconds, undefined, { signal });
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { formatDuration, logToStderr, showProgress } from '../progress.js';
import type { Controller } from './controller.js';
import { StepFailure } from './failure.js';

/** What a look at the cluster has given: what was looked for, or what there is instead. */
export type Observation<T> = { readonly found: T } | { readonly seen: string };

export interface UntilOptions {
  /** How long to look. */
  readonly deadlineMilliseconds: number;
  /** Without which waiting is in vain. @default - none */
  readonly controller?: Controller;
  readonly signal: AbortSignal;
}

/** Milliseconds between two looks. */
const interval = 100;

/**
 * Looks again and again until there is what was looked for. A look that fails counts as "not yet".
 *
 * @param expected completes the sentence "Expected ..."
 * **Errors**: StepFailure at the deadline, or once the controller has ended; an AbortError.
 */
export async function until<T>(
  expected: string,
  look: () => Promise<Observation<T>> | Observation<T>,
  { deadlineMilliseconds, controller, signal }: UntilOptions,
): Promise<T> {
  const started = Date.now();
  const progress = showProgress(
    () => `  waiting for ${expected}: ${formatDuration(Date.now() - started)}`,
    logToStderr,
  );
  try {
    for (;;) {
      const observation = await attempt(look);
      if ('found' in observation) return observation.found;
      signal.throwIfAborted();
      if (controller?.outcome !== undefined) {
        throw new StepFailure(expected, `the controller has ended (${controller.outcome})`);
      }
      if (Date.now() - started > deadlineMilliseconds) {
        const patience = formatDuration(deadlineMilliseconds);
        throw new StepFailure(`${expected}, within ${patience}`, observation.seen);
      }
      await delay(interval, undefined, { signal });
    }
  } finally {
    progress.stop();
  }
}

async function attempt<T>(look: () => Promise<Observation<T>> | Observation<T>): Promise<Observation<T>> {
  try {
    return await look();
  } catch (error) {
    return { seen: error instanceof Error ? error.message : String(error) };
  }
}

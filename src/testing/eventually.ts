import { setTimeout as delay } from 'node:timers/promises';

/** How long, and how often, something is tried. */
export interface EventuallyOptions {
  /** @default 60000 */
  readonly deadlineMilliseconds?: number;
  /** @default 30 */
  readonly intervalMilliseconds?: number;
}

/**
 * Tries a probe again and again until it doesn't throw, and returns what it returned.
 *
 * **Errors**: what the probe threw last, once the deadline has passed.
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { deadlineMilliseconds = 60_000, intervalMilliseconds = 30 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = Date.now() + deadlineMilliseconds;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (Date.now() > deadline) throw inVain(error, deadlineMilliseconds);
    }
    await delay(intervalMilliseconds);
  }
}

/** The error itself, since a failed assertion carries more than its message: the difference that is shown. */
function inVain(error: unknown, milliseconds: number): unknown {
  if (error instanceof Error) error.message = `Still so after ${milliseconds / 1000} s: ${error.message}`;
  return error;
}

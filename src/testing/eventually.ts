import { setTimeout as delay } from 'node:timers/promises';

/** Limits of a wait. */
export interface EventuallyOptions {
  /** @default 60000 */
  readonly deadlineMilliseconds?: number;
  /** @default 30 */
  readonly intervalMilliseconds?: number;
}

/** Tries a probe until it doesn't throw, and returns what it returned. @throws its last error, once the deadline has passed */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { deadlineMilliseconds = 60_000, intervalMilliseconds = 30 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = Date.now() + deadlineMilliseconds;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (Date.now() > deadline) {
        // The error itself, since a failed assertion carries more than its message: the difference that is shown.
        if (error instanceof Error)
          error.message = `Still so after ${Number((deadlineMilliseconds / 1000).toPrecision(2))} s: ${error.message}`;
        throw error;
      }
    }
    await delay(intervalMilliseconds);
  }
}

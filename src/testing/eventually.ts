import { poll } from '../client/clock.js';

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
  { deadlineMilliseconds: deadline = 60_000, intervalMilliseconds: interval = 30 }: EventuallyOptions = {},
): Promise<T> {
  let failure: unknown;
  const attempt = async (): Promise<{ readonly value: T } | undefined> => {
    try {
      return { value: await probe() };
    } catch (error) {
      failure = error;
      return undefined;
    }
  };
  const found = await poll(attempt, { interval, deadline });
  if (found) return found.value;
  // The error itself, since a failed assertion carries more than its message: the difference that is shown.
  if (failure instanceof Error)
    failure.message = `Still so after ${Number((deadline / 1000).toPrecision(2))} s: ${failure.message}`;
  throw failure;
}

/** Time, as everything in the engine sees it: tests put their own in its place. */
export interface Clock {
  /** Wall time, milliseconds since the epoch: for what is shown or compared with other clocks, as anybody may set it. */
  now(): number;
  /** Milliseconds since some moment, for durations: nobody sets it, and it goes on while the process is stopped. */
  monotonic(): number;
  /** Calls back once after `delayMilliseconds`; the timer alone doesn't keep the process alive. */
  setTimer(delayMilliseconds: number, callback: () => void): Timer;
}

export interface Timer {
  /** Does nothing once the timer has fired. */
  cancel(): void;
}

/** Node fires longer ones at once. */
const LONGEST_TIMER_MILLISECONDS = 2 ** 31 - 1;

/** The machine's own clock. Timers of more than 24 days fire after 24 days. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delayMilliseconds, callback) {
    const timer = setTimeout(callback, Math.min(delayMilliseconds, LONGEST_TIMER_MILLISECONDS));
    timer.unref();
    return {
      cancel: () => {
        clearTimeout(timer);
      },
    };
  },
};

/** Resolves after the delay, or as soon as the signal aborts. */
export async function sleep(clock: Clock, delayMilliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const wake = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(delayMilliseconds, wake);
    signal.addEventListener('abort', wake);
  });
}

/** A moment on both clocks. */
export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function instant(clock: Clock): Instant {
  return { wall: clock.now(), monotonic: clock.monotonic() };
}

/**
 * Milliseconds that have passed, by the clock that says more: the wall clock may have been set back, the monotonic
 * one stands still while the machine is suspended.
 */
export function elapsed(clock: Clock, since: Instant): number {
  return Math.max(clock.now() - since.wall, clock.monotonic() - since.monotonic);
}

/** Resolves when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}

/** What the work comes to; where the signal aborts first, its reason is thrown, and the work goes on unheeded. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => {
    reject(signal.reason as Error);
  };
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

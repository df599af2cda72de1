/** Time by which clocks usually differ at most; beyond it the API server's counts. */
export const TOLERATED_SKEW_MILLISECONDS = 30_000;

/** Time, as everything in the engine sees it: tests put their own in its place. */
export interface Clock {
  /** Wall time, milliseconds since the epoch: for what is shown or compared with other clocks, as anybody may set it. */
  now(): number;
  /** Milliseconds since some moment, for durations: it can't be set, and goes on while the process is stopped. */
  monotonic(): number;
  /** Calls back once after `delayMilliseconds`; the timer alone doesn't keep the process alive. */
  setTimer(delayMilliseconds: number, callback: () => void): Timer;
}

export interface Timer {
  /** Does nothing once the timer has fired. */
  readonly cancel: () => void;
}

/** Maximum time of a timer: Node fires longer ones at once. */
const MAX_TIMER_MILLISECONDS = 2 ** 31 - 1;

function machineClock(keepsAlive: boolean): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    setTimer(delayMilliseconds, callback) {
      const timer = setTimeout(callback, Math.min(delayMilliseconds, MAX_TIMER_MILLISECONDS));
      if (!keepsAlive) timer.unref();
      return { cancel: clearTimeout.bind(undefined, timer) };
    },
  };
}

/** The machine's own clock. Timers of more than 24 days fire after 24 days. */
export const systemClock = machineClock(false);
/** The machine's own clock for commands that wait: its timers keep the process alive. */
export const patientClock = machineClock(true);

/** Resolves after the delay, or as soon as the signal aborts. */
export async function sleep(clock: Clock, delayMilliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.setTimer(delayMilliseconds, () => {
    resolve(undefined);
  });
  await unlessAborted(promise, signal).catch(() => undefined);
  timer.cancel();
}

/** Pace and end of a wait, in milliseconds. */
export interface Wait {
  readonly interval: number;
  readonly deadline: number;
}

/** Calls a probe again and again until it returns something; undefined once the deadline has passed. */
export async function poll<T>(
  probe: () => Promise<T | undefined> | T | undefined,
  { interval, deadline }: Wait,
  clock: Clock = patientClock,
): Promise<T | undefined> {
  const end = clock.monotonic() + deadline;
  for (;;) {
    const found = await probe();
    if (found !== undefined || clock.monotonic() > end) return found;
    await sleep(clock, interval);
  }
}

/** Resolves when the signal aborts. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await unlessAborted(new Promise<never>(() => undefined), signal).catch(() => undefined);
}

/** Returns what the work comes to; where the signal aborts first, its reason is thrown, and the work goes on unheeded. */
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

/**
 * Returns what the work comes to.
 * @param work takes the signal that ends it
 * @throws once the time is over or the outer signal aborts, whatever becomes of the work
 */
export async function within<T>(
  clock: Clock,
  milliseconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = clock.setTimer(milliseconds, () => {
    late.abort(new Error(`no answer within ${Number((milliseconds / 1000).toFixed(1))} s`));
  });
  const signal = AbortSignal.any([outer, late.signal]);
  try {
    return await unlessAborted(work(signal), signal);
  } finally {
    timer.cancel();
  }
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

/**
 * Clock of the API server, by the `Date` header of its last answer.
 *
 * @remarks
 * Kept against the monotonic clock, so that a step of the wall clock changes nothing: the skew follows it at once. While
 * the machine is suspended the monotonic clock may stand still; until the next answer, times are then late, never early.
 * The server sends whole seconds, so the skew is up to a second too little, and less by what an answer takes.
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-date
 */
export class ServerTime {
  /** Time of the server less that of the monotonic clock. */
  private offset: number | undefined;

  constructor(private readonly clock: Clock) {}

  /** Milliseconds that the server is ahead of the wall clock. @defaultValue undefined: no answer has given a date yet */
  get skewMilliseconds(): number | undefined {
    if (this.offset === undefined) return undefined;
    return Math.round(this.offset + this.clock.monotonic() - this.clock.now());
  }

  /** Takes a time of the wall clock to the clock that counts: the server's where they differ by more than is tolerated. */
  corrected(wallMilliseconds: number): Date {
    const { skewMilliseconds: skew = 0 } = this;
    return new Date(wallMilliseconds + (Math.abs(skew) > TOLERATED_SKEW_MILLISECONDS ? skew : 0));
  }

  /** Returns a time of the monotonic clock by the clock that counts. */
  at(monotonicMilliseconds: number): Date {
    const { clock } = this;
    return this.corrected(Math.round(clock.now() - clock.monotonic() + monotonicMilliseconds));
  }

  /** Learns from an answer that has just come. */
  answered({ dateMilliseconds }: { readonly dateMilliseconds?: number }): void {
    if (dateMilliseconds !== undefined) this.offset = dateMilliseconds - this.clock.monotonic();
  }
}

import type { Check } from './checks.js';

const BEAT_MILLISECONDS = 10_000;
const LIMIT_MILLISECONDS = 30_000;

/** As much of a clock as is needed here. */
export interface Timers {
  /** Calls back once; the timer alone must not keep the process alive. */
  setTimer(delayMilliseconds: number, callback: () => void): { cancel(): void };
}

/**
 * Fails when timers no longer fire although requests are still answered: renewals, retries and silence limits would
 * all be dead then, behind an endpoint that looks alive.
 *
 * **Caveats.** An event loop that is blocked altogether can't report itself: the probe's own timeout finds that.
 * @param now monotonic, milliseconds: the wall clock may be set
 */
export function eventLoopCheck(timers: Timers, now: () => number = () => performance.now()): Check {
  let beatAt = now();
  const beat = (): void => {
    beatAt = now();
    timers.setTimer(BEAT_MILLISECONDS, beat);
  };
  beat();
  return {
    name: 'event-loop',
    check: () => {
      const late = now() - beatAt - BEAT_MILLISECONDS;
      if (late <= LIMIT_MILLISECONDS) return undefined;
      return `a timer is ${String(Math.round(late / 1000))} s late`;
    },
  };
}

import type { Check } from './checks.js';

const BEAT_MILLISECONDS = 10_000;
const LIMIT_MILLISECONDS = 30_000;

/** Calls back once; the timer alone must not keep the process alive. */
export type SetTimer = (delayMilliseconds: number, callback: () => void) => { cancel(): void };

export interface EventLoopCheckProps {
  readonly setTimer: SetTimer;
  /** Monotonic, milliseconds: the wall clock may be set. @default performance.now */
  readonly now?: () => number;
}

/**
 * Fails when timers no longer fire although requests are still answered: renewals, retries and silence limits would
 * all be dead then, behind an endpoint that looks alive.
 *
 * **Caveats.** An event loop that is blocked altogether can't report itself: the probe's own timeout finds that.
 */
export function eventLoopCheck({ setTimer, now = () => performance.now() }: EventLoopCheckProps): Check {
  let beatAt = now();
  const beat = (): void => {
    beatAt = now();
    setTimer(BEAT_MILLISECONDS, beat);
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

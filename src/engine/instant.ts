import type { Clock } from './clock.js';

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

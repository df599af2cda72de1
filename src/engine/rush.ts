import type { Clock } from './clock.js';

/** Keys within a second that are a rush: far more than people change, far fewer than a rollout of everything. */
const SIZE = 32;
const WINDOW_MILLISECONDS = 1_000;

/** A Deployment that rolls changes its status many times a second; each costs a write of ours at worst. */
const STATUS_DELAY_MILLISECONDS = 100;
/** Statuses would be in the way of what is to be made, and are fewer when they are written later. */
const STATUS_DELAY_IN_A_RUSH_MILLISECONDS = 1_000;

/** Whether more is asked for than usual, and so how long a status alone may wait. */
export class Rush {
  /** When the last keys were counted last, by the monotonic clock, in that order. */
  private readonly times = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** Something is to be made or put right. One key that changes all the time is no rush. */
  count(key: string): void {
    this.times.delete(key);
    this.times.set(key, this.clock.monotonic());
    const [oldest] = this.times.keys();
    if (this.times.size > SIZE && oldest !== undefined) this.times.delete(oldest);
  }

  get isOn(): boolean {
    if (this.times.size < SIZE) return false;
    const [oldest = -Infinity] = this.times.values();
    return this.clock.monotonic() - oldest < WINDOW_MILLISECONDS;
  }

  get statusDelayMilliseconds(): number {
    return this.isOn ? STATUS_DELAY_IN_A_RUSH_MILLISECONDS : STATUS_DELAY_MILLISECONDS;
  }
}

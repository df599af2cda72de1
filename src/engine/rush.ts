import type { Clock } from './clock.js';

/** Changes within a second that are a rush: far more than people make, far fewer than a rollout of everything. */
const SIZE = 32;
const WINDOW_MILLISECONDS = 1_000;

/** A Deployment that rolls changes its status many times a second; each costs a write of ours at worst. */
const STATUS_DELAY_MILLISECONDS = 100;
/** Statuses would be in the way of what is to be made, and are fewer when they are written later. */
const STATUS_DELAY_IN_A_RUSH_MILLISECONDS = 1_000;

/** Whether more is asked for than usual, and so how long a status alone may wait. */
export class Rush {
  /** When the last changes came, by the monotonic clock; a ring. */
  private readonly times = new Array<number>(SIZE).fill(-Infinity);
  private oldest = 0;

  constructor(private readonly clock: Clock) {}

  /** Something is to be made or put right. */
  count(): void {
    this.times[this.oldest] = this.clock.monotonic();
    this.oldest = (this.oldest + 1) % SIZE;
  }

  get isOn(): boolean {
    return this.clock.monotonic() - (this.times[this.oldest] ?? -Infinity) < WINDOW_MILLISECONDS;
  }

  get statusDelayMilliseconds(): number {
    return this.isOn ? STATUS_DELAY_IN_A_RUSH_MILLISECONDS : STATUS_DELAY_MILLISECONDS;
  }
}

import type { Clock } from './clock.js';

/** Paces what is done to so many a second; a second's worth that wasn't used may be made up for at once. */
export class TokenBucket {
  private tokens: number | undefined;
  private at = 0;

  constructor(private readonly clock: Clock) {}

  /** Takes one, and says in how many milliseconds it may be used; 0 at once. */
  take(perSecond: number): number {
    this.fill(perSecond);
    this.tokens = (this.tokens ?? 0) - 1;
    return Math.max(0, (-this.tokens / perSecond) * 1000);
  }

  /** In how many milliseconds the next could be used. */
  wait(perSecond: number): number {
    this.fill(perSecond);
    return Math.max(0, ((1 - (this.tokens ?? 0)) / perSecond) * 1000);
  }

  private fill(perSecond: number): void {
    const now = this.clock.monotonic();
    const most = Math.max(1, perSecond);
    const grown = (this.tokens ?? most) + ((now - this.at) / 1000) * perSecond;
    this.tokens = Math.min(most, grown);
    this.at = now;
  }
}

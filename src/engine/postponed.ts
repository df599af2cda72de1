import type { Clock } from './clock.js';

/**
 * Since when statuses have been left for later.
 *
 * **Guarantees.** However often a key is taken meanwhile for other reasons, what it may still wait is counted from the
 * first time that its status was left.
 */
export class Postponed {
  private readonly since = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  /** The status of the key is left. Returns for how much longer it may be, in milliseconds. */
  left(key: string, longestMilliseconds: number): number {
    const now = this.clock.monotonic();
    const since = this.since.get(key) ?? now;
    this.since.set(key, since);
    return Math.max(0, since + longestMilliseconds - now);
  }

  /** It was written, or nothing is to be written any more. */
  written(key: string): void {
    this.since.delete(key);
  }

  /** Whether it has been left for so long that it may not be left once more. */
  isDue(key: string, longestMilliseconds: number): boolean {
    const since = this.since.get(key);
    return since !== undefined && this.clock.monotonic() - since >= longestMilliseconds;
  }
}

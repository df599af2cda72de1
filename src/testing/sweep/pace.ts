/** What an operator takes at most to start, where nothing else keeps the machine busy. */
const IDLE_START_MILLISECONDS = 250;
/** Four trials at a time, twice. */
const RECENT = 8;
const MOST = 5;

/**
 * How long is long enough, on the machine as it is now: a wait that runs out is told as a fault of the kind. An operator that
 * starts is the measure, since nothing of the kind is to be done yet: connections, lists and watches, all of which wait their
 * turn on a machine that is busy. A kind that keeps the process busy meanwhile gets more time too, but never without end.
 */
export class Pace {
  private readonly recent: number[] = [];

  started(milliseconds: number): void {
    this.recent.push(milliseconds);
    if (this.recent.length > RECENT) this.recent.shift();
  }

  /**
   * At most five times as much.
   * @param milliseconds that are enough where nothing else keeps the machine busy
   */
  scaled(milliseconds: number): number {
    const slowest = Math.max(...this.recent, IDLE_START_MILLISECONDS);
    return milliseconds * Math.min(MOST, slowest / IDLE_START_MILLISECONDS);
  }
}

import type { Runner } from './runner.js';

const STANDBY = 'standby';

/**
 * Lets runners work while this process leads. Otherwise they are on warm standby: stores are kept up to date, queues
 * fill and are held.
 *
 * **Guarantees.** A change of leadership loses no key: what was in work is put back, what happened meanwhile has come
 * by the watches. What was begun in one term is over before the next one's work begins.
 */
export class Leadership {
  private term = 0;
  private interrupted: Promise<unknown> = Promise.resolve();

  constructor(private readonly runners: readonly Runner[]) {
    for (const { queue } of runners) queue.hold(STANDBY);
  }

  gained(): void {
    const term = ++this.term;
    void this.interrupted.then(() => {
      if (term === this.term) for (const { queue } of this.runners) queue.release(STANDBY);
    });
  }

  lost(): void {
    this.term++;
    for (const { queue } of this.runners) queue.hold(STANDBY);
    this.interrupted = Promise.all(this.runners.map((runner) => runner.interrupt()));
  }
}

import type { Runner } from './runner.js';

const STANDBY = 'standby';

/** A runner, and the watches that its work is founded on. */
export interface Candidate {
  readonly runner: Pick<Runner, 'queue' | 'interrupt'>;
  readonly watches: readonly {
    /** Resolves once what is known is as new as the API server was at that moment, or when the signal aborts. */
    presentSince: (moment: number, signal: AbortSignal) => Promise<void>;
  }[];
}

/**
 * Lets runners work while this process leads. Otherwise they are on warm standby: stores are kept up to date, queues
 * fill and are held.
 *
 * **Guarantees.** A change of leadership loses no key: what was in work is put back, what happened meanwhile has come
 * by the watches. What was begun in one term is over before the next one's work begins. Nothing is done on a view that
 * is older than what another leader may have acted on, nor on one from before the server went back to an older state.
 *
 * **Caveats.** A runner waits for as long as one of its types can't be listed.
 */
export class Leadership {
  private term: AbortController | undefined;
  private interrupted: Promise<unknown> = Promise.resolve();

  constructor(private readonly candidates: readonly Candidate[]) {
    for (const { runner } of candidates) runner.queue.hold(STANDBY);
  }

  /** @param aloneSince since when, by the monotonic clock, no other process can have written */
  gained(aloneSince: number): void {
    this.term?.abort();
    const { signal } = (this.term = new AbortController());
    for (const candidate of this.candidates) void this.admit(candidate, aloneSince, signal);
  }

  /** A list shows that the server went back to an older state: work goes on as in a new term, once all is listed. */
  wentBack(now: number): void {
    if (!this.term) return;
    this.lost();
    this.gained(now);
  }

  lost(): void {
    this.term?.abort();
    this.term = undefined;
    for (const { runner } of this.candidates) runner.queue.hold(STANDBY);
    this.interrupted = Promise.all(this.candidates.map(({ runner }) => runner.interrupt()));
  }

  private async admit(
    { runner, watches }: Candidate,
    aloneSince: number,
    signal: AbortSignal,
  ): Promise<void> {
    const present = watches.map((watch) => watch.presentSince(aloneSince, signal));
    await Promise.all([this.interrupted, ...present]);
    if (!signal.aborted) runner.queue.release(STANDBY);
  }
}

/** Somebody who needs a list that was asked for at a certain moment or later, by the monotonic clock. */
interface Demand {
  readonly since: number;
  readonly met: () => void;
}

/**
 * When a reflector's last list was asked for, and who needs a later one.
 *
 * A list says that the API server, and not merely its cache or a connection that may have gone silent, was at least
 * that new. Versions can't tell: those of an idle type are behind until the next bookmark, although nothing is missing.
 */
export class PresentList {
  private readonly demands = new Set<Demand>();
  private turn = new AbortController();
  private askedAt = -Infinity;
  /** When the one under way was asked for. */
  private asking = -Infinity;

  /** Whether somebody waits for a list. */
  get isDemanded(): boolean {
    return this.demands.size > 0;
  }

  /** Resolves once there is a list that was asked for at that moment or later, or as soon as the signal aborts. */
  async since(moment: number, signal: AbortSignal): Promise<void> {
    if (this.askedAt >= moment || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const met = (): void => {
        this.demands.delete(demand);
        signal.removeEventListener('abort', met);
        resolve();
      };
      const demand = { since: moment, met };
      this.demands.add(demand);
      signal.addEventListener('abort', met);
      if (this.asking < moment) this.turn.abort();
    });
  }

  /** Does something that is broken off when the outer signal aborts, or when another list is needed. */
  async interruptible(outer: AbortSignal, act: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const turn = (this.turn = new AbortController());
    const abort = (): void => {
      turn.abort();
    };
    outer.addEventListener('abort', abort);
    if (outer.aborted) abort();
    try {
      await act(turn.signal);
    } finally {
      outer.removeEventListener('abort', abort);
      this.asking = -Infinity;
    }
  }

  /** A list is asked for now. */
  ask(now: number): void {
    this.asking = now;
  }

  /** The one that was asked for is complete, or there can't be any. */
  complete(): void {
    this.askedAt = this.asking;
    for (const { since, met } of this.demands) if (this.askedAt >= since) met();
  }
}

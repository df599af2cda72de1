interface Waiter {
  /** Nobody could call it off, so it doesn't wait for a server that is out of reach. */
  readonly impatient: boolean;
  readonly admit: () => void;
  readonly refuse: (error: Error) => void;
}

/** Those who wait are let in by the order in which they came; whoever is called off leaves nothing behind. */
export class WaitingLine {
  private readonly waiters = new Set<Waiter>();

  get length(): number {
    return this.waiters.size;
  }

  /** Resolves when it is their turn; rejects when they are refused, or with the reason of the signal. */
  async wait(impatient: boolean, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.waiters.delete(waiter);
        signal?.removeEventListener('abort', calledOff);
      };
      const calledOff = (): void => {
        waiter.refuse(signal?.reason as Error);
      };
      const waiter: Waiter = {
        impatient,
        admit: () => {
          leave();
          resolve();
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      this.waiters.add(waiter);
      signal?.addEventListener('abort', calledOff);
    });
  }

  /** Lets the first one in, if there is one. */
  admitFirst(): void {
    for (const waiter of this.waiters) {
      waiter.admit();
      return;
    }
  }

  refuseImpatient(error: Error): void {
    for (const waiter of this.waiters) if (waiter.impatient) waiter.refuse(error);
  }

  refuseAll(error: Error): void {
    for (const waiter of this.waiters) waiter.refuse(error);
  }
}

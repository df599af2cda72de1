import type { Clock, Timer } from './clock.js';

/** The server sends a bookmark about every minute, so more than this without a byte means that nothing will come. */
export const SILENCE_LIMIT_MILLISECONDS = 75_000;

/**
 * Aborts a stream when nothing has been heard for too long since it was answered, or when the outer signal does.
 *
 * **Assumptions.** The transport bounds how long it waits for an answer. What goes before has no bound, since a request
 * may be held back for as long as the server is out of reach, which says nothing about the stream.
 */
export class SilenceLimit {
  /** Nothing was heard for too long. */
  expired = false;
  /** When a byte came last, if any has, by the monotonic clock. */
  heardAt: number | undefined;
  private startedAt = 0;
  private readonly controller = new AbortController();
  private readonly forward = (): void => {
    this.controller.abort();
  };
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly outer: AbortSignal,
  ) {
    outer.addEventListener('abort', this.forward);
    if (outer.aborted) this.controller.abort();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** There is an answer: from now on, silence counts. */
  begin(): void {
    this.startedAt = this.clock.monotonic();
    this.timer = this.start(SILENCE_LIMIT_MILLISECONDS);
  }

  /** Passes chunks on; each one starts the time anew. */
  async *heard(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.heardAt = this.clock.monotonic();
      yield chunk;
    }
  }

  /** Closes the stream, which whoever stops reading early leaves open. */
  end(): void {
    this.timer?.cancel();
    this.outer.removeEventListener('abort', this.forward);
    this.controller.abort();
  }

  private start(delayMilliseconds: number): Timer {
    return this.clock.setTimer(delayMilliseconds, () => {
      // A timer of its own for every chunk would cost more than asking now and then.
      const left = (this.heardAt ?? this.startedAt) + SILENCE_LIMIT_MILLISECONDS - this.clock.monotonic();
      if (left > 0) {
        this.timer = this.start(left);
        return;
      }
      this.expired = true;
      this.controller.abort();
    });
  }
}

import type { Clock, Timer } from './clock.js';

/** The server sends a bookmark about every minute, so more than this without a byte means that nothing will come. */
export const SILENCE_LIMIT_MILLISECONDS = 75_000;

/** Aborts a stream when nothing has been heard for too long, or when the outer signal does. */
export class SilenceLimit {
  /** Nothing was heard for too long. */
  expired = false;
  private readonly controller = new AbortController();
  private readonly forward = (): void => {
    this.controller.abort();
  };
  private timer: Timer;

  constructor(
    private readonly clock: Clock,
    private readonly outer: AbortSignal,
  ) {
    outer.addEventListener('abort', this.forward);
    if (outer.aborted) this.controller.abort();
    this.timer = this.start();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Passes chunks on; each one starts the time anew. */
  async *heard(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.timer.cancel();
      this.timer = this.start();
      yield chunk;
    }
  }

  /** Closes the stream, which whoever stops reading early leaves open. */
  end(): void {
    this.timer.cancel();
    this.outer.removeEventListener('abort', this.forward);
    this.controller.abort();
  }

  private start(): Timer {
    return this.clock.setTimer(SILENCE_LIMIT_MILLISECONDS, () => {
      this.expired = true;
      this.controller.abort();
    });
  }
}

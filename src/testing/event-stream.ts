import { LineSplitter } from './watch-line.js';
import type { WatchLine } from './watch-line.js';

/** What happens to an event of a watch: it passes, is lost, comes twice, or comes late by so many milliseconds. */
export type EventFault = (line: WatchLine) => 'pass' | 'lose' | 'double' | number;

const NEWLINE = Buffer.from('\n');

/** The lines of a watch on their way to the engine. None overtakes another: what follows a late one is as late. */
export class EventStream implements AsyncIterable<Uint8Array> {
  private readonly splitter = new LineSplitter();
  private readonly ready: Buffer[] = [];
  private ended: { readonly error?: unknown } | undefined;
  private wake: (() => void) | undefined;
  /** What is on its way, in order; due in milliseconds since the epoch, or as soon as what is before it. */
  private readonly waiting: { readonly due: number; readonly act: () => unknown }[] = [];

  constructor(
    chunks: AsyncIterable<Uint8Array>,
    private readonly fault: EventFault,
    private readonly onEvent: (line: WatchLine) => void,
  ) {
    void this.pump(chunks);
  }

  /** Sends an event of its own, after those that are on their way. */
  inject({ bytes }: WatchLine): void {
    this.inTurn(0, () => this.ready.push(Buffer.concat([bytes, NEWLINE])));
  }

  /** Breaks it off, as a lost connection does. */
  break(error: unknown): void {
    this.ended ??= { error };
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      for (let line = this.ready.shift(); line; line = this.ready.shift()) {
        yield line;
        // What broke off in between brings nothing more.
        if (this.ended && 'error' in this.ended) throw this.ended.error;
      }
      if (this.ended) {
        if ('error' in this.ended) throw this.ended.error;
        return;
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  private async pump(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of chunks)
        for (const line of this.splitter.lines(Buffer.from(chunk))) this.take(line);
      this.inTurn(0, () => (this.ended ??= {}));
    } catch (error) {
      this.break(error);
    }
  }

  private take(line: WatchLine): void {
    this.onEvent(line);
    const verdict = this.fault(line);
    if (verdict === 'lose') return;
    const bytes = Buffer.concat([line.bytes, NEWLINE]);
    this.inTurn(typeof verdict === 'number' ? verdict : 0, () => {
      this.ready.push(bytes);
      if (verdict === 'double') this.ready.push(bytes);
    });
  }

  private inTurn(delay: number, act: () => unknown): void {
    this.waiting.push({ due: Date.now() + delay, act });
    // One that waits has a timer, and does what follows it too.
    if (this.waiting.length === 1) this.doWhatIsDue();
  }

  private doWhatIsDue(): void {
    for (let [first] = this.waiting; first; [first] = this.waiting) {
      const milliseconds = first.due - Date.now();
      if (milliseconds > 0) {
        setTimeout(() => {
          this.doWhatIsDue();
        }, milliseconds).unref();
        return;
      }
      this.waiting.shift();
      first.act();
      this.wake?.();
    }
  }
}

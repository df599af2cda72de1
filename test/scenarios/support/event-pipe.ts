import type { Exchange } from './exchange.js';
import type { EventFault } from './faults.js';
import { LineSplitter } from '../../../src/engine/watch.js';
import { WatchLine } from '../../../src/testing/watch-line.js';

const NEWLINE = Buffer.from('\n');

/**
 * The events of one watch on their way to the client. The faults are asked for each event, so that those that are
 * added later have an effect on watches that are open.
 *
 * **Caveats**: what is late is kept in memory.
 */
export class EventPipe {
  private readonly splitter = new LineSplitter();
  /** What is late, in order; the rest waits for it. */
  private readonly queue: { readonly due: number; readonly write: () => void }[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly exchange: Exchange,
    private readonly faults: () => readonly EventFault[],
    private readonly onEvent: (line: WatchLine) => void,
  ) {}

  /** Returns whether more may be written at once. */
  write(chunk: Buffer): boolean {
    let ready = true;
    for (const bytes of this.splitter.lines(chunk)) {
      const line = new WatchLine(bytes);
      this.onEvent(line);
      const verdicts = this.faults().map((fault) => fault(line));
      if (verdicts.includes('swallow')) continue;
      const delay = Math.max(0, ...verdicts.filter((verdict) => typeof verdict === 'number'));
      this.inTurn(delay, () => {
        ready = this.send(line);
      });
    }
    return ready;
  }

  /** An event of the proxy's own, after those that are on their way. */
  inject(line: WatchLine): void {
    this.inTurn(0, () => this.send(line));
  }

  end(): void {
    this.inTurn(0, () => {
      const rest = this.splitter.rest();
      if (rest.length > 0) this.exchange.write(rest);
      this.exchange.end();
    });
  }

  private send({ bytes }: WatchLine): boolean {
    return this.exchange.write(Buffer.concat([bytes, NEWLINE]));
  }

  private inTurn(delay: number, write: () => void): void {
    if (delay === 0 && this.queue.length === 0) {
      write();
      return;
    }
    const due = Math.max(Date.now() + delay, this.queue.at(-1)?.due ?? 0);
    this.queue.push({ due, write });
    if (this.queue.length === 1) this.wait();
  }

  private wait(): void {
    const next = this.queue[0];
    if (!next || this.timer) return;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        while (this.queue[0] && this.queue[0].due <= Date.now()) this.queue.shift()!.write();
        if (this.exchange.isOpen) this.wait();
      },
      Math.max(0, next.due - Date.now()),
    );
    this.timer.unref();
  }
}

import type { Clock, Timer } from '../../../src/client/clock.js';

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

/** Time that stands still until it is told to go on. */
export class VirtualClock implements Clock {
  private readonly pending = new Set<Pending>();
  private wallOffset = 0;

  constructor(private time = Date.UTC(2026, 0, 1)) {}

  now(): number {
    return this.time + this.wallOffset;
  }

  monotonic(): number {
    return this.time;
  }

  /** Somebody sets the wall clock forward, or back. */
  setWallBy(milliseconds: number): void {
    this.wallOffset += milliseconds;
  }

  /** The process is stopped for so long: time goes by, and no timer fires until it goes on. */
  stopFor(milliseconds: number): void {
    this.time += milliseconds;
  }

  setTimer(delayMilliseconds: number, callback: () => void): Timer {
    const timer = { at: this.time + Math.max(0, delayMilliseconds), callback };
    this.pending.add(timer);
    return { cancel: () => this.pending.delete(timer) };
  }

  /** Timers that have neither fired nor been cancelled. */
  get timers(): number {
    return this.pending.size;
  }

  /** Goes on by this many milliseconds; timers fire in their order, and what waits for them runs. */
  async advance(milliseconds: number): Promise<void> {
    await settled();
    const end = this.time + milliseconds;
    while (this.fireNext(end)) await settled();
    this.time = end;
  }

  /** The same for code without promises. */
  jump(milliseconds: number): void {
    const end = this.time + milliseconds;
    while (this.fireNext(end));
    this.time = end;
  }

  private fireNext(end: number): boolean {
    let next: Pending | undefined;
    for (const timer of this.pending) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
    if (!next) return false;
    this.pending.delete(next);
    this.time = Math.max(this.time, next.at);
    next.callback();
    return true;
  }
}

/** Lets every promise go on that can. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

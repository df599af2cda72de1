import { backoffDelay } from './backoff.js';
import type { Clock, Timer } from './clock.js';

/** Five milliseconds are enough for a passing conflict; five minutes are what somebody waits who mends the cause. */
const BACKOFF = { initialMilliseconds: 5, maxMilliseconds: 300_000, jitter: 1 };

export interface QueueProps {
  readonly clock: Clock;
  readonly random: () => number;
}

/** Where a key stands; one that isn't known to the queue has nothing to do. */
type Item =
  /** To be taken as soon as a worker is free. */
  | { readonly state: 'queued' }
  /** A worker has it; `again` if it was added meanwhile. */
  | { readonly state: 'processing'; readonly again: boolean };

/** When a key is taken at the latest. */
interface Planned {
  readonly at: number;
  readonly timer: Timer;
  /** The pause after a failure, and not a time that was asked for. */
  readonly backoff: boolean;
}

/**
 * The keys that have to be reconciled.
 *
 * **Guarantees.** A key is in work at most once at a time; one that is added while it is in work is taken again
 * afterwards. Any number of adds before it is taken are one. Nothing that was added is lost.
 */
export class Queue {
  private readonly items = new Map<string, Item>();
  private ready: string[] = [];
  private head = 0;
  private readonly timers = new Map<string, Planned>();
  private readonly failures = new Map<string, number>();
  private readonly waiting: ((key: string | undefined) => void)[] = [];
  private closed = false;
  private readonly holds = new Set<string>();

  constructor(private readonly props: QueueProps) {}

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.ready.length - this.head;
  }

  /** Takes the key as soon as possible. */
  add(key: string): void {
    if (this.closed) return;
    const item = this.items.get(key);
    if (item?.state === 'processing') {
      this.items.set(key, { state: 'processing', again: true });
    } else if (!item) {
      this.items.set(key, { state: 'queued' });
      this.push(key);
    }
  }

  /** Takes the key after the delay, or at the time that was set before if that is sooner. */
  addAfter(key: string, delayMilliseconds: number): void {
    this.plan(key, delayMilliseconds, false);
  }

  /**
   * Takes the key after a pause that grows with each failure in a row. Returns the pause in milliseconds.
   *
   * A key that was taken before its pause was over, since something happened, and has failed again, keeps the pause:
   * a storm of events mustn't make it longer.
   *
   * @param minimumMilliseconds what the API server has asked for
   */
  addRateLimited(key: string, minimumMilliseconds = 0): number {
    const planned = this.timers.get(key);
    if (planned?.backoff) return Math.max(0, planned.at - this.props.clock.now());
    const failures = this.failures.get(key) ?? 0;
    this.failures.set(key, failures + 1);
    const delay = Math.max(backoffDelay(BACKOFF, failures, this.props.random), minimumMilliseconds);
    this.plan(key, delay, true);
    return delay;
  }

  /** The key has succeeded: its next failure is its first, and what was planned for later is dropped. */
  forget(key: string): void {
    this.failures.delete(key);
    this.timers.get(key)?.timer.cancel();
    this.timers.delete(key);
  }

  /** The next key, as soon as there is one; undefined once the queue is closed. Call `done` when finished with it. */
  async take(): Promise<string | undefined> {
    if (this.closed) return undefined;
    const key = this.holds.size > 0 ? undefined : this.shift();
    if (key !== undefined) {
      this.items.set(key, { state: 'processing', again: false });
      return key;
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The worker has finished with the key. */
  done(key: string): void {
    const item = this.items.get(key);
    this.items.delete(key);
    if (item?.state === 'processing' && item.again) this.add(key);
  }

  /** Hands out nothing, and keeps everything, until each reason to hold it is released. */
  hold(reason: string): void {
    this.holds.add(reason);
  }

  release(reason: string): void {
    this.holds.delete(reason);
    while (this.holds.size === 0 && this.waiting.length > 0) {
      const key = this.shift();
      if (key === undefined) return;
      this.push(key);
    }
  }

  /** Hands out nothing more. */
  close(): void {
    this.closed = true;
    for (const { timer } of this.timers.values()) timer.cancel();
    this.timers.clear();
    for (const resolve of this.waiting.splice(0)) resolve(undefined);
  }

  private plan(key: string, delayMilliseconds: number, backoff: boolean): void {
    if (this.closed) return;
    const at = this.props.clock.now() + delayMilliseconds;
    const planned = this.timers.get(key);
    if (planned && planned.at <= at) return;
    planned?.timer.cancel();
    const timer = this.props.clock.setTimer(delayMilliseconds, () => {
      this.timers.delete(key);
      this.add(key);
    });
    this.timers.set(key, { at, timer, backoff });
  }

  private push(key: string): void {
    const resolve = this.holds.size > 0 ? undefined : this.waiting.shift();
    if (!resolve) {
      this.ready.push(key);
      return;
    }
    this.items.set(key, { state: 'processing', again: false });
    resolve(key);
  }

  /** Amortised constant time, which `Array.shift` isn't on long arrays. */
  private shift(): string | undefined {
    const key = this.ready[this.head];
    if (key === undefined) return undefined;
    this.head++;
    if (this.head > 1024 && this.head * 2 > this.ready.length) {
      this.ready = this.ready.slice(this.head);
      this.head = 0;
    }
    return key;
  }
}

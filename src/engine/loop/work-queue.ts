import type { Settle } from '../../contract/controller.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Clock, Timer } from '../../client/clock.js';
import { backoffDelay, LANE_SHARE, RETRY } from '../../client/retry.js';

/**
 * Reasons to reconcile a key, from the most to the least urgent.
 *
 * - `change`: a user changed the custom resource, and waits.
 * - `child`: a dependent or a referenced object has changed.
 * - `initial`: a complete list brought it, or all keys are requeued; usually nothing is to be done.
 * - `status`: only the status may be behind, or a write of the key's own plan is looked at again.
 */
export const LANES = ['change', 'child', 'initial', 'status'] as const;
export type Lane = (typeof LANES)[number];

function isMoreUrgent(lane: Lane, than: Lane): boolean {
  return LANES.indexOf(lane) < LANES.indexOf(than);
}

/** Keys of one lane that wait for a worker, in the order in which they came. */
class LaneQueue {
  /** Time at which each was added first, by the monotonic clock. */
  readonly keys = new Map<string, number>();
  /** Time at which the lane was served last, and number of keys of other lanes that were taken since. */
  lastServed = { at: 0, passedOver: 0 };
  private iterator = this.keys.keys();

  constructor(readonly lane: Lane) {}

  take(): string | undefined {
    // The same iterator each time: a new one would step over all keys that were taken before.
    let next = this.iterator.next();
    if (next.done) next = (this.iterator = this.keys.keys()).next();
    return next.value;
  }
}

type Lines = Readonly<Record<Lane, LaneQueue>>;

export interface QueueProps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Metrics;
  /** Names it in metrics. */
  readonly controller: string;
}

/** A key that a worker has. */
interface Work {
  readonly lane: Lane;
  readonly since: number;
  /** Set where it was added meanwhile. */
  again?: { lane: Lane; readonly since: number };
}

/**
 * Reason why a key is taken at a time that is known already. A key may have one of each.
 *
 * - `requeue`: the plan asked for it. Holds until a reconcile succeeds, which asks again.
 * - `backoff`: the pause after a failure. Holds until a reconcile succeeds, or the pause is over.
 * - `debounce`: changes that are gathered for a while. Taking the key for any reason serves them.
 */
type DelayKind = 'requeue' | 'backoff' | 'debounce';

interface Delayed {
  readonly at: number;
  readonly latest: number;
  readonly timer: Timer;
  readonly lane: Lane;
}

/**
 * Work queue of one controller: a key is in work at most once at a time. Its guarantees are in docs/engine.md. It is measured
 * under the names of client-go's work queue.
 */
export class Queue {
  private readonly lines = Object.fromEntries(LANES.map((lane) => [lane, new LaneQueue(lane)])) as Lines;
  private readonly laneByKey = new Map<string, LaneQueue>();
  private readonly working = new Map<string, Work>();
  private readonly delayed: Readonly<Record<DelayKind, Map<string, Delayed>>> = {
    ...{ requeue: new Map(), backoff: new Map(), debounce: new Map() },
  };
  private readonly failures = new Map<string, number>();
  private readonly workers: ((key: string | undefined) => void)[] = [];
  private readonly holds = new Set<string>();
  private releasedAt = 0;
  private closed = false;

  private readonly now: () => number;
  private readonly labels: { readonly name: string; readonly controller: string };

  constructor(private readonly props: QueueProps) {
    const { clock, metrics, controller } = props;
    this.now = clock.monotonic.bind(clock);
    const labels = (this.labels = { name: controller, controller });
    for (const counter of [metrics.queueAdds, metrics.queueRetries]) counter.inc(labels, 0);
    for (const histogram of [metrics.queueSeconds, metrics.workSeconds]) histogram.zero(labels);
    metrics.onScrape(() => {
      this.show();
    });
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.laneByKey.size;
  }

  /** Keys that wait for a worker for more than their status. */
  get urgentDepth(): number {
    return this.laneByKey.size - this.lines.status.keys.size;
  }

  depthOf(lane: Lane): number {
    return this.lines[lane].keys.size;
  }

  /** Takes the key as soon as possible; one that waits in a less urgent lane moves up. */
  add(key: string, lane: Lane = 'change'): void {
    if (this.closed) return;
    const now = this.now();
    const work = this.working.get(key);
    if (!work) {
      if (this.enqueue(key, lane, now, now)) this.props.metrics.queueAdds.inc(this.labels);
      this.handOut();
    } else if (!work.again) {
      work.again = { lane, since: now };
      this.props.metrics.queueAdds.inc(this.labels);
    } else if (isMoreUrgent(lane, work.again.lane)) work.again.lane = lane;
  }

  /** The lane from which a key in work was taken. */
  laneOf(key: string): Lane | undefined {
    return this.working.get(key)?.lane;
  }

  /** Takes a key in work once more, in the lane from which it was taken. */
  addAgain(key: string): void {
    this.add(key, this.laneOf(key));
  }

  /** Takes the key after the delay, or at the time that was asked for before if that is sooner. */
  addAfter(key: string, delayMilliseconds: number, lane: Lane = 'child'): void {
    this.scheduleSooner('requeue', key, delayMilliseconds, lane);
  }

  /** Takes the key within the delay, and once however often this is called; later calls don't push the time on. */
  addWithin(key: string, delayMilliseconds: number, lane: Lane): void {
    if (!this.isToBeTaken(key, lane)) this.scheduleSooner('debounce', key, delayMilliseconds, lane);
  }

  /** Takes the key once this hasn't been called for the quiet time, and at the latest so long after the first call. */
  addDebounced(key: string, { quietMilliseconds, longestMilliseconds }: Settle, lane: Lane): void {
    if (this.isToBeTaken(key, lane)) return;
    const now = this.now();
    const latest = Math.min(this.delayed.debounce.get(key)?.latest ?? Infinity, now + longestMilliseconds);
    this.schedule('debounce', key, Math.max(now, Math.min(now + quietMilliseconds, latest)), lane, latest);
  }

  /**
   * Takes the key after a pause that grows with each failure in a row, in the lane from which it was taken. Returns
   * the pause in milliseconds.
   *
   * A key that was taken before its pause was over, and has failed again, keeps the pause, unless more is asked for: a
   * storm of events mustn't make it longer.
   *
   * @param minimumMilliseconds what the API server has asked for
   * @param longestMilliseconds bound of the growing pause, where it is less than that of `RETRY.key`
   */
  addRateLimited(key: string, minimumMilliseconds = 0, longestMilliseconds = Infinity): number {
    const now = this.now();
    const lane = this.laneOf(key) ?? 'change';
    // Its timer may be late.
    const left = (this.delayed.backoff.get(key)?.at ?? now) - now;
    if (left > 0 && left >= minimumMilliseconds) return left;
    let pause = minimumMilliseconds;
    if (left <= 0) {
      const failures = this.failures.get(key) ?? 0;
      this.failures.set(key, failures + 1);
      const { initial, longest } = RETRY.key;
      const backoff = { initial, longest: Math.min(longest, longestMilliseconds) };
      pause = Math.max(pause, backoffDelay(backoff, failures, this.props.random));
    }
    this.schedule('backoff', key, now + pause, lane);
    return pause;
  }

  /** The key has succeeded: its next failure is its first, and the times that were asked for before are dropped. */
  forget(key: string): void {
    this.failures.delete(key);
    this.drop('backoff', key);
    this.drop('requeue', key);
  }

  /** The next key, as soon as there is one; undefined once the queue is closed. Call `done` when finished with it. */
  async take(): Promise<string | undefined> {
    if (this.closed) return undefined;
    return this.next() ?? new Promise((resolve) => this.workers.push(resolve));
  }

  /** The key may be handed out again. */
  done(key: string): void {
    const work = this.working.get(key);
    if (!work) return;
    this.working.delete(key);
    const now = this.now();
    this.props.metrics.workSeconds.observe(this.labels, (now - work.since) / 1000);
    if (!work.again || this.closed) return;
    this.enqueue(key, work.again.lane, work.again.since, now);
    this.handOut();
  }

  /** Hands out nothing until every reason is released; everything is kept. */
  hold(reason: string): void {
    this.holds.add(reason);
  }

  /** Does nothing for a reason that doesn't hold. */
  release(reason: string): void {
    if (!this.holds.delete(reason) || this.holds.size > 0) return;
    this.releasedAt = this.now();
    this.handOut();
  }

  /** Hands out nothing more. */
  close(): void {
    this.closed = true;
    for (const times of Object.values(this.delayed)) {
      for (const { timer } of times.values()) timer.cancel();
      times.clear();
    }
    for (const resolve of this.workers.splice(0)) resolve(undefined);
  }

  /** Adds a key to its lane, and reports whether it is new. */
  private enqueue(key: string, lane: Lane, since: number, now: number): boolean {
    const known = this.laneByKey.get(key);
    if (known && !isMoreUrgent(lane, known.lane)) return false;
    const line = this.lines[lane];
    if (line.keys.size === 0) line.lastServed = { at: now, passedOver: 0 };
    line.keys.set(key, known?.keys.get(key) ?? since);
    known?.keys.delete(key);
    this.laneByKey.set(key, line);
    return !known;
  }

  /** Reports whether the key is taken again as soon as possible anyway, and not in a less urgent lane. */
  isToBeTaken(key: string, lane: Lane): boolean {
    const waitsIn = this.laneByKey.get(key)?.lane ?? this.working.get(key)?.again?.lane;
    return waitsIn !== undefined && !isMoreUrgent(lane, waitsIn);
  }

  private scheduleSooner(kind: DelayKind, key: string, delayMilliseconds: number, lane: Lane): void {
    const at = this.now() + delayMilliseconds;
    const delayed = this.delayed[kind].get(key);
    if (delayed && delayed.at <= at && !isMoreUrgent(lane, delayed.lane)) return;
    this.schedule(kind, key, Math.min(at, delayed?.at ?? at), lane, delayed?.latest ?? at);
  }

  /** Replaces what was delayed for the same reason; the more urgent of both lanes holds. */
  private schedule(kind: DelayKind, key: string, at: number, lane: Lane, latest = Infinity): void {
    if (this.closed) return;
    const times = this.delayed[kind];
    const before = times.get(key);
    before?.timer.cancel();
    const urgent = before && isMoreUrgent(before.lane, lane) ? before.lane : lane;
    const timer = this.props.clock.setTimer(at - this.now(), () => {
      times.delete(key);
      this.add(key, urgent);
    });
    times.set(key, { at, latest, timer, lane: urgent });
  }

  private drop(kind: DelayKind, key: string): void {
    const times = this.delayed[kind];
    times.get(key)?.timer.cancel();
    times.delete(key);
  }

  /** Gives keys to workers that wait. */
  private handOut(): void {
    while (this.workers.length > 0) {
      const key = this.next();
      if (key === undefined) return;
      this.workers.shift()?.(key);
    }
  }

  private next(): string | undefined {
    if (this.holds.size > 0) return undefined;
    const now = this.now();
    const line = this.nextLine(now);
    const key = line?.take();
    if (!line || key === undefined) return undefined;
    const since = line.keys.get(key) ?? now;
    line.keys.delete(key);
    this.laneByKey.delete(key);
    for (const other of Object.values(this.lines)) if (other.keys.size > 0) other.lastServed.passedOver++;
    line.lastServed = { at: now, passedOver: 0 };
    this.working.set(key, { lane: line.lane, since: now });
    this.drop('debounce', key);
    // How long it was held says nothing about the workers.
    const waited = now - Math.max(since, this.releasedAt);
    this.props.metrics.queueSeconds.observe(this.labels, waited / 1000);
    return key;
  }

  /** The most urgent lane, unless a lower one has been passed over for too often or too long. */
  private nextLine(now: number): LaneQueue | undefined {
    const { size } = this.laneByKey;
    if (size === 0) return undefined;
    // Usually one lane has all keys.
    for (const lane of LANES) if (this.lines[lane].keys.size === size) return this.lines[lane];
    const waiting = Object.values(this.lines).filter(({ keys }) => keys.size > 0);
    const due = waiting.findLast(
      ({ lane, lastServed }) => lastServed.passedOver >= LANE_SHARE.passedOver[lane],
    );
    if (due) return due;
    // With workers so slow that every lane is overdue, the lanes take turns.
    const overdue = waiting.filter(({ lastServed }) => now - lastServed.at >= LANE_SHARE.longest);
    const longest = Math.min(...overdue.map(({ lastServed }) => lastServed.at));
    return overdue.findLast(({ lastServed }) => lastServed.at === longest) ?? waiting[0];
  }
  /** Shows on each scrape what is cheaper to look up than to keep up to date. */
  private show(): void {
    const { labels, lines } = this;
    const { metrics } = this.props;
    const now = this.now();
    let oldest = now;
    for (const { keys } of Object.values(lines))
      for (const since of keys.values()) oldest = Math.min(oldest, since);
    const working = Array.from(this.working.values(), ({ since }) => (now - since) / 1000);
    for (const lane of LANES) metrics.queueDepth.set({ ...labels, priority: lane }, this.depthOf(lane));
    metrics.oldestQueuedSeconds.set(labels, (now - oldest) / 1000);
    metrics.unfinishedWorkSeconds.set(
      labels,
      working.reduce((sum, each) => sum + each, 0),
    );
    metrics.longestRunningSeconds.set(labels, Math.max(0, ...working));
  }
}

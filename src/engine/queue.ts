import type { Settle } from '../contract/controller.js';
import { backoffDelay } from './backoff.js';
import type { Clock, Timer } from './clock.js';
import { isMoreUrgent, Lanes } from './lanes.js';
import type { Lane } from './lanes.js';

/** Five minutes, jitter included, are what somebody waits who mends the cause. */
const LONGEST_PAUSE_MILLISECONDS = 300_000;
/** Five milliseconds are enough for a passing conflict. */
const BACKOFF = { initialMilliseconds: 5, jitter: 1 };

export interface QueueProps {
  readonly clock: Clock;
  readonly random: () => number;
  /** @default - nobody is told */
  readonly observer?: QueueObserver;
}

/** Hears what happens to keys, to measure it. */
export interface QueueObserver {
  /** A key has to be taken that didn't have to before. */
  added(): void;
  taken(waitedMilliseconds: number): void;
  done(workedMilliseconds: number): void;
}

/** A key that a worker has. */
interface Work {
  /** The lane it was taken from. */
  readonly lane: Lane;
  readonly since: number;
  /** It was added meanwhile. */
  again?: { lane: Lane; readonly since: number };
}

/**
 * The keys that have to be reconciled.
 *
 * **Guarantees.** A key is in work at most once at a time; one that is added while it is in work is taken again
 * afterwards, once, in the most urgent lane that it was added to. Any number of adds before it is taken are one.
 * Nothing that was added is lost. More urgent lanes come first, and none is passed over for ever: see `Lanes`. A time
 * that was planned is met at the latest, or a moment later where workers are busy.
 */
export class Queue {
  private readonly lanes = new Lanes();
  private readonly working = new Map<string, Work>();
  private readonly planned: PlannedTimes;
  private readonly failures = new Map<string, number>();
  private readonly workers: ((key: string | undefined) => void)[] = [];
  private readonly holds = new Set<string>();
  private releasedAt = 0;
  private closed = false;

  constructor(private readonly props: QueueProps) {
    this.planned = new PlannedTimes(props.clock, (key, lane) => {
      this.add(key, lane);
    });
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.lanes.size;
  }

  depthOf(lane: Lane): number {
    return this.lanes.sizeOf(lane);
  }

  /** When the key that has waited for longest was added, by the monotonic clock, also while it is held back. */
  get oldestSince(): number | undefined {
    return this.lanes.oldestSince;
  }

  /** Since when each key that is in work has been so, by the monotonic clock. */
  get workingSince(): readonly number[] {
    return Array.from(this.working.values(), ({ since }) => since);
  }

  /** Takes the key as soon as possible; one that waits in a less urgent lane moves up. */
  add(key: string, lane: Lane = 'change'): void {
    if (this.closed) return;
    const now = this.props.clock.monotonic();
    const work = this.working.get(key);
    if (!work) {
      if (this.lanes.add(key, lane, now)) this.props.observer?.added();
      this.handOut();
    } else if (!work.again) {
      work.again = { lane, since: now };
      this.props.observer?.added();
    } else if (isMoreUrgent(lane, work.again.lane)) {
      work.again.lane = lane;
    }
  }

  /** The lane from which a key in work was taken. */
  laneOf(key: string): Lane | undefined {
    return this.working.get(key)?.lane;
  }

  /** Takes a key that is in work once more, in the lane from which it was taken. */
  addAgain(key: string): void {
    this.add(key, this.working.get(key)?.lane);
  }

  /** Takes the key after the delay, or at the time that was asked for before if that is sooner. */
  addAfter(key: string, delayMilliseconds: number, lane: Lane = 'child'): void {
    if (!this.closed) this.planned.atLatest('requeue', key, delayMilliseconds, lane);
  }

  /**
   * Takes the key within the delay, and once however often this is called: for what comes in swarms. Later calls
   * don't push the time on. When the key is taken for another reason, that has served.
   */
  addCoalesced(key: string, delayMilliseconds: number, lane: Lane): void {
    if (this.closed || this.isToBeTaken(key, lane)) return;
    this.planned.atLatest('coalesced', key, delayMilliseconds, lane);
  }

  /**
   * Takes the key once this hasn't been called for the quiet time, and at the latest so long after the first call. When
   * the key is taken for another reason, that has served.
   */
  addSettling(key: string, settle: Settle, lane: Lane): void {
    if (this.closed || this.isToBeTaken(key, lane)) return;
    const { quietMilliseconds, longestMilliseconds } = settle;
    this.planned.pushOn('settling', key, quietMilliseconds, longestMilliseconds, lane);
  }

  /**
   * Takes the key after a pause that grows with each failure in a row, in the lane from which it was taken. Returns
   * the pause in milliseconds.
   *
   * A key that was taken before its pause was over, since something happened, and has failed again, keeps the pause,
   * unless more is asked for: a storm of events mustn't make it longer.
   *
   * @param minimumMilliseconds what the API server, or whoever failed, has asked for
   * @param longestMilliseconds what the pause grows up to, jitter included, if that is less than five minutes
   */
  addRateLimited(
    key: string,
    minimumMilliseconds = 0,
    longestMilliseconds = LONGEST_PAUSE_MILLISECONDS,
  ): number {
    const lane = this.working.get(key)?.lane ?? 'change';
    const planned = this.planned.at('backoff', key);
    if (planned !== undefined) {
      const left = Math.max(0, planned - this.props.clock.monotonic());
      if (left >= minimumMilliseconds) return left;
      this.planIfOpen(key, minimumMilliseconds, lane);
      return minimumMilliseconds;
    }
    const failures = this.failures.get(key) ?? 0;
    this.failures.set(key, failures + 1);
    const longest = Math.min(longestMilliseconds, LONGEST_PAUSE_MILLISECONDS);
    const bounded = { ...BACKOFF, maxMilliseconds: longest / (1 + BACKOFF.jitter) };
    const delay = Math.max(backoffDelay(bounded, failures, this.props.random), minimumMilliseconds);
    this.planIfOpen(key, delay, lane);
    return delay;
  }

  /** The key has succeeded: its next failure is its first, and the times that were asked for before are dropped. */
  forget(key: string): void {
    this.failures.delete(key);
    this.planned.drop('backoff', key);
    this.planned.drop('requeue', key);
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
    const now = this.props.clock.monotonic();
    this.props.observer?.done(now - work.since);
    if (!work.again || this.closed) return;
    this.lanes.add(key, work.again.lane, now, work.again.since);
    this.handOut();
  }

  /** Hands out nothing until every reason is released; everything is kept, and is still one however often added. */
  hold(reason: string): void {
    this.holds.add(reason);
  }

  /** Does nothing for a reason that doesn't hold. */
  release(reason: string): void {
    if (!this.holds.delete(reason) || this.holds.size > 0) return;
    this.releasedAt = this.props.clock.monotonic();
    this.handOut();
  }

  /** Hands out nothing more. */
  close(): void {
    this.closed = true;
    this.planned.clear();
    for (const resolve of this.workers.splice(0)) resolve(undefined);
  }

  /** Whether it waits for a worker already, and not in a less urgent lane. */
  private isToBeTaken(key: string, lane: Lane): boolean {
    const waitsIn = this.lanes.laneOf(key) ?? this.working.get(key)?.again?.lane;
    return waitsIn !== undefined && !isMoreUrgent(lane, waitsIn);
  }

  private planIfOpen(key: string, delayMilliseconds: number, lane: Lane): void {
    if (!this.closed) this.planned.set('backoff', key, delayMilliseconds, lane);
  }

  /** Gives workers that wait what there is. */
  private handOut(): void {
    while (this.workers.length > 0) {
      const key = this.next();
      if (key === undefined) return;
      this.workers.shift()?.(key);
    }
  }

  private next(): string | undefined {
    if (this.holds.size > 0) return undefined;
    const now = this.props.clock.monotonic();
    const waiting = this.lanes.take(now);
    if (!waiting) return undefined;
    const { key, lane, since } = waiting;
    this.working.set(key, { lane, since: now });
    this.planned.drop('coalesced', key);
    this.planned.drop('settling', key);
    // How long it was held says nothing about the workers.
    this.props.observer?.taken(now - Math.max(since, this.releasedAt));
    return key;
  }
}

/**
 * Why a key is taken at a time that is known already. A key may have one of each, and none replaces another.
 *
 * - `requeue`: it was asked for. Holds until a reconcile succeeds, which asks anew.
 * - `backoff`: the pause after a failure. Holds until a reconcile succeeds, or until the pause is over.
 * - `coalesced`: something has changed that needn't be looked at this instant. Whoever takes the key sees to it.
 * - `settling`: things are changing, and may go on to. Whoever takes the key sees to it.
 */
type PlannedKind = 'requeue' | 'backoff' | 'coalesced' | 'settling';

interface Planned {
  readonly at: number;
  readonly timer: Timer;
  /** By the monotonic clock; not pushed on any further. */
  readonly latest: number;
  lane: Lane;
}

/** When keys are taken at the latest, and why. */
class PlannedTimes {
  private readonly times: Readonly<Record<PlannedKind, Map<string, Planned>>> = {
    requeue: new Map(),
    backoff: new Map(),
    coalesced: new Map(),
    settling: new Map(),
  };

  constructor(
    private readonly clock: Clock,
    private readonly due: (key: string, lane: Lane) => void,
  ) {}

  /** By the monotonic clock. */
  at(kind: PlannedKind, key: string): number | undefined {
    return this.times[kind].get(key)?.at;
  }

  /** The sooner of this time and the one that was planned for the same reason; the more urgent of the lanes. */
  atLatest(kind: PlannedKind, key: string, delayMilliseconds: number, lane: Lane): void {
    const planned = this.times[kind].get(key);
    if (!planned || planned.at > this.clock.monotonic() + delayMilliseconds) {
      const urgent = planned && isMoreUrgent(planned.lane, lane) ? planned.lane : lane;
      this.set(kind, key, delayMilliseconds, urgent);
    } else if (isMoreUrgent(lane, planned.lane)) {
      planned.lane = lane;
    }
  }

  /**
   * This time, which each call pushes on, but never beyond the longest delay after the first call; the more urgent of
   * the lanes.
   */
  pushOn(
    kind: PlannedKind,
    key: string,
    delayMilliseconds: number,
    longestMilliseconds: number,
    lane: Lane,
  ): void {
    const now = this.clock.monotonic();
    const planned = this.times[kind].get(key);
    const latest = planned?.latest ?? now + longestMilliseconds;
    const urgent = planned && isMoreUrgent(planned.lane, lane) ? planned.lane : lane;
    this.set(kind, key, Math.max(0, Math.min(delayMilliseconds, latest - now)), urgent, latest);
  }

  /** This time, instead of what was planned for the same reason. */
  set(kind: PlannedKind, key: string, delayMilliseconds: number, lane: Lane, latest = Infinity): void {
    this.drop(kind, key);
    const times = this.times[kind];
    const timer = this.clock.setTimer(delayMilliseconds, () => {
      times.delete(key);
      this.due(key, planned.lane);
    });
    const planned: Planned = { at: this.clock.monotonic() + delayMilliseconds, timer, latest, lane };
    times.set(key, planned);
  }

  drop(kind: PlannedKind, key: string): void {
    const times = this.times[kind];
    const planned = times.get(key);
    if (!planned) return;
    planned.timer.cancel();
    times.delete(key);
  }

  clear(): void {
    for (const times of Object.values(this.times)) {
      for (const { timer } of times.values()) timer.cancel();
      times.clear();
    }
  }
}

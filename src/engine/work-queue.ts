import type { Settle } from '../contract/controller.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Clock, Timer } from './clock.js';

export interface BackoffProps {
  readonly initialMilliseconds: number;
  readonly maxMilliseconds: number;
  /** The delay is stretched by a random share of itself, from none to this: 1 is up to twice as long. */
  readonly jitter: number;
}

/** `initial × 2^failures`, bounded and jittered; `failures` counts from 0. */
export function backoffDelay(props: BackoffProps, failures: number, random: () => number): number {
  // 2 ** 1024 is Infinity, which Math.min takes care of.
  const delay = Math.min(props.initialMilliseconds * 2 ** failures, props.maxMilliseconds);
  return delay * (1 + random() * props.jitter);
}

/**
 * What a key is to be reconciled for, from the most to the least urgent.
 *
 * - `change`: somebody has changed what is asked for, and waits.
 * - `child`: something that it was made into, or depends on, has changed.
 * - `initial`: a complete list has brought it, or all are looked at again; as a rule nothing is to be done.
 * - `status`: all is done for it, but what is reported of it may be behind.
 */
export const LANES = ['change', 'child', 'initial', 'status'] as const;
export type Lane = (typeof LANES)[number];

/** A lane that isn't empty is passed over this many times in a row: every eighth key is its own, or every sixteenth. */
const PASSED_OVER_LIMITS: Readonly<Record<Lane, number>> = { change: 7, child: 7, initial: 7, status: 15 };
/** Nor is it passed over for longer than this, where workers are slow. */
const PASSED_OVER_MILLISECONDS = 30_000;

/** A key that waits for a worker. */
export interface Waiting {
  readonly key: string;
  /** When it was added first, by the monotonic clock. */
  readonly since: number;
  readonly lane: Lane;
}

interface Place extends Waiting {
  lane: Lane;
  previous: Place | undefined;
  next: Place | undefined;
}

/** The keys of one lane, in the order in which they came into it. */
class Line {
  first: Place | undefined;
  size = 0;
  /** How many keys of other lanes have been taken since it was its turn. */
  passedOver = 0;
  /** Since when it has not been its turn, although it has keys. */
  unservedSince = 0;
  /** Its place among the lanes, by when it was their turn last. */
  order = 0;
  private last: Place | undefined;

  constructor(private readonly passedOverLimit: number) {}

  get isDue(): boolean {
    return this.passedOver >= this.passedOverLimit;
  }

  append(place: Place): void {
    place.previous = this.last;
    place.next = undefined;
    if (this.last) this.last.next = place;
    else this.first = place;
    this.last = place;
    this.size++;
  }

  remove({ previous, next }: Place): void {
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.last = previous;
    this.size--;
  }

  /** It has had its turn, or has got its first key. */
  startWaiting(now: number, order: number): void {
    this.passedOver = 0;
    this.unservedSince = now;
    this.order = order;
  }
}

/**
 * The keys that wait for a worker, each in one lane.
 *
 * **Guarantees.** A more urgent lane comes first, but none waits for ever: of the lanes that have keys, `status` gets
 * at least every sixteenth, `initial` at least every ninth, `child` every tenth, and none is passed over for 30 s,
 * however slow the workers are. That is a share, and no reversal: a long backlog in other lanes never keeps a change
 * waiting for more than three keys. All operations take constant time.
 */
export class Lanes {
  private readonly byLane: Readonly<Record<Lane, Line>> = {
    change: new Line(PASSED_OVER_LIMITS.change),
    child: new Line(PASSED_OVER_LIMITS.child),
    initial: new Line(PASSED_OVER_LIMITS.initial),
    status: new Line(PASSED_OVER_LIMITS.status),
  };
  private readonly lines = LANES.map((lane) => this.byLane[lane]);
  private readonly places = new Map<string, Place>();
  private turns = 0;

  get size(): number {
    return this.places.size;
  }

  /** Since when the key that has waited for longest has; takes time, so only for whoever asks now and then. */
  get oldestSince(): number | undefined {
    let oldest: number | undefined;
    for (const { since } of this.places.values()) oldest = Math.min(oldest ?? since, since);
    return oldest;
  }

  sizeOf(lane: Lane): number {
    return this.byLane[lane].size;
  }

  laneOf(key: string): Lane | undefined {
    return this.places.get(key)?.lane;
  }

  /**
   * Adds the key at the end of the lane; one that waits already stays where it is, unless the lane is more urgent
   * than its own. Returns whether it is new.
   *
   * @param since from when on it has waited
   */
  add(key: string, lane: Lane, now: number, since = now): boolean {
    const known = this.places.get(key);
    if (!known) {
      const place: Place = { key, lane, since, previous: undefined, next: undefined };
      this.places.set(key, place);
      this.append(place, now);
      return true;
    }
    if (isMoreUrgent(lane, known.lane)) {
      this.byLane[known.lane].remove(known);
      known.lane = lane;
      this.append(known, now);
    }
    return false;
  }

  /** Takes out whose turn it is. */
  take(now: number): Waiting | undefined {
    const line = this.turn(now);
    const place = line?.first;
    if (!line || !place) return undefined;
    line.remove(place);
    this.places.delete(place.key);
    for (const other of this.lines) if (other !== line && other.first) other.passedOver++;
    line.startWaiting(now, this.turns++);
    return place;
  }

  private append(place: Place, now: number): void {
    const line = this.byLane[place.lane];
    if (!line.first) line.startWaiting(now, this.turns++);
    line.append(place);
  }

  private turn(now: number): Line | undefined {
    const waiting = this.lines.filter(({ first }) => first);
    if (waiting.length < 2) return waiting[0];
    const due = waiting.findLast(({ isDue }) => isDue);
    if (due) return due;
    // With workers so slow that every lane is overdue, the lanes take turns.
    let overdue: Line | undefined;
    for (const line of waiting) {
      if (now - line.unservedSince < PASSED_OVER_MILLISECONDS) continue;
      if (!overdue || line.order < overdue.order) overdue = line;
    }
    return overdue ?? waiting[0];
  }
}

export function isMoreUrgent(lane: Lane, than: Lane): boolean {
  return LANES.indexOf(lane) < LANES.indexOf(than);
}

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

/** Measures the queue of a controller under the names of client-go's work queue. */
export class QueueMetrics implements QueueObserver {
  private readonly labels: { readonly name: string; readonly controller: string };

  constructor(
    private readonly metrics: Metrics,
    controller: string,
  ) {
    this.labels = { name: controller, controller };
    metrics.queueAdds.inc(this.labels, 0);
    metrics.queueRetries.inc(this.labels, 0);
    metrics.queueSeconds.zero(this.labels);
    metrics.workSeconds.zero(this.labels);
  }

  added(): void {
    this.metrics.queueAdds.inc(this.labels);
  }

  taken(waitedMilliseconds: number): void {
    this.metrics.queueSeconds.observe(this.labels, waitedMilliseconds / 1000);
  }

  done(workedMilliseconds: number): void {
    this.metrics.workSeconds.observe(this.labels, workedMilliseconds / 1000);
  }

  retried(): void {
    this.metrics.queueRetries.inc(this.labels);
  }

  /** What is cheaper to look up than to keep up to date is looked up when somebody asks. */
  readOnScrape(queue: Queue, clock: Clock): void {
    const { metrics, labels } = this;
    metrics.onScrape(() => {
      for (const lane of LANES) metrics.queueDepth.set({ ...labels, priority: lane }, queue.depthOf(lane));
      const now = clock.monotonic();
      metrics.oldestQueuedSeconds.set(labels, (now - (queue.oldestSince ?? now)) / 1000);
      const seconds = queue.workingSince.map((since) => (now - since) / 1000);
      metrics.unfinishedWorkSeconds.set(
        labels,
        seconds.reduce((sum, each) => sum + each, 0),
      );
      metrics.longestRunningSeconds.set(labels, Math.max(0, ...seconds));
    });
  }
}

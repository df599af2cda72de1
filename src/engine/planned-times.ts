import type { Clock, Timer } from './clock.js';
import { isMoreUrgent } from './lanes.js';
import type { Lane } from './lanes.js';

/**
 * Why a key is taken at a time that is known already. A key may have one of each, and none replaces another.
 *
 * - `requeue`: it was asked for. Holds until a reconcile succeeds, which asks anew.
 * - `backoff`: the pause after a failure. Holds until a reconcile succeeds, or until the pause is over.
 * - `coalesced`: something has changed that needn't be looked at this instant. Whoever takes the key sees to it.
 * - `settling`: things are changing, and may go on to. Whoever takes the key sees to it.
 */
export type PlannedKind = 'requeue' | 'backoff' | 'coalesced' | 'settling';

interface Planned {
  readonly at: number;
  readonly timer: Timer;
  /** By the monotonic clock; not pushed on any further. */
  readonly latest: number;
  lane: Lane;
}

/** When keys are taken at the latest, and why. */
export class PlannedTimes {
  private readonly times: Readonly<Record<PlannedKind, Map<string, Planned>>> = {
    requeue: new Map(),
    backoff: new Map(),
    coalesced: new Map(),
    settling: new Map(),
  };

  constructor(
    private readonly clock: Clock,
    private readonly due: (key: string, lane: Lane, kind: PlannedKind) => void,
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
      this.due(key, planned.lane, kind);
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

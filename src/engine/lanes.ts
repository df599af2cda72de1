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

import type { EventProps, EventStep } from '../contract/controller.js';
import type { Instant } from './clock.js';

type Regarding = EventStep['regarding'];

/** What is equal for longer than this is told anew, as an event of its own. */
export const QUIET_MILLISECONDS = 6 * 60_000;
/** How often a series that goes on is brought up to date. */
export const REFRESH_MILLISECONDS = 30 * 60_000;
/** One thing may be told in so many wordings within a series; what comes after only counts. */
const WORDINGS = 5;
/** A bound for memory, beyond what one operator tells in six minutes. */
const MOST_SERIES = 4_096;

/** One event and its repetitions, which become one object. */
export class EventSeries {
  /** Of the occurrences so far. */
  count = 1;
  /** How many of them the API server was told of; none before the object is created. */
  told = 0;
  /** By the monotonic clock. */
  toldAt = 0;
  /** It waits to be sent, or is under way. */
  queued = false;
  /** Nothing will be added to it. */
  over = false;
  private last: Instant;

  constructor(
    readonly key: string,
    /** Of the object. */
    readonly name: string,
    readonly regarding: Regarding,
    readonly event: EventProps,
    private readonly started: Instant,
    /** Counts the wordings of this key. */
    readonly wording: number,
  ) {
    this.last = started;
  }

  /** The first and the last occurrence, on the wall clock. */
  get startedAt(): number {
    return this.started.wall;
  }
  get lastAt(): number {
    return this.last.wall;
  }

  /** It has happened again. */
  repeated(at: Instant): void {
    this.count++;
    this.last = at;
  }

  /** For so long it hasn't happened again that what comes now is another. */
  isQuiet(now: number): boolean {
    return now - this.last.monotonic >= QUIET_MILLISECONDS;
  }

  /**
   * The second occurrence is worth a request at once, later ones only now and then, and when it is over.
   *
   * @param now by the monotonic clock
   */
  worthTelling(now: number): boolean {
    if (this.told === this.count) return false;
    return this.over || this.told <= 1 || now - this.toldAt >= REFRESH_MILLISECONDS;
  }
}

/**
 * Which events are repetitions of which. The rules are client-go's: equal in type, action, reason and object, and not
 * six minutes apart.
 *
 * A note is part of an event that can't be changed later, so another note is another object, up to five in a series:
 * whoever mends one mistake and makes the next reads of both, and text that never repeats floods nothing.
 * @see https://github.com/kubernetes/client-go/blob/master/tools/events/event_broadcaster.go
 */
export class EventSeriesBook {
  private readonly byKey = new Map<string, EventSeries>();

  constructor(private readonly nameFor: (regarding: Regarding) => string) {}

  get size(): number {
    return this.byKey.size;
  }

  /** Counts an occurrence. `ended` is what it takes the place of. */
  observe(
    regarding: Regarding,
    event: EventProps,
    now: Instant,
  ): { readonly series: EventSeries; readonly ended?: EventSeries } {
    const key = keyOf(regarding, event);
    const known = this.byKey.get(key);
    const over = known?.isQuiet(now.monotonic);
    if (known && !over && (known.event.note === event.note || known.wording >= WORDINGS)) {
      known.repeated(now);
      return { series: known };
    }
    const wording = known && !over ? known.wording + 1 : 1;
    const series = new EventSeries(key, this.nameFor(regarding), regarding, event, now, wording);
    const ended = known ?? (this.byKey.size >= MOST_SERIES ? this.oldest() : undefined);
    if (ended) this.end(ended);
    this.byKey.set(key, series);
    return { series, ...(ended && { ended }) };
  }

  /**
   * Series that have something to tell by now, those that are over included, which are forgotten here.
   *
   * @param now by the monotonic clock
   */
  due(now: number): EventSeries[] {
    const due: EventSeries[] = [];
    for (const series of this.byKey.values()) {
      if (series.isQuiet(now)) this.end(series);
      if (series.worthTelling(now)) due.push(series);
    }
    return due;
  }

  /** Ends all of them. */
  endAll(): EventSeries[] {
    const all = [...this.byKey.values()];
    for (const series of all) this.end(series);
    return all;
  }

  private end(series: EventSeries): void {
    series.over = true;
    this.byKey.delete(series.key);
  }

  private oldest(): EventSeries | undefined {
    const [oldest] = this.byKey.values();
    return oldest;
  }
}

function keyOf({ apiVersion, kind, uid, namespace, name }: Regarding, event: EventProps): string {
  return [event.type, event.action, event.reason, apiVersion, kind, namespace, name, uid].join('\n');
}

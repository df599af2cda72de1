import { reusing } from './lists.js';
import type { Project } from './lists.js';
import type { Store } from './store.js';

/** A list that is older than this, up to a tenth more, is made anew when its watch ends: it mends what was lost. */
const LIFETIME_MILLISECONDS = 10 * 3_600_000;
/** One that was due and failed is tried again after this; what is known is followed meanwhile. */
const AGAIN_MILLISECONDS = 3_600_000;

/** A server that lags behind for longer was restored from a backup: API servers catch up in seconds, caches in a minute. */
const LAG_MILLISECONDS = 120_000;

/** When to list, how, and which list counts. */
export class ListPlan {
  private dueAt = Infinity;
  /** Servers that don't stream lists are asked for pages. */
  private streams = true;
  /** The last streamed list never ended. */
  private pagesNext = false;
  private doubtful = false;
  /** When the first list came that was older than what was delivered. */
  private olderSince: number | undefined;

  isDue(now: number): boolean {
    return now >= this.dueAt;
  }

  begin(now: number): 'stream' | 'pages' {
    this.dueAt = now + AGAIN_MILLISECONDS;
    const stream = this.streams && !this.pagesNext;
    this.pagesNext = false;
    return stream ? 'stream' : 'pages';
  }

  /** Reports whether a list that is older than what was delivered counts: once the server has lagged for too long. */
  believesOlder(now: number): boolean {
    this.olderSince ??= now;
    return now - this.olderSince >= LAG_MILLISECONDS;
  }

  /** The server isn't behind what was delivered. */
  caughtUp(): void {
    this.olderSince = undefined;
  }

  /** A list is complete, and counts. */
  done(now: number, random: () => number): void {
    this.doubtful = false;
    this.olderSince = undefined;
    this.dueAt = now + LIFETIME_MILLISECONDS * (1 + random() / 10);
  }

  /** The server refuses to stream. */
  refused(): void {
    this.streams = false;
  }

  /** A streamed list has ended without being complete: the server may not know what it was asked for. */
  unfinished(): void {
    this.pagesNext = true;
  }

  /** Equal versions may be different objects. */
  doubtVersions(): void {
    this.doubtful = true;
  }

  /** How the next list takes objects. */
  project(store: Store): Project {
    return this.doubtful ? (object) => store.project(object) : reusing(store);
  }
}

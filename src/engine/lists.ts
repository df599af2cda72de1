import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Api, Scope } from './api.js';
import type { Entry, Store } from './store.js';
import type { ObjectEvent } from './watch-stream.js';

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** All objects as they were at one version. */
export interface CompleteList {
  readonly entries: readonly Entry[];
  readonly resourceVersion: string;
}

/** How an object becomes an entry; nothing becomes of one that is of no interest. */
export type Project = (object: AnyObject) => Entry | undefined;

/** The same version of an object isn't worked through twice, so listing again what has hardly changed is cheap. */
export function reusing(store: Store): Project {
  return (object) => {
    const { namespace, name, resourceVersion } = object.metadata;
    const known = store.get(objectKey(namespace, name));
    return known && known.object.metadata.resourceVersion === resourceVersion ? known : store.project(object);
  };
}

/** The list in pages. @throws ApiError 410 when it takes longer than the server keeps old versions */
export async function listPages(
  api: Api,
  scope: Scope,
  project: Project,
  signal: AbortSignal,
): Promise<CompleteList> {
  const entries: Entry[] = [];
  let continueToken: string | undefined;
  for (;;) {
    const page = await api.list(scope, continueToken, signal);
    for (const item of page.items) {
      const entry = project(item);
      if (entry) entries.push(entry);
    }
    continueToken = page.continueToken;
    if (!continueToken) return { entries, resourceVersion: page.resourceVersion };
  }
}

/**
 * Asks for the whole list as events, ended by an annotated bookmark, after which the same stream goes on with
 * changes. Without a version, so that it is as new as the server's storage; `0` would be whatever it remembers.
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
 */
export const STREAMED_LIST = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } as const;

/** Gathers the events of a streamed list. */
export class StreamedList {
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly project: Project) {}

  /** Returns the list when the event is the one that closes it. */
  take(event: ObjectEvent): CompleteList | undefined {
    const { namespace, name, annotations, resourceVersion } = event.object.metadata;
    if (event.type === 'BOOKMARK') {
      if (!annotations?.[INITIAL_EVENTS_END] || resourceVersion === undefined) return undefined;
      const entries = [...this.entries.values()];
      // The stream lives on for minutes.
      this.entries.clear();
      return { entries, resourceVersion };
    }
    // What happens between the server's snapshot and the version that the list has to reach comes as changes.
    const entry = event.type === 'DELETED' ? undefined : this.project(event.object);
    if (entry) this.entries.set(objectKey(namespace, name), entry);
    else this.entries.delete(objectKey(namespace, name));
    // The initial events come unordered, so none of their versions is one to go on from.
    return undefined;
  }
}

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

import { setImmediate } from 'node:timers/promises';
import { messageOf } from '../../contract/error.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { Api, Scope } from '../../client/api.js';
import { ApiError } from '../../client/api-error.js';
import type { ApiStatus } from '../../client/api-error.js';
import type { Entry } from './cache.js';
import type { Clock, Timer } from '../../client/clock.js';
import { WATCH } from '../../client/retry.js';

/** An object has changed; or, with `BOOKMARK`, nothing has up to the version in its metadata. */
export interface ObjectEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: AnyObject;
}

/** Line of a watch. @see https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes */
export type WatchEvent =
  | ObjectEvent
  /** The watch is over; the object says why. It arrives with HTTP status 200. */
  | { readonly type: 'ERROR'; readonly object: ApiStatus };

/** Failures of a watch, apart from answers of the API server and errors of connections. */
const FAILURES = {
  /** A version of the future, from before a backup was restored, is accepted, and then nothing ever comes. */
  silentFromStart: `nothing heard for ${WATCH.silence / 1000} s`,
  silent: `nothing heard for ${WATCH.silence / 1000} s`,
  /** Not what a watch delivers, or not to be taken in: what it announced has to be learned by a list. */
  unusable: 'unusable event',
  listUnfinished: 'the watch ended within the list',
  /** The server lags behind the one that answered before, or was restored from a backup. */
  outdated: 'the list is older than the watch; it counts if that lasts for two minutes',
  /** The connection is fine, but some proxy closes at once. */
  short: 'the watch ended at once',
} as const;

export class WatchFailure extends Error {
  constructor(
    readonly kind: keyof typeof FAILURES,
    cause?: unknown,
  ) {
    const text = kind === 'unusable' ? messageOf(cause) : FAILURES[kind];
    super(kind === 'listUnfinished' && cause ? `${text}: ${messageOf(cause)}` : text, { cause });
  }
}

/** Time at which anything was heard of the server last, by the monotonic clock. */
export interface Pulse {
  heardAt: number;
}

export interface WatchProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The server has accepted the request. */
  opened(): void;
  /** Kept up to date. */
  readonly pulse: Pulse;
  handle(event: ObjectEvent): void;
}

/** Reason to give up a watch. */
const SILENCE = new Error('nothing heard');
/** Number of bytes after which other work gets a turn: a few milliseconds of parsing. */
const TURN_BYTES = 128 * 1024;

/**
 * Runs one watch, from the request to its end.
 *
 * **Assumptions.** The transport bounds how long it waits for an answer. Until then silence doesn't count, since a request
 * may be held back for as long as the server is out of reach.
 *
 * @throws when it can't be opened, breaks, falls silent, reports an error, or delivers what can't be used
 */
export async function runWatch({ api, scope, clock, query, pulse, ...props }: WatchProps): Promise<void> {
  let events = 0;
  let openedAt: number | undefined;
  // A timer for every chunk would cost more than looking now and then.
  const look = (): void => {
    const left = pulse.heardAt + WATCH.silence - clock.monotonic();
    if (left > 0) timer = clock.setTimer(left, look);
    else stop.abort(SILENCE);
  };
  let timer: Timer | undefined;
  const stop = new AbortController();
  const end = (): void => {
    stop.abort();
  };
  props.signal.addEventListener('abort', end);
  if (props.signal.aborted) end();
  try {
    const { chunks } = await api.watch(scope, query, stop.signal, () => {
      pulse.heardAt = clock.monotonic();
      timer = clock.setTimer(WATCH.silence, look);
    });
    openedAt = clock.monotonic();
    props.opened();
    const splitter = new LineSplitter();
    let bytes = 0;
    for await (const chunk of chunks) {
      pulse.heardAt = clock.monotonic();
      for (const line of splitter.lines(chunk)) {
        if (line.length === 0) continue;
        take(line, scope, props);
        events++;
        bytes += line.length;
        if (bytes < TURN_BYTES) continue;
        bytes = 0;
        await setImmediate();
      }
    }
    // A rest without newline is an event that was cut off: the next watch delivers it whole.
  } catch (error) {
    // Only the silence of a watch that the server has accepted says something about its version.
    if (stop.signal.reason !== SILENCE || openedAt === undefined) throw error;
    throw new WatchFailure(events === 0 ? 'silentFromStart' : 'silent', error);
  } finally {
    timer?.cancel();
    props.signal.removeEventListener('abort', end);
    // Reading stopped early leaves the stream open.
    end();
  }
  if (events === 0 && clock.monotonic() - openedAt < WATCH.short) throw new WatchFailure('short');
}

/** @throws WatchFailure when a line isn't an event, or can't be used; what the watch has missed must be listed then */
function take(line: Uint8Array, scope: Scope, { handle }: Pick<WatchProps, 'handle'>): void {
  let event: WatchEvent | undefined;
  try {
    event = JSON.parse(decoder.decode(line)) as WatchEvent | undefined;
  } catch {
    // What it is, the parser says with a part of it, which may be of a Secret.
  }
  if (!event || !TYPES.has(event.type) || typeof event.object !== 'object')
    throw new WatchFailure('unusable', new SyntaxError(`a line of ${line.length} bytes is no watch event`));
  if (event.type === 'ERROR') {
    const { object: body } = event;
    throw new ApiError(`Watch ${scope.type.plural}`, { status: body.code ?? 500, body });
  }
  try {
    handle(event);
  } catch (error) {
    throw error instanceof WatchFailure ? error : new WatchFailure('unusable', error);
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });
const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);
const NEWLINE = 0x0a;

/** Cuts the bytes of a watch into lines, across chunks; bytes, not text, since a chunk may end within a character. */
export class LineSplitter {
  private pending: Uint8Array[] = [];

  *lines(chunk: Uint8Array): Generator<Uint8Array> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = chunk.subarray(start, end);
      const whole = this.pending.length === 0 ? line : Buffer.concat([...this.pending, line]);
      this.pending = [];
      start = end + 1;
      yield whole;
    }
    if (start < chunk.length) this.pending.push(chunk.subarray(start));
  }

  /** Bytes after the last newline. */
  rest(): Buffer {
    return Buffer.concat(this.pending);
  }
}

/** All objects as they were at one version. */
export interface CompleteList {
  readonly entries: readonly Entry[];
  readonly resourceVersion: string;
}

/** Makes an entry of an object; nothing of one that is of no interest. */
export type Project = (object: AnyObject) => Entry | undefined;

/**
 * The list in pages.
 * @param heard called with each page. @default - not called
 * @throws ApiError 410 when it takes longer than the server keeps old versions
 */
export async function listPages(
  api: Api,
  scope: Scope,
  project: Project,
  signal: AbortSignal,
  heard?: () => void,
): Promise<CompleteList> {
  const entries: Entry[] = [];
  let resourceVersion = '';
  for await (const page of api.pages(scope, signal)) {
    heard?.();
    ({ resourceVersion } = page);
    for (const item of page.items) {
      const entry = project(item);
      if (entry) entries.push(entry);
    }
  }
  return { entries, resourceVersion };
}

/**
 * Asks for the whole list as events, ended by an annotated bookmark, after which the same stream goes on with
 * changes. Without a version, so that it is as new as the server's storage; `0` would be whatever it remembers.
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
 */
export const STREAMED_LIST = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } as const;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Gathers the events of a streamed list. */
export class StreamedList {
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly project: Project) {}

  /** Returns the list when the event is the one that closes it. */
  take({ type, object }: ObjectEvent): CompleteList | undefined {
    const { namespace, name, annotations, resourceVersion } = object.metadata;
    if (type === 'BOOKMARK') {
      if (!annotations?.[INITIAL_EVENTS_END] || resourceVersion === undefined) return undefined;
      const entries = [...this.entries.values()];
      // The stream lives on for minutes.
      this.entries.clear();
      return { entries, resourceVersion };
    }
    // What happens between the server's snapshot and the version that the list has to reach comes as changes. The
    // initial events come unordered, so none of their versions is one to go on from.
    const entry = type === 'DELETED' ? undefined : this.project(object);
    if (entry) this.entries.set(objectKey(namespace, name), entry);
    else this.entries.delete(objectKey(namespace, name));
    return undefined;
  }
}

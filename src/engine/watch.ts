import { setImmediate } from 'node:timers/promises';
import { OperatorError, messageOf } from '../contract/error.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import { ApiError, GRANT, askedDelay } from './api-error.js';
import type { ApiStatus } from './api-error.js';
import type { Api, Scope } from './api.js';
import type { Entry, Store } from './cache.js';
import type { Clock, Timer } from './clock.js';
import { backoffDelay, RETRY } from './retry.js';

/** The server sends a bookmark about every minute, so more than this without a byte means that nothing will come. */
export const SILENCE_LIMIT_MILLISECONDS = 75_000;

/**
 * Aborts a stream when nothing has been heard for too long since it was answered, or when the outer signal does.
 *
 * **Assumptions.** The transport bounds how long it waits for an answer. What goes before has no bound, since a request
 * may be held back for as long as the server is out of reach, which says nothing about the stream.
 */
export class SilenceLimit {
  /** Nothing was heard for too long. */
  expired = false;
  /** When a byte came last, if any has, by the monotonic clock. */
  heardAt: number | undefined;
  private startedAt = 0;
  private readonly controller = new AbortController();
  private readonly forward = (): void => {
    this.controller.abort();
  };
  private timer: Timer | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly outer: AbortSignal,
  ) {
    outer.addEventListener('abort', this.forward);
    if (outer.aborted) this.controller.abort();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** There is an answer: from now on, silence counts. */
  begin(): void {
    this.startedAt = this.clock.monotonic();
    this.timer = this.start(SILENCE_LIMIT_MILLISECONDS);
  }

  /** Passes chunks on; each one starts the time anew. */
  async *heard(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.heardAt = this.clock.monotonic();
      yield chunk;
    }
  }

  /** Closes the stream, which whoever stops reading early leaves open. */
  end(): void {
    this.timer?.cancel();
    this.outer.removeEventListener('abort', this.forward);
    this.controller.abort();
  }

  private start(delayMilliseconds: number): Timer {
    return this.clock.setTimer(delayMilliseconds, () => {
      // A timer of its own for every chunk would cost more than asking now and then.
      const left = (this.heardAt ?? this.startedAt) + SILENCE_LIMIT_MILLISECONDS - this.clock.monotonic();
      if (left > 0) {
        this.timer = this.start(left);
        return;
      }
      this.expired = true;
      this.controller.abort();
    });
  }
}

/** An API server in trouble is asked for the same watch again for this long; then its version is given up. */
const TROUBLE_MILLISECONDS = 30_000;
/** Trouble after this much time without any is new trouble. */
const TROUBLE_OVER_MILLISECONDS = 60_000;

/** Nothing came for longer than the server is ever silent. */
export class SilentWatch extends Error {
  constructor(
    readonly events: number,
    cause: unknown,
  ) {
    super(`Nothing heard for ${String(SILENCE_LIMIT_MILLISECONDS / 1000)} s`, { cause });
  }
}

/** The server refuses a watch, and never comes to the end of saying why. */
export class UnfinishedRefusal extends Error {
  constructor(cause: unknown) {
    super('The watch was refused, and the reason never ended', { cause });
  }
}

/** What has come is not what a watch delivers, or can't be taken in: what it told has to be learned by a list. */
export class UnusableEvent extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

/** The stream of a list ended, or fell silent, without the bookmark that closes it. */
export class UnfinishedList extends Error {
  constructor(cause?: unknown) {
    super('The watch ended within the list', { cause });
  }
}

/** The server that has answered lags behind the one before, or was restored from a backup. */
export class OutdatedList extends Error {
  constructor(resourceVersion: string) {
    super(`The list (${resourceVersion}) is older than the watch; it counts if that lasts for two minutes`);
  }
}

/** The connection is fine, and of no use: some proxy closes at once. */
export class ShortWatch extends Error {
  constructor() {
    super('The watch ended at once');
  }
}

/** What somebody can do about it, for the log. */
export function hintFor(error: Error): string | undefined {
  if (!(error instanceof ApiError)) {
    // Errors of the network have a code; those of a kind's own functions don't.
    const isUnanswered = error instanceof OperatorError && error.reason === 'Unreachable';
    return isUnanswered || error instanceof SilentWatch || 'code' in error
      ? 'Check that the API server is reachable'
      : undefined;
  }
  if (error.kindNotServed) return 'Install the CRD of this kind';
  if (error.code === 401) return 'The credentials are not accepted: check the kubeconfig';
  return error.code === 403 ? `It may not be listed and watched; ${GRANT}` : undefined;
}

/** The server doesn't know the request, or has the feature turned off. */
export function refusesRequest(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 400 || error.code === 422);
}

/** The API server has no such kind. Unlike a missing object, that is answered without a reason. */
export function kindIsMissing(error: unknown): boolean {
  return error instanceof ApiError && error.kindNotServed;
}

/** What is known of versions may come from before a backup was restored, so equal ones may be different objects. */
export function doubtsVersions(error: Error): boolean {
  return (error instanceof SilentWatch && error.events === 0) || isVersionTooLarge(error);
}

/**
 * Decides whether a version that was reached is still one to go on from. The table is client-go's:
 *
 * | failure | consequence |
 * | --- | --- |
 * | the connection broke, 429, 503 | the same version again, since listing would make an overload worse |
 * | 500, 502, 504 | the same version again for half a minute, then a list |
 * | silence | the same version again, where anything had come; else a list |
 * | a list that is older than what was delivered | what was to be done before it |
 * | 410, version too large, anything else | a list |
 * @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go
 */
export class WatchFailures {
  private troubleSince: number | undefined;
  private troubleAt = -Infinity;

  mustRelist(error: Error, now: number): boolean {
    if (error instanceof UnusableEvent) return true;
    // A line that is no event.
    if (error instanceof SyntaxError || error instanceof TypeError) return true;
    // A version of the future, from before a backup was restored, is accepted and then nothing ever comes.
    if (error instanceof SilentWatch) return error.events === 0;
    if (!(error instanceof ApiError)) return false;
    if (error.code === 429 || error.code === 503) return false;
    return isVersionTooLarge(error) || !isServersTrouble(error) || this.lastsTooLong(now);
  }

  private lastsTooLong(now: number): boolean {
    if (now - this.troubleAt >= TROUBLE_OVER_MILLISECONDS) this.troubleSince = undefined;
    this.troubleAt = now;
    this.troubleSince ??= now;
    return now - this.troubleSince >= TROUBLE_MILLISECONDS;
  }
}

function isServersTrouble({ code, expired }: ApiError): boolean {
  return !expired && (code === 500 || code === 502 || code === 504);
}

/** An API server that is behind the one that was asked before, or whose storage was put back. */
function isVersionTooLarge(error: Error): boolean {
  const causes = error instanceof ApiError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'ResourceVersionTooLarge');
}

const HEALTHY_AFTER_MILLISECONDS = 120_000;

/** A version that was good for this long and then expires is no failure of the watch that follows. */
const WORKED_MILLISECONDS = 10_000;

/** How long to wait after a failed watch: longer each time, until one has lasted. */
export class Retries {
  private tries = 0;
  /** Since a version expired last, a watch was at work for a while. */
  private hasWorked = true;
  private last: Error | undefined;

  constructor(
    private readonly props: { readonly scope: Scope; readonly random: () => number; readonly log: Logger },
  ) {}

  /** A watch was at work for so long, however it ended. */
  lasted(milliseconds: number): void {
    if (milliseconds >= HEALTHY_AFTER_MILLISECONDS) this.tries = 0;
    if (milliseconds >= WORKED_MILLISECONDS) this.hasWorked = true;
  }

  /** Returns the delay in milliseconds. */
  failed(error: Error, relist: boolean): number {
    const { log, scope } = this.props;
    const delay = this.delay(error);
    const isNews = !(error instanceof OutdatedList && this.last instanceof OutdatedList);
    this.last = error;
    log[isNews ? 'warn' : 'debug'](
      {
        resource: scope.type.plural,
        watchNamespace: scope.namespace,
        error: error.message,
        hint: hintFor(error),
        retryMilliseconds: Math.round(delay),
      },
      relist ? 'watch failed, listing again' : 'watch failed, resuming from last resourceVersion',
    );
    return delay;
  }
  private delay(error: Error): number {
    const { random } = this.props;
    if (error instanceof ApiError && error.expired && this.hasWorked) {
      this.hasWorked = false;
      return backoffDelay(RETRY.watch, 0, random);
    }
    const asked = askedDelay(error);
    return Math.max(backoffDelay(asked > 0 ? RETRY.refusedWatch : RETRY.watch, this.tries++, random), asked);
  }
}

/** A watch that ends sooner than this without an event has failed, whatever it says. */
const SHORT_WATCH_MILLISECONDS = 1_000;

/** Where to watch, and what to do with what comes. */
export interface WatchStreamProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly query: Readonly<Record<string, string>>;
  /** The server has accepted the request. */
  opened(): void;
  handle(event: ObjectEvent): void;
}

/** One watch, from the request to its end. */
export class WatchStream {
  private silence: SilenceLimit | undefined;

  constructor(private readonly props: WatchStreamProps) {}

  /** When a byte came last, if any has, by the monotonic clock. */
  get heardAt(): number | undefined {
    return this.silence?.heardAt;
  }

  /**
   * Resolves when the server ends the watch in good order.
   * @throws when it can't be opened, breaks, falls silent, reports an error, or delivers what can't be used
   */
  async read(signal: AbortSignal): Promise<void> {
    const { api, scope, clock, query } = this.props;
    const silence = new SilenceLimit(clock, signal);
    this.silence = silence;
    let events = 0;
    let openedAt: number | undefined;
    try {
      const { chunks } = await api.watch(scope, query, silence.signal, () => {
        silence.begin();
      });
      openedAt = clock.monotonic();
      this.props.opened();
      for await (const event of watchEvents(silence.heard(chunks))) {
        this.take(event);
        events++;
      }
    } catch (error) {
      if (!silence.expired) throw error;
      // Only the silence of a watch that the server has accepted says something about its version.
      if (openedAt === undefined) throw new UnfinishedRefusal(error);
      throw new SilentWatch(events, error);
    } finally {
      silence.end();
    }
    if (events === 0 && clock.monotonic() - openedAt < SHORT_WATCH_MILLISECONDS) throw new ShortWatch();
  }

  private take(event: WatchEvent): void {
    if (event.type === 'ERROR') {
      const { object } = event;
      throw new ApiError(`Watch ${this.props.scope.type.plural}`, {
        status: object.code ?? 500,
        body: object,
      });
    }
    try {
      this.props.handle(event);
    } catch (error) {
      throw error instanceof OutdatedList ? error : new UnusableEvent(error);
    }
  }
}

/** An object has changed; or, with `BOOKMARK`, nothing has up to the version in its metadata. */
export interface ObjectEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: AnyObject;
}

/** One line of a watch. @see https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes */
export type WatchEvent =
  | ObjectEvent
  /** The watch is over; the object says why. It arrives with HTTP status 200. */
  | { readonly type: 'ERROR'; readonly object: ApiStatus };

const NEWLINE = 0x0a;

/** After this many bytes others get their turn: a few milliseconds of parsing. */
const TURN_BYTES = 128 * 1024;

/**
 * Splits the bytes of a watch into events. Bytes, not text: a chunk may end within a character.
 *
 * **Guarantees.** Whatever has arrived already, timers and other connections are served in between.
 * @throws when a line isn't an event; the watch is of no use then, and what it has missed must be listed again
 */
export async function* watchEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let pending: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = join(pending, chunk.subarray(start, end));
      pending = [];
      start = end + 1;
      if (line.length > 0) yield parseEvent(decoder.decode(line));
      bytes += line.length;
      if (bytes < TURN_BYTES) continue;
      bytes = 0;
      await setImmediate();
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  // A rest without newline is an event that was cut off: the next watch delivers it whole.
}

function join(parts: readonly Uint8Array[], last: Uint8Array): Uint8Array {
  return parts.length === 0 ? last : Buffer.concat([...parts, last]);
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

function parseEvent(line: string): WatchEvent {
  const event = JSON.parse(line) as Partial<WatchEvent> | null;
  if (!TYPES.has(event?.type) || typeof event?.object !== 'object') {
    throw new SyntaxError(`Not a watch event: ${line.slice(0, 200)}`);
  }
  return event as WatchEvent;
}

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

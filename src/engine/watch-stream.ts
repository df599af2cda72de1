import { setImmediate } from 'node:timers/promises';
import type { AnyObject } from '../contract/object.js';
import type { Api, Scope } from './api.js';
import { ApiError } from './api-error.js';
import type { ApiStatus } from './api-error.js';
import type { Clock } from './clock.js';
import { SilenceLimit } from './silence-limit.js';
import { OutdatedList, ShortWatch, SilentWatch, UnfinishedRefusal, UnusableEvent } from './watch-failure.js';

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

import type { AnyObject } from '../contract/object.js';
import { APPLY } from '../engine/api.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../engine/transport.js';
import { LineSplitter } from '../engine/watch.js';
import { WatchLine } from './watch-line.js';

/** The end of an operator: at its n-th write, from 1 on, before it is sent or once it is answered. */
export interface KillPoint {
  readonly write: number;
  readonly when: 'before' | 'after';
}

/** An apply that was accepted. */
export interface AcceptedApply {
  readonly manager: string;
  readonly sent: AnyObject;
  /** The object as the server has it since. */
  readonly kept: AnyObject;
}

/** The streamed lists that a wire has delivered, by path and selectors. */
export type RecordedLists = ReadonlyMap<string, readonly WatchLine[]>;

const LISTED = 'k8s.io/initial-events-end';

/**
 * Stands between an engine and its API server, in the same process, and does what networks, servers and kills do.
 *
 * **Guarantees.** Once it is dead, no request gets through, no answer and no event arrives. What was under way then may
 * have been carried out, as after the end of a real process.
 */
export class Wire implements Transport {
  readonly host: string;
  /** Each write that was sent, or would have been, as in `PATCH configmaps/web`. */
  readonly writes: string[] = [];
  /** The last apply of each manager to each path. */
  readonly applies = new Map<string, AcceptedApply>();
  /** Requests so far, watches included. */
  requests = 0;
  /** What happens to events from now on, also of watches that are open; told the path of the watch. */
  eventFault: (path: string) => EventFault = () => () => 'pass';
  /** Lists that are answered from a recording, once each, as by an API server that is behind. */
  stale = new Map<string, readonly WatchLine[]>();
  /** The write that it died at. @default - it lives */
  diedAt: string | undefined;
  /** Called when it dies. */
  onDeath: () => void = () => undefined;
  private killPoint: KillPoint | undefined;
  private seen = 0;
  private underWay = 0;
  private lastEnd = performance.now();
  private readonly open = new Map<EventStream, { readonly path: string; readonly end: AbortController }>();
  private readonly recorded = new Map<string, WatchLine[]>();
  /** The paths of watches that were cut, and aren't open again. */
  private readonly cutOff = new Set<string>();

  constructor(private readonly inner: Transport) {
    this.host = inner.host;
  }

  /** For how many milliseconds nothing has been asked for; open watches don't count. */
  get quietMilliseconds(): number {
    return this.underWay > 0 ? 0 : performance.now() - this.lastEnd;
  }

  get lists(): RecordedLists {
    return this.recorded;
  }

  /** Whether no watch that was cut has yet to be opened again. */
  get isWatching(): boolean {
    return this.cutOff.size === 0;
  }

  /** Kills at a write, counted from now on. */
  killAt(point: KillPoint): void {
    this.killPoint = point;
    this.seen = 0;
  }

  /** Lives on, where the write to be killed at hasn't come. */
  spare(): void {
    this.killPoint = undefined;
  }

  kill(at = 'by hand'): void {
    if (this.isDead()) return;
    this.diedAt = at;
    this.breakStreams();
    this.onDeath();
  }

  /** Cuts every open watch; the engine goes on from where it was. */
  cut(): void {
    this.breakStreams();
  }

  /** Says on every open watch that its version has expired, so that everything is listed again. */
  expire(): void {
    for (const stream of this.open.keys()) stream.inject(WatchLine.error(410, 'Expired'));
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requireAlive();
    const isWrite = request.method !== 'GET';
    const what = `${request.method} ${shortPath(request.path)}`;
    const fatal = isWrite && this.killPoint?.write === ++this.seen ? this.killPoint.when : undefined;
    this.requests++;
    if (isWrite) this.writes.push(what);
    if (fatal === 'before') this.kill(what);
    this.requireAlive();
    this.underWay++;
    try {
      const answer = await this.inner.request(request);
      if (fatal === 'after') this.kill(what);
      this.requireAlive();
      if (request.contentType === APPLY && answer.status < 300) {
        const manager = request.query?.fieldManager ?? '';
        const [sent, kept] = [request.body as AnyObject, answer.body as AnyObject];
        this.applies.set(`${request.path} ${manager}`, { manager, sent, kept });
      }
      return answer;
    } finally {
      this.underWay--;
      this.lastEnd = performance.now();
    }
  }

  async stream(request: ApiRequest): Promise<ApiStream> {
    this.requireAlive();
    this.requests++;
    const { path, query = {} } = request;
    const isList = query.sendInitialEvents !== undefined;
    const selectors = [query.fieldSelector, query.labelSelector].filter((one) => one !== undefined);
    const list = [path, ...selectors].join('?');
    const old = isList ? this.stale.get(list) : undefined;
    if (old) {
      this.stale.delete(list);
      return { status: 200, chunks: chunksOf(old) };
    }
    const end = new AbortController();
    const signal = request.signal ? AbortSignal.any([request.signal, end.signal]) : end.signal;
    const answer = await this.inner.stream({ ...request, signal });
    if (this.isDead()) end.abort();
    this.requireAlive();
    if (answer.status !== 200) return answer;
    return { ...answer, chunks: this.follow(answer, { path, list, isList }, end) };
  }

  withdraw(): void {
    this.inner.withdraw?.();
  }

  async close(): Promise<void> {
    await this.inner.close();
  }

  private follow(
    { chunks }: ApiStream,
    { path, list, isList }: { readonly path: string; readonly list: string; readonly isList: boolean },
    end: AbortController,
  ): AsyncIterable<Uint8Array> {
    const listed: WatchLine[] = [];
    let isListing = isList;
    const stream = new EventStream(
      chunks,
      (line) => (isListing || line.type === 'ERROR' ? 'pass' : this.eventFault(path)(line)),
      (line) => {
        if (!isListing) return;
        listed.push(line);
        if (!line.object.metadata.annotations?.[LISTED]) return;
        this.recorded.set(list, listed);
        // The bookmark itself passes like an event, which bookmarks do in any case.
        isListing = false;
      },
    );
    this.open.set(stream, { path, end });
    this.cutOff.delete(path);
    end.signal.addEventListener('abort', () => this.open.delete(stream));
    return stream;
  }

  private breakStreams(): void {
    for (const [stream, { path, end }] of this.open) {
      this.cutOff.add(path);
      stream.break(lost());
      end.abort();
    }
    this.open.clear();
  }

  /** Asked again after each await. */
  private isDead(): boolean {
    return this.diedAt !== undefined;
  }

  private requireAlive(): void {
    if (this.isDead()) throw lost();
  }
}

function lost(): Error {
  return Object.assign(new Error('The connection is lost'), { code: 'ECONNRESET' });
}

async function* chunksOf(lines: readonly WatchLine[]): AsyncIterable<Uint8Array> {
  for (const { bytes } of lines) yield await Promise.resolve(Buffer.concat([bytes, Buffer.from('\n')]));
}

/** `configmaps/web` of `/api/v1/namespaces/shop/configmaps/web`. */
export function shortPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  const start = parts[0] === 'api' ? 2 : 3;
  const rest = parts.slice(start);
  return (rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest).join('/');
}

/** What happens to an event of a watch: it passes, is lost, comes twice, or comes late by so many milliseconds. */
export type EventFault = (line: WatchLine) => 'pass' | 'lose' | 'double' | number;

const NEWLINE = Buffer.from('\n');

/** The lines of a watch on their way to the engine. None overtakes another: what follows a late one is as late. */
class EventStream implements AsyncIterable<Uint8Array> {
  private readonly splitter = new LineSplitter();
  private readonly ready: Buffer[] = [];
  private ended: { readonly error?: unknown } | undefined;
  private wake: (() => void) | undefined;
  /** What is on its way, in order; due in milliseconds since the epoch, or as soon as what is before it. */
  private readonly waiting: { readonly due: number; readonly act: () => unknown }[] = [];

  constructor(
    chunks: AsyncIterable<Uint8Array>,
    private readonly fault: EventFault,
    private readonly onEvent: (line: WatchLine) => void,
  ) {
    void this.pump(chunks);
  }

  /** Sends an event of its own, after those that are on their way. */
  inject({ bytes }: WatchLine): void {
    this.inTurn(0, () => this.ready.push(Buffer.concat([bytes, NEWLINE])));
  }

  /** Breaks it off, as a lost connection does. */
  break(error: unknown): void {
    this.ended ??= { error };
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      for (let line = this.ready.shift(); line; line = this.ready.shift()) {
        yield line;
        // What broke off in between brings nothing more.
        if (this.ended && 'error' in this.ended) throw this.ended.error;
      }
      if (this.ended) {
        if ('error' in this.ended) throw this.ended.error;
        return;
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  private async pump(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of chunks)
        for (const line of this.splitter.lines(chunk)) this.take(new WatchLine(line));
      this.inTurn(0, () => (this.ended ??= {}));
    } catch (error) {
      this.break(error);
    }
  }

  private take(line: WatchLine): void {
    this.onEvent(line);
    const verdict = this.fault(line);
    if (verdict === 'lose') return;
    const bytes = Buffer.concat([line.bytes, NEWLINE]);
    this.inTurn(typeof verdict === 'number' ? verdict : 0, () => {
      this.ready.push(bytes);
      if (verdict === 'double') this.ready.push(bytes);
    });
  }

  private inTurn(delay: number, act: () => unknown): void {
    this.waiting.push({ due: Date.now() + delay, act });
    // One that waits has a timer, and does what follows it too.
    if (this.waiting.length === 1) this.doWhatIsDue();
  }

  private doWhatIsDue(): void {
    for (let [first] = this.waiting; first; [first] = this.waiting) {
      const milliseconds = first.due - Date.now();
      if (milliseconds > 0) {
        setTimeout(() => {
          this.doWhatIsDue();
        }, milliseconds).unref();
        return;
      }
      this.waiting.shift();
      first.act();
      this.wake?.();
    }
  }
}

import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnyObject } from '../contract/object.js';
import { APPLY } from '../client/api.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../client/transport.js';
import { LineSplitter } from '../engine/watch/watch.js';
import { WatchLine } from './watch-line.js';

/** Point at which an operator is killed: its n-th write, from 1 on, before it is sent or once it is answered. */
export interface KillPoint {
  readonly write: number;
  readonly when: 'before' | 'after';
}

/** An apply that was accepted. */
export interface AcceptedApply {
  readonly manager: string;
  readonly sent: AnyObject;
  readonly kept: AnyObject;
}

/** Streamed lists that a wire has delivered, by path and selectors. */
export type RecordedLists = ReadonlyMap<string, readonly WatchLine[]>;

/** Fate of an event of a watch: it passes, is lost, comes twice, or comes late by a number of milliseconds. */
export type EventFault = (line: WatchLine) => 'pass' | 'lose' | 'double' | number;

const LISTED = 'k8s.io/initial-events-end';
const NEWLINE = Buffer.from('\n');

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
  /** Last apply of each manager to each path. */
  readonly applies = new Map<string, AcceptedApply>();
  requests = 0;
  /** Fault of events from now on, also of watches that are open, by the path of the watch. */
  eventFault: (path: string) => EventFault = () => () => 'pass';
  /** Lists that are answered from a recording, once each, as by an API server that is behind. */
  stale = new Map<string, readonly WatchLine[]>();
  /** Write that it died at. @default - none: it is alive */
  diedAt: string | undefined;
  onDeath: () => void = () => undefined;
  /** Sends a request, and sees its answer even where it dies of that. */
  pass = (_request: ApiRequest, send: () => Promise<ApiResponse>): Promise<ApiResponse> => send();
  private killPoint: KillPoint | undefined;
  private seen = 0;
  private underWay = 0;
  private lastEnd = performance.now();
  private readonly open = new Map<EventFeed, { readonly path: string; readonly end: AbortController }>();
  private readonly recorded = new Map<string, WatchLine[]>();
  /** Paths of watches that were cut, and aren't open again. */
  private readonly cutOff = new Set<string>();

  constructor(private readonly inner: Transport) {
    this.host = inner.host;
  }

  /** Milliseconds since the last request ended; open watches don't count. */
  get quietMilliseconds(): number {
    return this.underWay > 0 ? 0 : performance.now() - this.lastEnd;
  }

  get lists(): RecordedLists {
    return this.recorded;
  }

  get isWatching(): boolean {
    return this.cutOff.size === 0;
  }

  /** Kills at a write, counted from now on; at none if undefined. */
  killAt(point: KillPoint | undefined): void {
    this.killPoint = point;
    this.seen = 0;
  }

  kill(at = 'by hand'): void {
    if (this.isDead()) return;
    this.diedAt = at;
    this.cut();
    this.onDeath();
  }

  /** Cuts every open watch; the engine resumes from where it was. */
  cut(): void {
    for (const [feed, { path, end }] of this.open) {
      this.cutOff.add(path);
      feed.out.destroy(lost());
      end.abort();
    }
    this.open.clear();
  }

  /** Ends every open watch with an expired version, so that everything is listed again. */
  expire(): void {
    for (const feed of this.open.keys()) feed.send(WatchLine.error(410, 'Expired'));
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requireAlive();
    const isWrite = request.method !== 'GET';
    const what = describeWrite(request);
    const fatal = isWrite && this.killPoint?.write === ++this.seen ? this.killPoint.when : undefined;
    this.requests++;
    if (isWrite) this.writes.push(what);
    if (fatal === 'before') this.kill(what);
    this.requireAlive();
    this.underWay++;
    try {
      const answer = await this.pass(request, () => this.inner.request(request));
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
    const list = [path, query.fieldSelector, query.labelSelector]
      .filter((one) => one !== undefined)
      .join('?');
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
    const listed: WatchLine[] = [];
    let isListing = isList;
    const feed = new EventFeed(answer.chunks, (line) => {
      if (isListing) {
        listed.push(line);
        if (!line.object.metadata.annotations?.[LISTED]) return 'pass';
        this.recorded.set(list, listed);
        isListing = false;
      }
      return line.type === 'ERROR' ? 'pass' : this.eventFault(path)(line);
    });
    this.open.set(feed, { path, end });
    this.cutOff.delete(path);
    end.signal.addEventListener('abort', () => this.open.delete(feed));
    return { ...answer, chunks: feed.out };
  }

  async close(): Promise<void> {
    await this.inner.close();
  }

  /** Reports whether it is dead; asked again after each await. */
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
  for (const { bytes } of lines) yield await Promise.resolve(Buffer.concat([bytes, NEWLINE]));
}

/** Returns `PATCH configmaps/web` of one to `/api/v1/namespaces/shop/configmaps/web`. */
export function describeWrite({ method, path }: ApiRequest): string {
  const parts = path.split('/').filter((part) => part !== '');
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3);
  return `${method} ${(rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest).join('/')}`;
}

/** Lines of a watch on their way to the engine. None overtakes another: what follows a late one is as late. */
class EventFeed {
  readonly out = new Readable({ objectMode: true, read: () => undefined });
  /** Resolves when everything so far has been passed on; undefined where nothing is late. */
  private late: Promise<unknown> | undefined;

  constructor(
    chunks: AsyncIterable<Uint8Array>,
    private readonly fault: EventFault,
  ) {
    // Nothing may read it any more when it breaks.
    this.out.on('error', () => undefined);
    void this.pump(chunks);
  }

  /** Sends an event after those that are on their way. */
  send({ bytes }: WatchLine, milliseconds = 0, copies = 1): void {
    const line = Buffer.concat([bytes, NEWLINE]);
    this.inTurn(milliseconds, () => {
      for (let left = copies; left > 0; left--) this.out.push(line);
    });
  }

  private async pump(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const splitter = new LineSplitter();
    try {
      for await (const chunk of chunks)
        for (const line of splitter.lines(chunk)) this.take(new WatchLine(line));
      this.inTurn(0, () => this.out.push(null));
    } catch (error) {
      this.out.destroy(error as Error);
    }
  }

  private take(line: WatchLine): void {
    const verdict = this.fault(line);
    if (verdict === 'lose') return;
    this.send(line, typeof verdict === 'number' ? verdict : 0, verdict === 'double' ? 2 : 1);
  }

  private inTurn(milliseconds: number, act: () => unknown): void {
    if (!this.late && milliseconds === 0) {
      act();
      return;
    }
    const due = delay(milliseconds, undefined, { ref: false });
    const turn = Promise.all([this.late, due]).then(() => {
      act();
      if (this.late === turn) this.late = undefined;
    });
    this.late = turn;
  }
}

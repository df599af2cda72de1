import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, constants, createSecureServer } from 'node:http2';
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import type { SandboxClient } from '../../sandbox/client.js';
import { paths } from '../../sandbox/layout.js';
import { LineSplitter } from '../../src/engine/watch/watch.js';
import { WatchLine } from '../../src/testing/watch-line.js';
import { everything, proxiedRequest } from './faults.js';
import type { EventFault, Fault, Matcher, ProxiedRequest } from './faults.js';
import { TcpFront } from './tcp-front.js';

/** Over HTTP/2 or HTTP/1.1, as the client speaks. */
type ClientRequest = Http2ServerRequest | IncomingMessage;
type ClientResponse = Http2ServerResponse | ServerResponse;

/** Record of a request. */
export interface RecordedRequest extends ProxiedRequest {
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The client has its answer, or has gone. @default - it is under way */
  endedAt?: number;
  /** @default - nothing was answered */
  status?: number;
}

/** One request and its answer, between the client and the API server. */
export class Exchange {
  readonly record: RecordedRequest;
  /** The connection that it came in on, by its port. */
  readonly port: number;
  private upstream: ClientHttp2Stream | undefined;
  private isSilent = false;
  private losesAnswer = false;
  /** The whole answer is on its way to the client. */
  isEnding = false;

  constructor(
    readonly request: ProxiedRequest,
    readonly incoming: ClientRequest,
    readonly response: ClientResponse,
    onEnd: () => void,
  ) {
    this.record = { ...request, startedAt: Date.now() };
    this.port = incoming.socket.remotePort ?? 0;
    response.on('close', () => {
      this.record.endedAt = Date.now();
      this.upstream?.close(constants.NGHTTP2_CANCEL);
      onEnd();
    });
    // What a client that has gone can't be told is no failure of the proxy.
    response.on('error', () => undefined);
    incoming.on('error', () => undefined);
  }

  get isOpen(): boolean {
    return this.record.endedAt === undefined && !this.response.destroyed;
  }

  /** The API server's side ends with the client's. */
  forwardedAs(upstream: ClientHttp2Stream): void {
    this.upstream = upstream;
  }

  /** The head of an answer. */
  begin(status: number, headers: Readonly<Record<string, string | string[]>>): void {
    if (!this.isOpen || this.response.headersSent) return;
    if (this.losesAnswer) {
      this.reset();
      return;
    }
    this.record.status = status;
    // One overload for both protocols, which differ in what they return alone.
    const response = this.response as ServerResponse;
    response.writeHead(status, headers);
    // The head of a watch travels before its first event.
    response.flushHeaders();
  }

  /** Returns whether more may be written at once. */
  write(bytes: Buffer): boolean {
    if (!this.isOpen || this.isSilent) return true;
    return (this.response as ServerResponse).write(bytes);
  }

  end(): void {
    this.isEnding = true;
    if (this.isOpen && !this.isSilent) this.response.end();
  }

  respond(status: number, headers: Readonly<Record<string, string>>, body: string | Buffer): void {
    this.begin(status, headers);
    this.isEnding = true;
    if (this.isOpen) (this.response as ServerResponse).end(body);
  }

  /** Breaks it off where it stands: the stream alone, if it is one of several on its connection. */
  reset(code: number = constants.NGHTTP2_INTERNAL_ERROR): void {
    if (!this.isOpen) return;
    if ('stream' in this.response) this.response.stream.close(code);
    else this.response.destroy();
  }

  /** It is broken off as soon as there is an answer, of which nothing arrives. */
  loseAnswer(): void {
    this.losesAnswer = true;
  }

  /** From now on nothing more is heard of it, not even its end; the connection itself works. */
  silence(): void {
    this.isSilent = true;
  }
}

/** The events of one watch on their way to the client. The faults are asked for each event, as they are then. */
class EventPipe {
  private readonly splitter = new LineSplitter();

  constructor(
    private readonly exchange: Exchange,
    private readonly faults: () => readonly EventFault[],
    private readonly onEvent: (line: WatchLine) => void,
  ) {}

  /** Returns whether more may be written at once. */
  write(chunk: Buffer): boolean {
    let ready = true;
    for (const bytes of this.splitter.lines(chunk)) {
      const line = new WatchLine(bytes);
      this.onEvent(line);
      const verdicts = this.faults().map((fault) => fault(line));
      if (!verdicts.includes('swallow')) ready = this.inject(line);
    }
    return ready;
  }

  /** Sends an event, which may be the proxy's own. */
  inject({ bytes }: WatchLine): boolean {
    return this.exchange.write(Buffer.concat([bytes, Buffer.from('\n')]));
  }

  end(): void {
    const rest = this.splitter.rest();
    if (rest.length > 0) this.exchange.write(rest);
    this.exchange.end();
  }
}

/** Room for what a slow client hasn't taken yet: one stream that stands still must not stop its neighbours. */
const WINDOW_BYTES = 16 * 2 ** 20;

/** Those that say something about one connection only. https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2 */
const PER_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'host'],
]);

interface Target {
  /** The API server's URL. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
}

/** A connection to the API server; one for each of a client's, so that both ends of it mean the same. */
class Upstream {
  private readonly session: ClientHttp2Session;
  private readonly authority: string;

  /**
   * @param onGoaway the API server wants no more requests here; those under way are finished
   * @param onEnd the connection is over
   */
  constructor({ url, ca }: Target, onGoaway: () => void, onEnd: () => void) {
    this.authority = new URL(url).host;
    this.session = connect(url, { ca, settings: { initialWindowSize: WINDOW_BYTES, enablePush: false } });
    this.session.once('connect', () => {
      // It may have been given up before it was there.
      if (!this.session.destroyed) this.session.setLocalWindowSize(WINDOW_BYTES);
    });
    this.session.on('goaway', onGoaway);
    this.session.on('error', () => undefined);
    this.session.once('close', onEnd);
  }

  /** Passes a request on, and the answer back. */
  forward(exchange: Exchange, events: EventPipe | undefined): void {
    const { incoming } = exchange;
    if (this.session.closed || this.session.destroyed) {
      exchange.reset();
      return;
    }
    const head = {
      ...passedOn(incoming.headers),
      ':method': incoming.method ?? 'GET',
      ':path': incoming.url ?? '/',
      ':scheme': 'https',
      ':authority': this.authority,
    };
    // Said explicitly, since Node would leave out the body of a DELETE, which holds the preconditions.
    const stream = this.session.request(head, { endStream: false });
    exchange.forwardedAs(stream);
    stream.on('response', (headers) => {
      const status = Number(headers[':status']);
      exchange.begin(status, passedOn(headers));
      const write = (chunk: Buffer): boolean =>
        // A watch that is refused has an answer like any other.
        events && status === 200 && headers['content-encoding'] === undefined
          ? events.write(chunk)
          : exchange.write(chunk);
      stream.on('data', (chunk: Buffer) => {
        if (write(chunk)) return;
        stream.pause();
        exchange.response.once('drain', () => stream.resume());
      });
    });
    stream.on('end', () => {
      if (stream.rstCode !== 0 || stream.aborted) return;
      if (events) events.end();
      else exchange.end();
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      if (stream.rstCode !== 0 || stream.aborted || !exchange.response.headersSent)
        exchange.reset(stream.rstCode || undefined);
    });
    incoming.pipe(stream);
  }

  close(): void {
    this.session.destroy();
  }
}

function passedOn(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers))
    if (!name.startsWith(':') && !PER_CONNECTION.has(name) && value !== undefined) kept[name] = value;
  return kept as Record<string, string | string[]>;
}

/** A fault that is in force until it is removed. */
export interface Rule {
  /** How many requests or events it was asked about. */
  readonly hits: number;
  remove(): void;
}

interface ActiveRule<T> extends Rule {
  readonly matches: Matcher;
  readonly fault: T;
  hits: number;
}

function addTo<T>(rules: ActiveRule<T>[], matches: Matcher, fault: T): Rule {
  const rule: ActiveRule<T> = {
    ...{ matches, fault, hits: 0 },
    remove: () => {
      const index = rules.indexOf(rule);
      if (index >= 0) rules.splice(index, 1);
    },
  };
  rules.push(rule);
  return rule;
}

/** The API server's own default. */
const CONCURRENT_STREAMS = 100;

/**
 * Stands between a controller and its API server, and does to the traffic what networks and servers do.
 *
 * **Guarantees.** Without faults it is transparent: status, headers and bodies are passed on as they come, streamed,
 * at the pace of the slower side; the end of a stream or of a connection on one side is the end of it on the other.
 * Every request is on record, those that a fault has answered included.
 *
 * **Assumptions.** The API server speaks HTTP/2; the client may speak HTTP/1.1.
 *
 * **Caveats.** Upgraded connections (`kubectl exec`) and trailers aren't passed on.
 */
export class FaultProxy implements AsyncDisposable {
  /** Every request so far, oldest first. */
  readonly requests: RecordedRequest[] = [];
  private readonly front: TcpFront;
  private readonly faults: ActiveRule<Fault>[] = [];
  private readonly eventFaults: ActiveRule<EventFault>[] = [];
  private readonly listeners = new Set<(exchange: Exchange, line: WatchLine) => void>();
  private readonly open = new Map<Exchange, EventPipe | undefined>();
  /** How to end connections in good order: once what is under way on them is finished. */
  private readonly goodbyes = new Map<number, () => void>();
  private readonly upstreams = new Map<number, Upstream>();

  private constructor(
    private readonly server: Http2SecureServer,
    private readonly target: Target,
  ) {
    this.front = new TcpFront((server.address() as AddressInfo).port);
    server.on('request', (request: ClientRequest, response: ClientResponse) => {
      this.handle(request, response);
    });
    server.on('secureConnection', (socket: TLSSocket) => {
      const port = socket.remotePort ?? 0;
      // HTTP/1.1 has no better way; for HTTP/2 the session is known by now.
      if (!this.goodbyes.has(port)) this.goodbyes.set(port, () => socket.end());
      socket.on('error', () => undefined);
      socket.once('close', () => {
        this.goodbyes.delete(port);
        this.upstreams.get(port)?.close();
      });
    });
    server.on('session', (session) => {
      this.goodbyes.set(session.socket.remotePort ?? 0, () => {
        session.close();
      });
      session.on('error', () => undefined);
    });
  }

  /** Listens on a free port of 127.0.0.1, with the API server's certificate. */
  static async start(sandbox: SandboxClient): Promise<FaultProxy> {
    const { ca: caFile, certificates } = paths(sandbox);
    const ca = readFileSync(caFile, 'utf8');
    const key = readFileSync(join(certificates, 'apiserver.key'), 'utf8');
    const settings = { maxConcurrentStreams: CONCURRENT_STREAMS };
    const server = createSecureServer({ cert: ca, key, allowHTTP1: true, settings });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new FaultProxy(server, { url: sandbox.url, ca });
    await proxy.front.listen();
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${this.front.port}`;
  }

  /** Connections that clients have asked for so far; those that were refused can't be counted. */
  get connectionAttempts(): number {
    return this.front.attempts;
  }

  /** What happens to requests from now on. Faults are met in the order in which they were added. */
  on(matches: Matcher, fault: Fault): Rule {
    return addTo(this.faults, matches, fault);
  }

  /** What happens to the events of watches from now on, also of those that are open. */
  onEvents(matches: Matcher, fault: EventFault): Rule {
    return addTo(this.eventFaults, matches, fault);
  }

  /** Calls back with each event that the API server sends. Returns how to stop that. */
  listen(matches: Matcher, heard: (line: WatchLine) => void): () => void {
    const listener = ({ request }: Exchange, line: WatchLine): void => {
      if (matches(request)) heard(line);
    };
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The requests that are under way. */
  underWay(matches: Matcher = everything): Exchange[] {
    return [...this.open.keys()].filter(({ request }) => matches(request));
  }

  /** Sends an event of its own on the watches that are open. Returns on how many. */
  inject(matches: Matcher, line: WatchLine): number {
    const pipes = this.underWay(matches).flatMap((exchange) => this.open.get(exchange) ?? []);
    for (const pipe of pipes) pipe.inject(line);
    return pipes.length;
  }

  /** Resets streams in the middle. Returns how many. */
  cut(matches: Matcher = everything): number {
    const exchanges = this.underWay(matches);
    for (const exchange of exchanges) exchange.reset();
    return exchanges.length;
  }

  /** Resets whole connections: those that such requests are under way on. Returns how many. */
  cutConnections(matches: Matcher = everything): number {
    return this.eachConnection(matches, (port) => {
      this.front.destroy(port);
    });
  }

  /** Lets streams go silent, while their connections go on. Returns how many. */
  silence(matches: Matcher): number {
    const exchanges = this.underWay(matches);
    for (const exchange of exchanges) exchange.silence();
    return exchanges.length;
  }

  /** Lets whole connections go silent, so that nothing is answered, a ping neither. Returns how many. */
  freezeConnections(matches: Matcher = everything): number {
    return this.eachConnection(matches, (port) => {
      this.front.freeze(port);
    });
  }

  /** Connections are reset as soon as they are there, and counted, until `accept`. */
  turnAway(): void {
    this.front.turnAway();
  }

  async accept(): Promise<void> {
    await this.front.listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.front.refuse();
    for (const upstream of this.upstreams.values()) upstream.close();
    const closed = once(this.server, 'close');
    this.server.close();
    await closed;
  }

  private handle(incoming: ClientRequest, response: ClientResponse): void {
    const { method = 'GET', url = '/' } = incoming;
    const request = proxiedRequest(method, url);
    const exchange = new Exchange(request, incoming, response, () => this.open.delete(exchange));
    const events = request.isWatch ? this.eventPipe(exchange) : undefined;
    this.open.set(exchange, events);
    this.requests.push(exchange.record);
    this.pass(exchange, events, [...this.faults]);
  }

  private pass(
    exchange: Exchange,
    events: EventPipe | undefined,
    [rule, ...rest]: readonly ActiveRule<Fault>[],
  ): void {
    if (!exchange.isOpen) return;
    if (!rule) {
      this.upstreamOf(exchange.port).forward(exchange, events);
      return;
    }
    const next = (): void => {
      this.pass(exchange, events, rest);
    };
    if (rule.matches(exchange.request)) {
      rule.hits++;
      void rule.fault(exchange, next);
    } else {
      next();
    }
  }

  private eventPipe(exchange: Exchange): EventPipe {
    const faults = (): EventFault[] =>
      this.eventFaults
        .filter(({ matches }) => matches(exchange.request))
        .map((rule) => {
          rule.hits++;
          return rule.fault;
        });
    return new EventPipe(exchange, faults, (line) => {
      for (const listener of this.listeners) listener(exchange, line);
    });
  }

  private upstreamOf(port: number): Upstream {
    const known = this.upstreams.get(port);
    if (known) return known;
    const upstream = new Upstream(
      this.target,
      () => this.goodbyes.get(port)?.(),
      () => {
        this.upstreams.delete(port);
        this.upstreamEnded(port);
      },
    );
    this.upstreams.set(port, upstream);
    return upstream;
  }

  /** A connection that ends in the middle of something ends so on the client's side too. */
  private upstreamEnded(port: number): void {
    const cutOff = this.underWay().some((exchange) => exchange.port === port && !exchange.isEnding);
    if (cutOff) this.front.destroy(port);
    else this.goodbyes.get(port)?.();
  }

  private eachConnection(matches: Matcher, act: (port: number) => void): number {
    const ports = new Set(this.underWay(matches).map(({ port }) => port));
    for (const port of ports) act(port);
    return ports.size;
  }
}

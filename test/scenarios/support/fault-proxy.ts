import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { EventPipe } from './event-pipe.js';
import { Exchange } from './exchange.js';
import type { ClientRequest, ClientResponse, RecordedRequest } from './exchange.js';
import type { EventFault, Fault } from './faults.js';
import { everything, proxiedRequest } from './proxied-request.js';
import type { Matcher } from './proxied-request.js';
import { addTo } from './rules.js';
import type { ActiveRule, Rule } from './rules.js';
import { TcpFront } from './tcp-front.js';
import { Upstream } from './upstream.js';
import type { Target } from './upstream.js';
import type { WatchLine } from '../../../src/testing/watch-line.js';

/** Certificate of a server and its key, both PEM. */
interface ServingCertificate {
  readonly certificate: string;
  readonly key: string;
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

  /** Listens on a free port of 127.0.0.1, with the API server's certificate or another. */
  static async start(target: Target, { certificate, key }: ServingCertificate): Promise<FaultProxy> {
    const settings = { maxConcurrentStreams: CONCURRENT_STREAMS };
    const server = createSecureServer({ cert: certificate, key, allowHTTP1: true, settings });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new FaultProxy(server, target);
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

  /** Connections are refused, and those that are open are reset, until `accept`. */
  async refuse(): Promise<void> {
    await this.front.refuse();
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
    const { method = 'GET', url = '/', headers } = incoming;
    const request = proxiedRequest(method, url, headers['user-agent']);
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

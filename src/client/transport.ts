import { createHash } from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import { constants } from 'node:http2';
import type { ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Agent, buildConnector, Pool, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { messageOf } from '../contract/error.js';
import { systemClock, unlessAborted } from './clock.js';
import type { Clock } from './clock.js';
import { UserCredentials } from './credentials.js';
import type { Credentials, CredentialSource, TlsMaterial } from './credentials.js';
import type { ClusterAccess } from './kubeconfig.js';
import { CREDENTIALS, SERVER, WATCH } from './retry.js';

// An import would load all that `node:http` has, and with it Node's own copy of undici.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** A request to the API server; what is sent and received is JSON, untouched. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Begins with a slash; without query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** The media type of the answer. @default application/json */
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** Whether it keeps the lease, so nothing may delay it, and no fence holds it back. @default false */
  readonly lease?: boolean;
  /**
   * Called, synchronously, right before the request is written to its connection, on each attempt: what it throws is
   * what the request fails with, and then nothing has been sent. @default - requests may always be sent
   */
  readonly admit?: () => void;
}

interface ApiHead {
  readonly status: number;
  /** From the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** From the `Date` header: the server's clock, in whole seconds since the epoch. */
  readonly dateMilliseconds?: number;
}

export interface ApiResponse extends ApiHead {
  /** JSON, or text where the server answered with something else. */
  readonly body: unknown;
  /** Whether it is that of an earlier attempt, whose `Retry-After` isn't over: nothing was sent. @default false */
  readonly isRepeated?: true;
  /** The connection ended under a first attempt, which may have been carried out all the same. @default false */
  readonly isSecondTry?: true;
}

export interface ApiStream extends ApiHead {
  /** The body as it arrives; ends with the connection, and throws when it breaks. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The way to the API server. Tests put faults between. */
export interface Transport {
  /** Host and port of the server, for metrics and messages; requests name paths alone. */
  readonly host: string;
  /** @throws when there is no answer; an answer of whatever status is returned */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** For watches: they have connections of their own, so that nothing delays them. */
  stream(request: ApiRequest): Promise<ApiStream>;
  /**
   * Takes back, synchronously, what was handed to a connection and hasn't left this process; requests that wait for
   * an answer fail as well. Watches and the lease's calls go on.
   * @default - what was handed over may leave
   */
  withdraw?(): void;
  close(): Promise<void>;
}

/**
 * The head of an answer may come after its request was given up and before the server has heard of that. Node makes
 * another stream for it then, which undici doesn't know: with nothing listening to its `error`, the end of the connection
 * would end the process.
 */
subscribe('http2.client.stream.created', (message) => {
  const { stream, headers } = message as { stream: ClientHttp2Stream; headers: object };
  if (!(':status' in headers)) return;
  stream.on('error', () => undefined);
  stream.close(constants.NGHTTP2_CANCEL);
});

export interface TransportOptions {
  /** @default systemClock */
  readonly clock?: Clock;
  /** @default - those of the kubeconfig's user */
  readonly credentials?: CredentialSource;
  /**
   * Maximum number of connections, of HTTP/1.1: for many large bodies at once, of which a session of HTTP/2
   * takes 10 MB. @default - HTTP/2
   */
  readonly http1Connections?: number;
  /** Bounds the time to connect, too. @default 45_000 */
  readonly answerTimeoutMilliseconds?: number;
  /** Takes each request that was sent, when it is over. */
  readonly sent?: (request: SentRequest) => void;
}

/** Request that was sent over a connection, without its headers and its body. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
  /** Status of the answer, or why there is none. */
  readonly outcome: number | Error;
  /** Time until the head of the answer. */
  readonly milliseconds: number;
}

interface Connection {
  readonly headers: Credentials['headers'];
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
  readonly tls: TlsMaterial;
  readonly tlsHash: string;
}

/**
 * Requests over shared connections, one set for watches and the lease, one for the rest, so that neither waits for the
 * other. Its guarantees are in docs/engine.md.
 *
 * HTTP/2 of undici joins headers of one name, by which two groups would become one: a user who is impersonated with several is
 * sent over HTTP/1.1.
 */
export class UndiciTransport implements Transport {
  readonly host: string;
  private readonly origin: string;
  /** Path at which the API begins, on a server that has more than one; without a slash at the end. */
  private readonly root: string;
  private readonly clock: Clock;
  private readonly answerTimeout: number;
  private readonly credentials: CredentialSource;
  private current: Connection | undefined;
  /** Time by the monotonic clock. */
  private readAt = 0;
  private refreshing: Promise<Connection> | undefined;
  private readonly closing = new AbortController();

  constructor(
    private readonly access: ClusterAccess,
    private readonly userAgent: string,
    private readonly options: TransportOptions = {},
  ) {
    this.clock = options.clock ?? systemClock;
    this.answerTimeout = options.answerTimeoutMilliseconds ?? SERVER.answerTimeout;
    this.credentials = options.credentials ?? new UserCredentials(access);
    const { origin, pathname, host } = new URL(access.cluster.server);
    this.origin = origin;
    this.root = pathname.replace(/(?<!\/)\/+$/, '');
    this.host = host;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    return this.authenticated(req, async (connection) => {
      const { signal, ...rest } = req;
      if (req.body === undefined || !signal) return this.exchange(req, connection);
      // Node may loop for ever, in native code, where a stream is ended before its body has left. So it isn't: what was
      // called off isn't sent any more, or nothing waits for its answer.
      const admit = (): void => {
        signal.throwIfAborted();
        req.admit?.();
      };
      return unlessAborted(this.exchange({ ...rest, admit }, connection), signal);
    });
  }

  async stream(req: ApiRequest): Promise<ApiStream> {
    return this.authenticated(req, async (connection) => {
      // A proxy may hold the head back until the first event, which may be a bookmark.
      const timeouts = { headersTimeout: WATCH.silence, bodyTimeout: 0 };
      const response = await this.dispatch(req, connection.watches, connection, timeouts);
      if (response.statusCode === 401) await response.body.dump();
      return { ...headOf(response), chunks: response.body };
    });
  }

  withdraw(): void {
    if (!this.current) return;
    const { requests, tls, headers } = this.current;
    this.current = { ...this.current, requests: this.agent(tls, headers) };
    void requests.destroy();
  }

  async close(): Promise<void> {
    this.closing.abort();
    const { current } = this;
    this.current = undefined;
    await Promise.all([current?.requests.destroy(), current?.watches.destroy()]);
  }

  /** Sends once more after a 401, where there are other credentials since. */
  private async authenticated<T extends ApiHead>(
    { signal }: ApiRequest,
    send: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const connection = await this.connection(signal);
    const answer = await send(connection);
    if (answer.status !== 401) return answer;
    // Another request may have found out before.
    if (!this.current || this.current === connection) {
      this.credentials.forget();
      const refreshed = this.refreshed().catch(() => connection);
      await unlessAborted(refreshed, signal);
    }
    return this.current && this.current !== connection ? send(this.current) : answer;
  }

  private async exchange(req: ApiRequest, connection: Connection): Promise<ApiResponse> {
    // Where many writes wait for their turn, the lease mustn't.
    const dispatcher = req.lease ? connection.watches : connection.requests;
    const timeouts = { headersTimeout: this.answerTimeout, bodyTimeout: this.answerTimeout };
    const response = await this.dispatch(req, dispatcher, connection, timeouts);
    const body = parseBody(await response.body.text());
    // undici takes an HTTP/2 stream that is reset in the middle of an answer for the end of the answer.
    if (typeof body === 'string' && String(response.headers['content-type']).startsWith('application/json'))
      throw new TruncatedAnswer();
    return { ...headOf(response), body };
  }

  private async dispatch(
    req: ApiRequest,
    dispatcher: Dispatcher,
    { headers }: Connection,
    timeouts: { readonly headersTimeout: number; readonly bodyTimeout: number },
  ): Promise<Dispatcher.ResponseData> {
    const began = this.clock.monotonic();
    const request = dispatcher.request({
      origin: this.origin,
      path: `${this.root}${req.path}`,
      method: req.method,
      ...timeouts,
      headers: {
        ...headers,
        accept: req.accept ?? 'application/json',
        'user-agent': this.userAgent,
        ...(req.body !== undefined && { 'content-type': req.contentType ?? 'application/json' }),
      },
      ...(req.query && { query: req.query }),
      ...(req.body !== undefined && { body: JSON.stringify(req.body) }),
      ...(req.signal && { signal: req.signal }),
      ...(req.admit && { admit: req.admit }),
    });
    const { proxy } = this.access;
    // Such requests are forwarded, and not tunnelled, so the proxy is all that may not answer.
    const answer =
      proxy !== undefined && this.origin.startsWith('http:')
        ? request.catch((error: unknown) => Promise.reject(new ProxyFailure(proxy, error)))
        : request;
    const { sent } = this.options;
    if (sent) {
      const over = (outcome: number | Error): void => {
        const query = req.query ? `?${new URLSearchParams(req.query).toString()}` : '';
        const url = `${this.origin}${this.root}${req.path}${query}`;
        sent({ method: req.method, url, outcome, milliseconds: Math.round(this.clock.monotonic() - began) });
      };
      answer.then(({ statusCode }) => {
        over(statusCode);
      }, over);
    }
    return answer;
  }

  /** Only the first credentials are waited for. */
  private async connection(signal: AbortSignal | undefined): Promise<Connection> {
    const { current } = this;
    if (!current) return unlessAborted(this.refreshed(), signal);
    if (this.clock.monotonic() - this.readAt >= CREDENTIALS.lifetime)
      void this.refreshed().catch(() => undefined);
    return current;
  }

  /** Many requests may find the credentials stale at once: they share one refresh. */
  private refreshed(): Promise<Connection> {
    this.refreshing ??= this.refresh().finally(() => {
      // Nor is a plugin that fails asked by every request.
      this.readAt = this.clock.monotonic();
      this.refreshing = undefined;
    });
    return this.refreshing;
  }

  private async refresh(): Promise<Connection> {
    const { signal } = this.closing;
    const { tls, headers } = await unlessAborted(this.credentials.read(signal), signal);
    signal.throwIfAborted();
    const tlsHash = createHash('sha256').update(JSON.stringify(tls)).digest('hex');
    const before = this.current;
    if (before?.tlsHash === tlsHash) {
      if (!isDeepStrictEqual(before.headers, headers)) this.current = { ...before, headers };
    } else {
      const [requests, watches] = [this.agent(tls, headers), this.agent(tls, headers)];
      this.current = { headers, tls, tlsHash, requests, watches };
      // Closing waits for what is under way, which what was given the connection in this turn is by then.
      if (before)
        setImmediate(() => void Promise.allSettled([before.requests.close(), before.watches.close()]));
    }
    return this.current as Connection;
  }

  private agent(tls: TlsMaterial, headers: Credentials['headers']): Dispatcher {
    const { http1Connections: connections } = this.options;
    const isJoined = Object.values(headers).some((value) => typeof value !== 'string' && value.length > 1);
    const allowH2 = !isJoined && connections === undefined;
    const options = {
      allowH2,
      ...(connections && { connections }),
      pingInterval: SERVER.ping,
      headersTimeout: this.answerTimeout,
    };
    const { proxy } = this.access;
    const connect = buildConnector({
      ...tls,
      allowH2,
      timeout: Math.min(SERVER.connectTimeout, this.answerTimeout),
    });
    const agent = proxy
      ? new ProxyAgent({
          ...{ ...options, uri: proxy, requestTls: { ...tls, allowH2 } },
          clientFactory: (origin, its) =>
            new ProxyClient(proxy, origin, { ...its, headersTimeout: this.answerTimeout }),
        })
      : new Agent({ ...options, connect: endingSilent(connect, this.clock) });
    return agent.compose(admitting);
  }
}

/** JSON where it is JSON, else the text itself. */
export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns the first reason where several addresses were tried. */
export function firstCause(error: unknown): string {
  return messageOf(error instanceof AggregateError ? (error.errors[0] ?? error) : error);
}

/** Reason why a proxy lets no request through. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure';
  static readonly remedy = 'check proxy-url of the cluster in the kubeconfig, or HTTPS_PROXY and NO_PROXY';

  /** @param proxy its credentials are left out */
  constructor(proxy: string, cause: unknown) {
    super(`The proxy ${new URL(proxy).host} lets nothing through: ${firstCause(cause)}`, { cause });
  }
}

/** Tunnels through a proxy; a tunnel that can't be had is the proxy's failure, and not that of the server behind it. */
class ProxyClient extends Pool {
  constructor(proxy: string, origin: URL, options: object) {
    super(origin, options);
    const tunnel = async (to: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
      const answer = await super.connect(to).catch((error: unknown) => {
        throw new ProxyFailure(proxy, error);
      });
      if (answer.statusCode === 200) return answer;
      answer.socket.on('error', () => undefined).destroy();
      throw new ProxyFailure(
        proxy,
        `it answers ${answer.statusCode} ${STATUS_CODES[answer.statusCode] ?? ''}`,
      );
    };
    Object.assign(this, { connect: tunnel });
  }
}

function headOf({ statusCode, headers }: Dispatcher.ResponseData): ApiHead {
  const seconds = Number(headers['retry-after'] ?? NaN);
  const date = Date.parse(String(headers.date));
  return {
    status: statusCode,
    ...(Number.isFinite(seconds) && { retryAfterSeconds: seconds }),
    ...(Number.isFinite(date) && { dateMilliseconds: date }),
  };
}

/**
 * Ends HTTP/2 connections of which nothing is heard, not even the answer to a ping, within 45 to 60 s.
 *
 * undici sends pings but doesn't mind when they aren't answered, so a peer that vanishes without a word would keep its
 * watches waiting, and their successors after them.
 */
function endingSilent(connect: buildConnector.connector, clock: Clock): buildConnector.connector {
  return (options, callback) => {
    connect(options, (...result) => {
      const [, socket] = result;
      if (socket && 'alpnProtocol' in socket && socket.alpnProtocol === 'h2') endSilent(socket, clock);
      callback(...result);
    });
  };
}

function endSilent(socket: Socket, clock: Clock, heard = socket.bytesRead, silent = 0): void {
  const timer = clock.setTimer(SERVER.ping, () => {
    socket.off('close', timer.cancel);
    // Counted, and not timed, for the process may have been stopped.
    const pings = socket.bytesRead === heard ? silent + 1 : 0;
    if (pings < SERVER.silentPings) endSilent(socket, clock, socket.bytesRead, pings);
    else socket.destroy(Object.assign(new Error('The connection went silent'), { code: 'UND_ERR_SOCKET' }));
  });
  socket.once('close', timer.cancel);
}

/**
 * Lets undici ask `admit` of a request's options at the one moment that counts: when a request leaves undici's queues,
 * in which it may have waited for a connection or for others, and right before it is written to the socket. undici
 * calls `onRequestStart` then; what that throws fails the request, and nothing is written.
 * @see https://undici.nodejs.org/#/docs/api/Dispatcher.md#parameter-dispatchhandler
 */
export function admitting(dispatch: Dispatcher['dispatch']): Dispatcher['dispatch'] {
  return (options, handler) => {
    const { admit } = options as { admit?: () => void };
    if (admit) {
      const start = handler.onRequestStart?.bind(handler);
      handler.onRequestStart = (...args) => {
        admit();
        start?.(...args);
      };
    }
    return dispatch(options, handler);
  };
}

/** The answer began and then ended in the middle, which undici reports as if it were whole. */
export class TruncatedAnswer extends Error {
  constructor() {
    super('The connection ended in the middle of the answer');
    this.name = 'TruncatedAnswer';
  }
}

/** Errors of sockets and HTTP/2 sessions that end; not of names that aren't found, connections refused, or slow answers. */
const LOST = /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_INFO|UND_ERR_CLOSED|ERR_HTTP2_.*)$/;

/** Reports whether the connection ended under a request: a server that restarts or sends GOAWAY, or a balancer between. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof TruncatedAnswer) return true;
  return error instanceof Error && 'code' in error && LOST.test(String(error.code));
}

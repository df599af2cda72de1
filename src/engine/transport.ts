import { createHash } from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import { constants } from 'node:http2';
import type { ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Agent, ProxyAgent, buildConnector } from 'undici';
import type { Dispatcher } from 'undici';
import { parseBody } from './api.js';
import { systemClock, unlessAborted } from './clock.js';
import type { Clock, Timer } from './clock.js';
import { UserCredentials } from './credentials.js';
import type { CredentialSource, Credentials, TlsMaterial } from './credentials.js';
import type { ClusterAccess } from './kubeconfig.js';

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
  readonly signal?: AbortSignal;
  /** It keeps the lease, so nothing may delay it, and no fence holds it back. @default false */
  readonly lease?: boolean;
  /**
   * Called, synchronously, right before the request is handed to its connection, and again whenever it is sent anew:
   * what it throws is what the request fails with, and then nothing has been sent. @default - it may always be sent
   */
  readonly admit?: () => void;
}

export interface ApiResponse {
  readonly status: number;
  /** JSON, or text where the server answered with something else. */
  readonly body: unknown;
  /** From the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** From the `Date` header: the server's clock, in whole seconds since the epoch. */
  readonly dateMilliseconds?: number;
  /** It is that of an earlier try, whose `Retry-After` isn't over: nothing was sent. @default false */
  readonly isRepeated?: true;
  /** The connection ended under a first try, which may have got through all the same. @default false */
  readonly isSecondTry?: true;
}

export interface ApiStream {
  readonly status: number;
  readonly retryAfterSeconds?: number;
  /** As of an ApiResponse. */
  readonly dateMilliseconds?: number;
  /** The body as it arrives; ends with the connection, and throws when it breaks. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The way to the API server. Tests put faults between. */
export interface Transport {
  /** Host and port of the server, for metrics. */
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
 * How long credentials are used before they are asked for again; bound tokens on disk are rotated well before they
 * expire.
 */
const CREDENTIALS_MILLISECONDS = 30_000;
const CONNECT_TIMEOUT_MILLISECONDS = 10_000;
const ANSWER_TIMEOUT_MILLISECONDS = 30_000;

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

interface Connection {
  readonly headers: Credentials['headers'];
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
}

interface Current {
  readonly connection: Connection;
  readonly tls: TlsMaterial;
  readonly tlsHash: string;
  /** By the monotonic clock. */
  readonly readAt: number;
}

/**
 * Requests over shared connections, one set for watches and the lease, one for the rest, so that neither waits for the
 * other.
 *
 * **Guarantees.** Credentials are read again every half minute, and the connections are replaced when a certificate or
 * key has changed; requests under way finish on the old ones. Until new credentials are there, however long that takes,
 * the earlier ones are used. A request that is answered with 401 is sent once more, with credentials that were read
 * since; where none can be had, 401 is the answer. Every hundred watches have a connection, which is as many as an API
 * server takes on one. A connection of which nothing is heard is ended within a minute. An answer is whole, or there is
 * none.
 *
 * **Caveats.** HTTP/2 of undici joins headers of one name, by which two groups would become one: a user who is impersonated
 * with several is sent over HTTP/1.1. A silent connection through a proxy, or of HTTP/1.1, is only found out when a
 * request on it isn't answered.
 */
export class UndiciTransport implements Transport {
  readonly host: string;
  private readonly origin: string;
  /** Where the API begins, on a server that has more than one; without a slash at the end. */
  private readonly root: string;
  private current: Current | undefined;
  private refreshing: Promise<Connection> | undefined;
  private readonly closing = new AbortController();

  constructor(
    private readonly access: ClusterAccess,
    private readonly userAgent: string,
    private readonly clock: Clock = systemClock,
    private readonly credentials: CredentialSource = new UserCredentials(access),
  ) {
    const { origin, pathname, host } = new URL(access.cluster.server);
    this.origin = origin;
    this.root = pathname.replace(/(?<!\/)\/+$/, '');
    this.host = host;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    const connection = await this.connection(req.signal);
    const answer = await this.ask(req, connection);
    const renewed = answer.status === 401 && (await this.renewed(connection, req.signal));
    return renewed ? this.ask(req, renewed) : answer;
  }

  async stream(req: ApiRequest): Promise<ApiStream> {
    const connection = await this.connection(req.signal);
    const response = await this.open(req, connection);
    const renewed = response.statusCode === 401 && (await this.renewed(connection, req.signal));
    if (!renewed) return streamOf(response);
    await response.body.dump();
    return streamOf(await this.open(req, renewed));
  }

  async close(): Promise<void> {
    this.closing.abort();
    const connection = this.current?.connection;
    this.current = undefined;
    await Promise.all([connection?.requests.destroy(), connection?.watches.destroy()]);
  }

  private async ask(req: ApiRequest, connection: Connection): Promise<ApiResponse> {
    const { signal, ...rest } = req;
    if (req.body === undefined || !signal) return this.exchange(req, connection);
    // Node may loop for ever, in native code, where a stream is ended before its body has left. So it isn't: what was
    // called off isn't sent any more, or nothing waits for its answer.
    const admit = (): void => {
      signal.throwIfAborted();
      req.admit?.();
    };
    return unlessAborted(this.exchange({ ...rest, admit }, connection), signal);
  }

  private async exchange(req: ApiRequest, { requests, watches, headers }: Connection): Promise<ApiResponse> {
    // Where many writes wait for their turn, the lease mustn't.
    const response = await this.dispatch(req, req.lease ? watches : requests, headers);
    const text = await response.body.text();
    const body = parseBody(text);
    // undici takes an HTTP/2 stream that is reset in the middle of an answer for the end of the answer.
    if (typeof body === 'string' && isJson(response.headers)) throw new TruncatedAnswer();
    return { status: response.statusCode, body, ...toldBy(response.headers) };
  }

  private async open(req: ApiRequest, { watches, headers }: Connection): Promise<Dispatcher.ResponseData> {
    return this.dispatch(req, watches, headers, { bodyTimeout: 0 });
  }

  withdraw(): void {
    if (!this.current) return;
    const { connection, tls } = this.current;
    this.current = {
      ...this.current,
      connection: { ...connection, requests: this.agent(tls, connection.headers) },
    };
    void connection.requests.destroy();
  }

  private async dispatch(
    req: ApiRequest,
    dispatcher: Dispatcher,
    headers: Credentials['headers'],
    options: { bodyTimeout?: number } = {},
  ): Promise<Dispatcher.ResponseData> {
    return dispatcher.request({
      origin: this.origin,
      path: `${this.root}${req.path}`,
      method: req.method,
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
      ...options,
    });
  }

  /** Only the first credentials are waited for. */
  private async connection(signal: AbortSignal | undefined): Promise<Connection> {
    const { current } = this;
    if (!current) return unlessAborted(this.refreshed(), signal);
    const age = this.clock.monotonic() - current.readAt;
    if (age >= CREDENTIALS_MILLISECONDS) void this.refreshed().catch(() => undefined);
    return current.connection;
  }

  /** A connection after one whose credentials weren't accepted, if there is one. */
  private async renewed(
    refused: Connection,
    signal: AbortSignal | undefined,
  ): Promise<Connection | undefined> {
    // Another request may have found out before.
    if (this.current && this.current.connection !== refused) return this.current.connection;
    this.credentials.forget();
    const renewed = await unlessAborted(
      this.refreshed().catch(() => undefined),
      signal,
    );
    return renewed === refused ? undefined : renewed;
  }

  /** Many requests may find the credentials stale at once: they share one refresh. */
  private refreshed(): Promise<Connection> {
    this.refreshing ??= this.refresh()
      .catch((error: unknown) => {
        // Nor is a plugin that fails asked by every request.
        if (this.current) this.current = { ...this.current, readAt: this.clock.monotonic() };
        throw error;
      })
      .finally(() => {
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
    const connection: Connection =
      before?.tlsHash !== tlsHash
        ? { headers, requests: this.agent(tls, headers), watches: this.agent(tls, headers) }
        : isDeepStrictEqual(before.connection.headers, headers)
          ? before.connection
          : { ...before.connection, headers };
    this.current = { connection, tls, tlsHash, readAt: this.clock.monotonic() };
    if (before && before.tlsHash !== tlsHash) {
      const { requests, watches } = before.connection;
      // Closing waits for what is under way, which what was given the connection in this turn is by then.
      setImmediate(() => void Promise.allSettled([requests.close(), watches.close()]));
    }
    return connection;
  }

  private agent(tls: TlsMaterial, headers: Credentials['headers']): Dispatcher {
    const allowH2 = !Object.values(headers).some((value) => typeof value !== 'string' && value.length > 1);
    const options = {
      allowH2,
      pingInterval: PING_MILLISECONDS,
      headersTimeout: ANSWER_TIMEOUT_MILLISECONDS,
      bodyTimeout: ANSWER_TIMEOUT_MILLISECONDS,
    };
    const { proxy } = this.access;
    const connect = buildConnector({ ...tls, allowH2, timeout: CONNECT_TIMEOUT_MILLISECONDS });
    const agent = proxy
      ? new ProxyAgent({ ...options, uri: proxy, requestTls: { ...tls, allowH2 } })
      : new Agent({ ...options, connect: endingSilent(connect, this.clock) });
    return agent.compose(admitting);
  }
}

function streamOf({ statusCode, body, headers }: Dispatcher.ResponseData): ApiStream {
  return { status: statusCode, chunks: body, ...toldBy(headers) };
}

function isJson(headers: Dispatcher.ResponseData['headers']): boolean {
  return String(headers['content-type']).startsWith('application/json');
}

let lastDate = { text: '', milliseconds: NaN };

/** The header changes once a second, and V8 takes its time for dates that aren't ISO 8601. */
function dateOf(text: string): number {
  if (text !== lastDate.text) lastDate = { text, milliseconds: Date.parse(text) };
  return lastDate.milliseconds;
}

/** What the server tells beside its answer. */
function toldBy(headers: Dispatcher.ResponseData['headers']): {
  retryAfterSeconds?: number;
  dateMilliseconds?: number;
} {
  const seconds = Number(headers['retry-after'] ?? NaN);
  const date = dateOf(String(headers.date));
  return {
    ...(Number.isFinite(seconds) && { retryAfterSeconds: seconds }),
    ...(Number.isFinite(date) && { dateMilliseconds: date }),
  };
}

/** How often a ping asks for a sign of life. */
const PING_MILLISECONDS = 15_000;
/** Looks at a connection, one a ping, that have to find nothing new; counted, for a process may have been stopped. */
const SILENT_LOOKS = 3;

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
      if (socket && 'alpnProtocol' in socket && socket.alpnProtocol === 'h2') listen(socket, clock);
      callback(...result);
    });
  };
}

function listen(socket: Socket, clock: Clock): void {
  let heard = socket.bytesRead;
  let silentLooks = 0;
  const look = (): void => {
    silentLooks = socket.bytesRead === heard ? silentLooks + 1 : 0;
    heard = socket.bytesRead;
    if (silentLooks < SILENT_LOOKS) timer = clock.setTimer(PING_MILLISECONDS, look);
    else socket.destroy(Object.assign(new Error('The connection went silent'), { code: 'UND_ERR_SOCKET' }));
  };
  let timer: Timer = clock.setTimer(PING_MILLISECONDS, look);
  socket.once('close', () => {
    timer.cancel();
  });
}

type Dispatch = Dispatcher['dispatch'];

/**
 * Lets undici ask `admit` of a request's options at the one moment that counts: when a request leaves undici's queues,
 * in which it may have waited for a connection or for others, and right before it is written to the socket. undici
 * tells the handler of it by `onRequestStart`; what that throws fails the request, and nothing is written.
 * @see https://undici.nodejs.org/#/docs/api/Dispatcher.md#parameter-dispatchhandler
 */
export function admitting(dispatch: Dispatch): Dispatch {
  return (options, handler) => {
    const { admit } = options as { admit?: () => void };
    return dispatch(options, admit ? new Admitted(handler, admit) : handler);
  };
}

/** Passes everything on. */
class Admitted implements Dispatcher.DispatchHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly admit: () => void,
  ) {}

  onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>): void {
    this.admit();
    this.handler.onRequestStart?.(...args);
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>): void {
    this.handler.onRequestUpgrade?.(...args);
  }

  onResponseStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    this.handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseData']>>): void {
    this.handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.handler.onResponseEnd?.(...args);
  }

  onResponseError(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseError']>>): void {
    this.handler.onResponseError?.(...args);
  }
}

/** Of sockets and HTTP/2 sessions that end; not of names that aren't found, connections refused, or slow answers. */
const CODES: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_INFO', 'UND_ERR_CLOSED'];

/** The answer began and then ended in the middle, which undici reports as if it were whole. */
export class TruncatedAnswer extends Error {
  constructor() {
    super('The connection ended in the middle of the answer');
    this.name = 'TruncatedAnswer';
  }
}

/** The connection ended under a request: a server that restarts or sends GOAWAY, or a balancer between. */
export function isConnectionLoss(error: unknown): boolean {
  if (error instanceof TruncatedAnswer) return true;
  if (!(error instanceof Error) || !('code' in error)) return false;
  const { code } = error;
  return CODES.includes(code) || (typeof code === 'string' && code.startsWith('ERR_HTTP2_'));
}

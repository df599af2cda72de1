import { createHash } from 'node:crypto';
import type { KubeConfig } from '@kubernetes/client-node';
import { Agent, buildConnector, ProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { OperatorError } from '../contract/error.js';
import { parseBody } from './api.js';
import { admitting } from './admitting.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { TruncatedAnswer } from './connection-loss.js';
import { endingSilent, PING_MILLISECONDS } from './silent-connection.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** How long credentials are used before they are asked for again; bound tokens on disk are rotated well before they expire. */
const CREDENTIALS_MILLISECONDS = 30_000;
const CONNECT_TIMEOUT_MILLISECONDS = 10_000;
const ANSWER_TIMEOUT_MILLISECONDS = 30_000;

interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

interface Connection {
  readonly headers: Readonly<Record<string, string>>;
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
}

/**
 * Requests over shared connections, one set for watches and the lease, one for the rest, so that neither waits for the
 * other.
 *
 * **Guarantees.** Credentials are read again every half minute, and the connections are replaced when a
 * certificate or key has changed; requests under way finish on the old ones. Every hundred watches have a connection,
 * which is as many as an API server takes on one. A connection of which nothing is heard is ended within a minute. An
 * answer is whole, or there is none.
 *
 * **Caveats.** Of the kubeconfig's proxies, HTTP and HTTPS ones are supported; a silent connection through one is only
 * found out when a request on it isn't answered.
 */
export class UndiciTransport implements Transport {
  readonly host: string;
  private readonly origin: string;
  /** Where the API begins, on a server that has more than one; without a slash at the end. */
  private readonly root: string;
  private current:
    { readonly connection: Connection; readonly tlsHash: string; readonly readAt: number } | undefined;
  private refreshing: Promise<Connection> | undefined;

  /** @throws OperatorError `NoCluster` if the current context names no cluster */
  constructor(
    private readonly kubeConfig: KubeConfig,
    private readonly userAgent: string,
    private readonly clock: Clock = systemClock,
  ) {
    const cluster = kubeConfig.getCurrentCluster();
    if (!cluster) {
      throw new OperatorError({
        reason: 'NoCluster',
        message: `The kubeconfig's current context ${JSON.stringify(kubeConfig.getCurrentContext())} names no cluster: choose one with --context`,
      });
    }
    const { origin, pathname, host } = new URL(cluster.server);
    this.origin = origin;
    this.root = pathname.replace(/\/+$/, '');
    this.host = host;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    const { requests, watches, headers } = await this.connection();
    // Where many writes wait for their turn, the lease mustn't.
    const response = await this.dispatch(req, req.lease ? watches : requests, headers);
    const text = await response.body.text();
    if (response.statusCode === 401) this.forgetCredentials();
    const body = parseBody(text);
    // undici takes an HTTP/2 stream that is reset in the middle of an answer for the end of the answer.
    if (typeof body === 'string' && isJson(response.headers)) throw new TruncatedAnswer();
    return { status: response.statusCode, body, ...retryAfter(response.headers) };
  }

  async stream(req: ApiRequest): Promise<ApiStream> {
    const { watches, headers } = await this.connection();
    const response = await this.dispatch(req, watches, headers, { bodyTimeout: 0 });
    if (response.statusCode === 401) this.forgetCredentials();
    return { status: response.statusCode, chunks: response.body, ...retryAfter(response.headers) };
  }

  async close(): Promise<void> {
    const connection = this.current?.connection;
    this.current = undefined;
    await Promise.all([connection?.requests.destroy(), connection?.watches.destroy()]);
  }

  /** They are read again for the next request; the connections stay, unless a certificate has changed. */
  private forgetCredentials(): void {
    if (this.current) this.current = { ...this.current, readAt: 0 };
  }

  private async dispatch(
    req: ApiRequest,
    dispatcher: Dispatcher,
    headers: Readonly<Record<string, string>>,
    options: { bodyTimeout?: number } = {},
  ): Promise<Dispatcher.ResponseData> {
    return dispatcher.request({
      origin: this.origin,
      path: `${this.root}${req.path}`,
      method: req.method,
      headers: {
        ...headers,
        accept: 'application/json',
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

  private connection(): Promise<Connection> {
    if (this.current && this.clock.now() - this.current.readAt < CREDENTIALS_MILLISECONDS) {
      return Promise.resolve(this.current.connection);
    }
    // Many requests may find the credentials stale at once: they share one refresh.
    this.refreshing ??= this.refresh().finally(() => {
      this.refreshing = undefined;
    });
    return this.refreshing;
  }

  private async refresh(): Promise<Connection> {
    const { tls, headers } = await this.credentials();
    const tlsHash = createHash('sha256').update(JSON.stringify(tls)).digest('hex');
    const before = this.current;
    const connection: Connection =
      before?.tlsHash === tlsHash
        ? { ...before.connection, headers }
        : { headers, requests: this.agent(tls), watches: this.agent(tls) };
    this.current = { connection, tlsHash, readAt: this.clock.now() };
    if (before && before.tlsHash !== tlsHash) {
      // Closing waits for what is under way.
      const { requests, watches } = before.connection;
      void Promise.allSettled([requests.close(), watches.close()]);
    }
    return connection;
  }

  /** Only headers and TLS material are taken from client-node, which would open a connection for every request. */
  private async credentials(): Promise<{ tls: TlsMaterial; headers: Record<string, string> }> {
    const options: TlsMaterial & { headers?: Record<string, unknown>; auth?: string | null } = {};
    await this.kubeConfig.applyToHTTPSOptions(options);
    const headers = Object.fromEntries(
      Object.entries(options.headers ?? {})
        .filter(([name]) => name.toLowerCase() !== 'user-agent')
        .map(([name, value]) => [name.toLowerCase(), String(value)]),
    );
    if (options.auth && !('authorization' in headers))
      headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const tls = Object.fromEntries(
      Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(
        ([, value]) => value !== undefined,
      ),
    );
    return { tls, headers };
  }

  private agent(tls: TlsMaterial): Dispatcher {
    const options = {
      allowH2: true,
      pingInterval: PING_MILLISECONDS,
      headersTimeout: ANSWER_TIMEOUT_MILLISECONDS,
      bodyTimeout: ANSWER_TIMEOUT_MILLISECONDS,
    };
    const proxy = this.kubeConfig.getCurrentCluster()?.proxyUrl;
    const connect = buildConnector({ ...tls, allowH2: true, timeout: CONNECT_TIMEOUT_MILLISECONDS });
    const agent = proxy
      ? new ProxyAgent({ ...options, uri: proxy, requestTls: { ...tls } })
      : new Agent({ ...options, connect: endingSilent(connect, this.clock) });
    return agent.compose(admitting);
  }
}

function isJson(headers: Dispatcher.ResponseData['headers']): boolean {
  return String(headers['content-type']).startsWith('application/json');
}

function retryAfter(headers: Dispatcher.ResponseData['headers']): { retryAfterSeconds?: number } {
  const seconds = Number(headers['retry-after']);
  return Number.isFinite(seconds) && headers['retry-after'] !== undefined
    ? { retryAfterSeconds: seconds }
    : {};
}

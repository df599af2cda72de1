import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Server, ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { OperatorError } from '../contract/error.js';
import type { ServingCertificate } from './certificate.js';

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** @default text/plain; charset=utf-8 */
  readonly contentType?: string;
}

/** Answers by path. */
export type Routes = Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>>;

/** Returns a function that gives one answer to all who ask within a second. */
export function onceASecond(
  make: () => Promise<Answer>,
  now = () => performance.now(),
): () => Promise<Answer> {
  let last = { at: -Infinity, answer: undefined as Promise<Answer> | undefined };
  return () => {
    const { at, answer = make() } = now() - last.at < 1_000 ? last : { at: now() };
    last = { at, answer };
    return answer;
  };
}

/** Limits of one client, by its address; a scraper and the kubelet take a hundredth of them. */
const CLIENT = { connections: 16, turnMilliseconds: 20, burst: 50 };
/** Number of clients from which on those that have no connection are forgotten. */
const MAX_CLIENTS = 1_000;

/** Shares the time of the process among clients: one that reaches a port must not keep it from its work. */
export class Clients {
  private readonly known = new Map<string, { connections: number; turn: number }>();

  constructor(private readonly now = () => performance.now()) {}

  /** Takes a turn. @returns the time until it comes, in milliseconds */
  turnOf(address: string): number {
    const [client, now] = [this.client(address), this.now()];
    const earliest = now - CLIENT.burst * CLIENT.turnMilliseconds;
    client.turn = Math.max(client.turn, earliest) + CLIENT.turnMilliseconds;
    return Math.max(0, client.turn - now);
  }

  /** Takes a turn for a connection; reports whether there is one for it. */
  connect(address: string): boolean {
    const client = this.client(address);
    if (client.connections >= CLIENT.connections || client.turn > this.now()) return false;
    this.turnOf(address);
    client.connections++;
    return true;
  }

  disconnected(address: string): void {
    this.client(address).connections--;
  }

  private client(address: string): { connections: number; turn: number } {
    if (this.known.size > MAX_CLIENTS)
      for (const [other, { connections }] of this.known) if (connections === 0) this.known.delete(other);
    const client = this.known.get(address) ?? { connections: 0, turn: 0 };
    this.known.set(address, client);
    return client;
  }
}

export interface HttpServer {
  /** The port that is listened on; differs from the one asked for only if that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

export interface ServeOptions {
  /** How long a client may take to send its request, or to read the answer. @default 10_000 */
  readonly timeoutMilliseconds?: number;
  /** Serves HTTPS with it. @default - plain HTTP */
  readonly certificate?: ServingCertificate;
  /** Returns the answer to a request that is refused, before its route is asked. @default - none is refused */
  readonly refusal?: (
    authorization: string | undefined,
    path: string,
    source: string | undefined,
  ) => Promise<Answer | undefined>;
}

/**
 * Serves a few read-only paths, and nothing else.
 * @param address `host:port` or `:port`, the latter on all interfaces
 * @param flag the option that the address comes from, for messages
 * @throws OperatorError `InvalidInput` if the address isn't one, or can't be listened on
 */
export async function serveHttp(
  address: string,
  flag: string,
  routes: Routes,
  { timeoutMilliseconds = 10_000, certificate, refusal }: ServeOptions = {},
): Promise<HttpServer> {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    const what = `${flag} ${JSON.stringify(address)} is not an address`;
    const message = `${what}: write HOST:PORT or :PORT, or 0 to turn it off`;
    throw new OperatorError({ reason: 'InvalidInput', message });
  }
  const limits = {
    handshakeTimeout: timeoutMilliseconds,
    headersTimeout: timeoutMilliseconds,
    requestTimeout: timeoutMilliseconds,
    connectionsCheckingInterval: timeoutMilliseconds,
    // Longer than the usual minute between two scrapes.
    keepAliveTimeout: 65_000,
    maxHeaderSize: 8_192,
  };
  const clients = new Clients();
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    const wait = clients.turnOf(request.socket.remoteAddress ?? '');
    const turn = wait > 0 ? setTimeout(wait, undefined, { ref: false }) : Promise.resolve();
    const answered = turn.then(() => answer(routes, refusal, request, response));
    answered.catch(() => {
      // The reason is for the log of the process alone.
      response.writeHead(500).end('Internal error\n');
    });
  };
  const server = certificate ? secureServer(limits, certificate, respond) : createServer(limits, respond);
  server.setTimeout(timeoutMilliseconds);
  // Before a handshake begins.
  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    if (!clients.connect(remoteAddress)) return void socket.destroy();
    socket.once('close', () => {
      clients.disconnected(remoteAddress);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `${flag} ${address} can't be listened on: ${cause.message}; choose another address, or 0 to turn it off`;
      reject(new OperatorError({ reason: 'InvalidInput', message, cause }));
    });
    server.listen(port, (match[1] ?? match[2]) || undefined, resolve);
  });
  // The server alone doesn't keep the process alive.
  server.unref();
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound ? bound.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** A renewed certificate is used from the next connection on. */
function secureServer(
  limits: ServerOptions,
  certificate: ServingCertificate,
  respond: RequestListener,
): Server {
  const server = createSecureServer({ ...limits, ...certificate.current }, respond);
  // Before the listener of Node that begins the handshake.
  server.prependListener('connection', () => {
    const renewed = certificate.renewed();
    if (renewed) server.setSecureContext(renewed);
  });
  return server;
}

async function answer(
  routes: Routes,
  refusal: ServeOptions['refusal'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // A body that is on its way isn't waited for.
    response.writeHead(405, { connection: 'close', allow: 'GET, HEAD' }).end('Only GET is answered\n');
    return;
  }
  const [path = '/', query] = (request.url ?? '/').split('?', 2);
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  const { headers, socket } = request;
  const refused = route && (await refusal?.(headers.authorization, path, socket.remoteAddress));
  const found = refused ?? (await route?.(new URLSearchParams(query)));
  const { status, body, contentType } = found ?? { status: 404, body: `Nothing at ${path}\n` };
  response.writeHead(status, {
    'content-type': contentType ?? 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

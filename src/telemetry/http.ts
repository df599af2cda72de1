import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Server, ServerOptions } from 'node:https';
import type { Server as NetServer, Socket } from 'node:net';
import { OperatorError } from '../contract/error.js';
import type { ServingCertificate } from './certificate.js';

// An import would load all that `node:http` has, and with it Node's own copy of undici.
const { createServer } = process.getBuiltinModule('node:http');

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

/** Maximum number of connections from one address. */
const MAX_CONNECTIONS = 16;

export interface HttpServer {
  /** The port that is listened on; differs from the one asked for only if that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

export interface ServeOptions {
  /** Maximum time for a client to send its request, or to read the answer. @default 10_000 */
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
  const busy = new Map<string, 'working' | 'sending'>();
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    const client = clientOf(request.socket);
    // Requests that don't wait for an answer would pile up.
    if (busy.has(client)) return void request.socket.destroy();
    busy.set(client, 'working');
    response.once('close', () => busy.delete(client));
    answer(routes, refusal, request, response)
      .catch(() => {
        // The reason is for the log of the process alone.
        response.writeHead(500).end('Internal error\n');
      })
      .finally(() => busy.has(client) && busy.set(client, 'sending'));
  };
  const server = certificate ? secureServer(limits, certificate, respond) : createServer(limits, respond);
  server.setTimeout(timeoutMilliseconds);
  boundConnections(server, busy);
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

/** Returns address and port of a client, by which a request over TLS is known to be of a connection: that is another socket. */
function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Bounds how many requests of one address are answered in a turn of the event loop, so that none keeps the process from its work.
 * The oldest connection for which no answer is made gives way; where there is none, that is the new one.
 * @param busy clients whose request has arrived, at least with its headers, until they have read the answer
 */
function boundConnections(server: NetServer, busy: ReadonlyMap<string, 'working' | 'sending'>): void {
  const open = new Map<string, Set<Socket>>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const sockets = open.get(remoteAddress) ?? new Set();
    open.set(remoteAddress, sockets.add(socket));
    const oldest = [...sockets].find((one) => busy.get(clientOf(one)) !== 'working');
    if (sockets.size > MAX_CONNECTIONS && oldest) {
      sockets.delete(oldest);
      oldest.destroy();
    }
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0 && open.get(remoteAddress) === sockets) open.delete(remoteAddress);
    });
  });
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

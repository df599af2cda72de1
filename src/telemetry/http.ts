import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AddressError } from './address-error.js';

export { AddressError } from './address-error.js';

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** @default text/plain; charset=utf-8 */
  readonly contentType?: string;
}

/** What is served, by path. */
export type Routes = Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>>;

/** Kubelet and Prometheus need milliseconds. */
const PATIENCE_MILLISECONDS = 10_000;
/** Longer than the usual minute between two scrapes. */
const KEEP_ALIVE_MILLISECONDS = 65_000;

export interface HttpServer {
  /** The port that is listened on; differs from the one asked for only if that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves a few read-only paths, and nothing else.
 * @param address `host:port` or `:port`, the latter on all interfaces
 * @param flag the option that the address comes from, for messages
 * @param patienceMilliseconds how long a client may take to ask, or to read the answer, before it is hung up on
 * @throws AddressError if the address isn't one, or can't be listened on
 */
export async function serveHttp(
  address: string,
  flag: string,
  routes: Routes,
  patienceMilliseconds = PATIENCE_MILLISECONDS,
): Promise<HttpServer> {
  const { host, port } = parseAddress(address, flag);
  const limits = {
    headersTimeout: patienceMilliseconds,
    requestTimeout: patienceMilliseconds,
    connectionsCheckingInterval: patienceMilliseconds,
    keepAliveTimeout: KEEP_ALIVE_MILLISECONDS,
    maxHeaderSize: 8_192,
  };
  const server = createServer(limits, (request, response) => {
    answer(routes, request, response).catch(() => {
      // What went wrong is nobody's business out there.
      response.writeHead(500).end('Internal error\n');
    });
  });
  server.setTimeout(patienceMilliseconds);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `${flag} ${address} can't be listened on: ${cause.message}; choose another address, or 0 to turn it off`;
      reject(new AddressError(message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  // The server alone is no reason for the process to live.
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

async function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, body, contentType = 'text/plain; charset=utf-8' } = await find(routes, request, response);
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function find(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<Answer> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // Whatever body is on its way isn't waited for.
    response.setHeader('connection', 'close').setHeader('allow', 'GET, HEAD');
    return { status: 405, body: 'Only GET is answered\n' };
  }
  const [path = '/', query] = (request.url ?? '/').split('?', 2);
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  return (await route?.(new URLSearchParams(query))) ?? { status: 404, body: `Nothing at ${path}\n` };
}

/** `[::1]:8080`, `127.0.0.1:8080`, `:8080`. */
function parseAddress(address: string, flag: string): { host: string | undefined; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    throw new AddressError(
      `${flag} ${JSON.stringify(address)} is not an address: write HOST:PORT or :PORT, or 0 to turn it off`,
    );
  }
  const host = match[1] ?? match[2];
  return { host: host === '' ? undefined : host, port };
}

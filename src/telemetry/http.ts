import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** An address that can't be used; the message names the option, the address and the remedy. */
export class AddressError extends Error {
  override readonly name = 'AddressError';
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** @default text/plain; charset=utf-8 */
  readonly contentType?: string;
}

/** Answers by path. */
export type Routes = Readonly<Record<string, (query: URLSearchParams) => Answer | Promise<Answer>>>;

export interface HttpServer {
  /** The port that is listened on; differs from the one asked for only if that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves a few read-only paths, and nothing else.
 * @param address `host:port` or `:port`, the latter on all interfaces
 * @param flag the option that the address comes from, for messages
 * @param timeoutMilliseconds how long a client may take to send its request, or to read the answer
 * @throws AddressError if the address isn't one, or can't be listened on
 */
export async function serveHttp(
  address: string,
  flag: string,
  routes: Routes,
  timeoutMilliseconds = 10_000,
): Promise<HttpServer> {
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(address);
  const port = Number(match?.[3]);
  if (!match || port > 65535) {
    const what = `${flag} ${JSON.stringify(address)} is not an address`;
    throw new AddressError(`${what}: write HOST:PORT or :PORT, or 0 to turn it off`);
  }
  const limits = {
    headersTimeout: timeoutMilliseconds,
    requestTimeout: timeoutMilliseconds,
    connectionsCheckingInterval: timeoutMilliseconds,
    // Longer than the usual minute between two scrapes.
    keepAliveTimeout: 65_000,
    maxHeaderSize: 8_192,
  };
  const server = createServer(limits, (request, response) => {
    answer(routes, request, response).catch(() => {
      // The reason is for the log of the process alone.
      response.writeHead(500).end('Internal error\n');
    });
  });
  server.setTimeout(timeoutMilliseconds);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `${flag} ${address} can't be listened on: ${cause.message}; choose another address, or 0 to turn it off`;
      reject(new AddressError(message, { cause }));
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

async function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // A body that is on its way isn't waited for.
    response.writeHead(405, { connection: 'close', allow: 'GET, HEAD' }).end('Only GET is answered\n');
    return;
  }
  const [path = '/', query] = (request.url ?? '/').split('?', 2);
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  const found = await route?.(new URLSearchParams(query));
  const { status, body, contentType } = found ?? { status: 404, body: `Nothing at ${path}\n` };
  response.writeHead(status, {
    'content-type': contentType ?? 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-content-type-options': 'nosniff',
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { Http2SecureServer, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { ServingCertificate } from './certificate.js';

/** A watch that a test writes the events of. */
export interface OpenWatch {
  send(bytes: string | Buffer): void;
  end(): void;
  /** Whether the client is still there. */
  readonly isOpen: boolean;
}

/** An HTTP/2 server for the tests of the proxy: it echoes requests, and leaves watches to the test. */
export class TestServer implements AsyncDisposable {
  readonly watches: OpenWatch[] = [];
  /** `GET /path` of everything that arrived. */
  readonly arrived: string[] = [];
  private readonly sessions = new Set<ServerHttp2Session>();

  private constructor(
    private readonly server: Http2SecureServer,
    readonly ca: string,
  ) {
    server.on('session', (session) => {
      this.sessions.add(session);
      session.once('close', () => this.sessions.delete(session));
    });
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      const [method, path] = [headers[':method'], headers[':path'] ?? '/'];
      this.arrived.push(`${String(method)} ${path}`);
      const status = Number(headers['x-answer-status'] ?? 200);
      if (!path.includes('watch=true')) void echo(stream, { ...headers }, status);
      else if (status === 200) this.startWatch(stream);
      else refuse(stream, status);
    });
  }

  static async start({ certificate, key }: ServingCertificate): Promise<TestServer> {
    const server = createSecureServer({ cert: certificate, key });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TestServer(server, certificate);
  }

  get url(): string {
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Asks clients to go elsewhere, and finishes what is under way. */
  goaway(): void {
    for (const session of this.sessions) session.close();
  }

  /** Breaks all connections off. */
  crash(): void {
    for (const session of this.sessions) session.socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.crash();
    await closed;
  }

  private startWatch(stream: ServerHttp2Stream): void {
    stream.respond({ ':status': 200, 'content-type': 'application/json' });
    this.watches.push({
      send: (bytes) => stream.write(bytes),
      end: () => stream.end(),
      get isOpen() {
        return !stream.closed && !stream.destroyed;
      },
    });
  }
}

/** As the API server does: in one line, as if it were an event. */
function refuse(stream: ServerHttp2Stream, status: number): void {
  stream.respond({ ':status': status, 'content-type': 'application/json' });
  stream.end(`${JSON.stringify({ kind: 'Status', code: status })}\n`);
}

async function echo(
  stream: ServerHttp2Stream,
  headers: Record<string, unknown>,
  status: number,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  stream.respond({ ':status': status, 'x-header': 'kept', 'content-type': 'application/json' });
  stream.end(body.length > 100_000 ? body : JSON.stringify({ ...headers, body: body.toString() }));
}

import { createSecureServer } from 'node:http2';
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ClusterAccess } from '../../../src/client/kubeconfig.js';
import { selfSignedCertificate } from '../../../src/telemetry/certificate.js';
import type { KeyPair } from '../../../src/values/x509.js';

/** A server of HTTP/2 on loopback, as an API server speaks it: 100 streams on a connection. */
export class H2Server {
  readonly sessions: ServerHttp2Session[] = [];
  readonly streams: {
    readonly path: string;
    readonly stream: ServerHttp2Stream;
    readonly authorization: string | undefined;
  }[] = [];
  /** What is done with a request; by default it is left open. */
  respond: (path: string, stream: ServerHttp2Stream, session: number) => void = () => undefined;
  private readonly server: Http2Server;

  private constructor(certificate: KeyPair) {
    this.server = createSecureServer({
      ...certificate,
      settings: { maxConcurrentStreams: 100 },
    });
    this.server.on('session', (session) => {
      this.sessions.push(session);
      session.on('error', () => undefined);
    });
    this.server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      const path = String(headers[':path']);
      this.streams.push({ path, stream, authorization: headers.authorization });
      this.respond(path, stream, this.sessions.indexOf(stream.session as ServerHttp2Session));
    });
  }

  static async start(): Promise<H2Server> {
    const h2 = new H2Server((await selfSignedCertificate(Date.now())).current);
    await listening(h2.server);
    onTestFinished(() => {
      for (const session of h2.sessions) session.destroy();
      h2.server.close();
    });
    return h2;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }
}

export function accessTo(server: string, token = 't'): ClusterAccess {
  return {
    ...{ context: 'x', namespace: 'default', inPod: false, clusterAt: 'test', userAt: 'test' },
    cluster: { server, 'insecure-skip-tls-verify': true },
    user: { token },
  };
}

function listening(server: Http2Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
}

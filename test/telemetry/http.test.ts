import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { get as getPlain } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { certificateIn, selfSignedCertificate } from '../../src/telemetry/certificate.js';
import type { ServingCertificate } from '../../src/telemetry/certificate.js';
import { onceASecond, serveHttp } from '../../src/telemetry/http.js';
import type { Answer, HttpServer, Routes } from '../../src/telemetry/http.js';
import type { KeyPair } from '../../src/values/x509.js';
import { recordingLogger } from '../engine/support/builders.js';
import type { LogLine } from '../engine/support/builders.js';

const ROUTES: Routes = {
  '/healthz': () => ({ status: 200, body: 'ok\n' }),
  '/query': (query) => ({ status: 200, body: query.getAll('a').join() }),
  '/broken': () => Promise.reject(new Error('what nobody is to know')),
  '/metrics': () => Promise.resolve({ status: 200, body: 'a 1\n', contentType: 'text/plain; version=0.0.4' }),
};

async function serve(
  patienceMilliseconds?: number,
): Promise<HttpServer & { readonly ask: (path: string, method?: string) => Promise<Response> }> {
  const server = await serveHttp('127.0.0.1:0', '--health-bind-address', ROUTES, {
    ...(patienceMilliseconds !== undefined && { timeoutMilliseconds: patienceMilliseconds }),
  });
  onTestFinished(() => server.close());
  return {
    ...server,
    ask: (path, method = 'GET') => fetch(`http://127.0.0.1:${server.port}${path}`, { method }),
  };
}

describe('serveHttp', () => {
  it('answers its paths, with or without a query', async () => {
    const { ask } = await serve();
    for (const path of ['/healthz', '/healthz?verbose']) {
      const response = await ask(path);
      expect([response.status, await response.text()]).toEqual([200, 'ok\n']);
      expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    }
    expect((await ask('/metrics')).headers.get('content-type')).toBe('text/plain; version=0.0.4');
  });

  it('answers reads only', async () => {
    const { ask } = await serve();
    const refused = await ask('/healthz', 'POST');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const head = await ask('/healthz', 'HEAD');
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', '3']);
  });

  it('keeps to itself why an answer failed', async () => {
    const { ask } = await serve();
    const response = await ask('/broken');
    expect([response.status, await response.text()]).toEqual([500, 'Internal error\n']);
  });

  it('hangs up on a client that never finishes its request', async () => {
    const { port } = await serve(200);
    const client = connect(port, '127.0.0.1');
    onTestFinished(() => void client.destroy());
    const closed = once(client, 'close');
    client.resume().write('GET /healthz HTTP/1.1\r\nhost: a\r\n');
    await closed;
  });

  it.each(['8080', 'localhost', ':http', ':70000', '::1:8080x', ''])(
    'refuses %j as an address, and says how to write one',
    async (address) => {
      const failed = serveHttp(address, '--metrics-bind-address', ROUTES);
      await expect(failed).rejects.toThrow(OperatorError);
      await expect(failed).rejects.toThrow(/--metrics-bind-address .*HOST:PORT or :PORT/);
    },
  );

  it('says which option names an address that is taken', async () => {
    const { port } = await serve();
    const failed = serveHttp(`127.0.0.1:${port}`, '--metrics-bind-address', ROUTES);
    await expect(failed).rejects.toThrow(OperatorError);
    await expect(failed).rejects.toThrow(`--metrics-bind-address 127.0.0.1:${port}`);
  });

  it('refuses what may not be answered, before it is made', async () => {
    const routes = { '/metrics': () => Promise.reject(new Error('not to be asked')) };
    const refusal = (authorization: string | undefined, path: string) =>
      Promise.resolve({ status: 403, body: `${authorization} ${path}\n` });
    const server = await serveHttp('127.0.0.1:0', '--metrics-bind-address', routes, { refusal });
    onTestFinished(() => server.close());

    const headers = { authorization: 'Bearer a' };
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics?a`, { headers });
    expect([response.status, await response.text()]).toEqual([403, 'Bearer a /metrics\n']);
  });
});

describe('Clients', () => {
  async function connected(port: number, sent = ''): Promise<Socket> {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.resume().on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(sent);
    return socket;
  }

  it.each([
    ['idle', ''],
    ['slow to send', 'GET /healthz HTTP/1.1\r\nhost: a\r\n'],
  ])('have sixteen connections each, of which the oldest %s one gives way', async (_, sent) => {
    const { port, ask } = await serve();
    const sockets = [];
    for (let n = 0; n < 20; n++) sockets.push(await connected(port, sent));
    for (const socket of sockets.slice(0, 4)) if (!socket.closed) await once(socket, 'close');
    expect(sockets.slice(4).every(({ destroyed }) => !destroyed)).toBe(true);
    expect((await ask('/healthz')).status).toBe(200);
  });

  it.each([['HTTP'], ['HTTPS']])(
    'keep a connection with a request under way, whatever others of their address open: %s',
    async (protocol) => {
      let begun = 0;
      const answered = Promise.withResolvers<Answer>();
      const routes = { '/metrics': () => (begun++, answered.promise) };
      const certificate = protocol === 'HTTPS' ? await selfSignedCertificate(Date.now()) : undefined;
      const server = await serveHttp('127.0.0.1:0', '--metrics-bind-address', routes, {
        ...(certificate && { certificate }),
      });
      onTestFinished(() => server.close());
      const options = { port: server.port, host: '127.0.0.1', path: '/metrics', agent: false } as const;
      const ask = async (): Promise<number | undefined> => {
        const request = certificate ? get({ ...options, ca: certificate.current.cert }) : getPlain(options);
        const [response] = (await once(request, 'response')) as [IncomingMessage];
        return response.resume().statusCode;
      };
      const asked: Promise<number | undefined>[] = [];
      const begin = async (): Promise<void> => {
        asked.push(ask().catch(() => undefined));
        await vi.waitUntil(() => begun === asked.length);
      };

      await begin();
      const idle = [];
      for (let n = 0; n < 16; n++) idle.push(await connected(server.port));
      await once(idle[0]!, 'close');
      while (asked.length < 16) await begin();
      expect(idle.every(({ closed }) => closed)).toBe(true);
      await once(await connected(server.port), 'close');

      answered.resolve({ status: 200, body: 'a 1\n' });
      expect(await Promise.all(asked)).toEqual(Array(16).fill(200));
    },
  );

  it("that don't read their answers give way", async () => {
    const routes = {
      '/healthz': () => ({ status: 200, body: 'ok' }),
      '/metrics': () => ({ status: 200, body: 'a'.repeat(8 * 1024 * 1024) }),
    };
    const server = await serveHttp('127.0.0.1:0', '--metrics-bind-address', routes);
    onTestFinished(() => server.close());
    for (let n = 0; n < 16; n++) {
      const socket = await connected(server.port, 'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n');
      await once(socket, 'data');
      socket.pause();
    }
    expect((await fetch(`http://127.0.0.1:${server.port}/healthz`)).status).toBe(200);
  });

  it('that send requests without waiting for answers are hung up on', async () => {
    let asked = 0;
    const routes = {
      '/metrics': () =>
        new Promise<never>(() => {
          asked++;
        }),
    };
    const server = await serveHttp('127.0.0.1:0', '--metrics-bind-address', routes);
    onTestFinished(() => server.close());
    const client = connect(server.port, '127.0.0.1');
    const closed = once(client.resume(), 'close');
    client.write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1_000));
    await closed;
    expect(asked).toBe(1);
  });

  it('that ask within a second get one answer', async () => {
    let [made, now] = [0, 0];
    const ask = onceASecond(
      () => Promise.resolve({ status: 200, body: String(++made) }),
      () => now,
    );
    expect(await Promise.all([ask(), ask()])).toMatchObject([{ body: '1' }, { body: '1' }]);
    now = 1_000;
    expect(await ask()).toMatchObject({ body: '2' });
  });
});

describe('HTTPS', () => {
  async function serveSecure(certificate: ServingCertificate): Promise<(ca: string) => Promise<number>> {
    const server = await serveHttp('127.0.0.1:0', '--metrics-bind-address', ROUTES, { certificate });
    onTestFinished(() => server.close());
    return async (ca) => {
      const request = get({ port: server.port, host: '127.0.0.1', path: '/healthz', ca, agent: false });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode!;
    };
  }

  it('has a certificate of its own, for localhost, unless one is given', async () => {
    const certificate = await selfSignedCertificate(Date.now());
    const ask = await serveSecure(certificate);
    expect(await ask(certificate.current.cert)).toBe(200);

    const { subjectAltName, validToDate, subject } = new X509Certificate(certificate.current.cert);
    expect([subject, subjectAltName]).toEqual(['CN=localhost', 'DNS:localhost, IP Address:127.0.0.1']);
    expect(validToDate.getUTCFullYear()).toBe(9999);
  });

  function temporaryFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    return folder;
  }

  it('takes a renewed certificate after a second, and keeps the one it has while files are broken', async () => {
    const folder = temporaryFolder();
    const lines: LogLine[] = [];
    const write = ({ cert, key }: KeyPair): void => {
      writeFileSync(join(folder, 'tls.crt'), cert);
      writeFileSync(join(folder, 'tls.key'), key);
    };
    const [first, second] = [
      (await selfSignedCertificate(Date.now())).current,
      (await selfSignedCertificate(Date.now())).current,
    ];
    const files = { folder, cert: 'tls.crt', key: 'tls.key' };
    let time = 0;
    const now = () => time;
    const unusable = (): unknown => certificateIn(files, '--metrics-cert-path', recordingLogger(lines), now);
    expect(unusable).toThrow(`--metrics-cert-path ${folder}: ENOENT`);
    write({ cert: first.cert, key: second.key });
    expect(unusable).toThrow(
      /key values mismatch; put a certificate and its key there, in PEM, as tls.crt and tls.key$/,
    );

    write(first);
    const ask = await serveSecure(certificateIn(files, '--metrics-cert-path', recordingLogger(lines), now));
    expect(await ask(first.cert)).toBe(200);
    write({ cert: second.cert, key: first.key });
    for (; time < 3_000; time += 1_000) expect(await ask(first.cert)).toBe(200);
    write(second);
    time -= 1;
    expect(await ask(first.cert)).toBe(200);
    time += 1;
    expect(await ask(second.cert)).toBe(200);
    await expect(ask(first.cert)).rejects.toThrow('self-signed');
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'serving certificate unusable, keeping the previous'],
      ['info', 'serving certificate renewed'],
    ]);
  });

  it('reads both files of a mounted Secret in one version', async () => {
    const folder = temporaryFolder();
    const { cert, key } = (await selfSignedCertificate(Date.now())).current;
    mkdirSync(join(folder, '..1'));
    symlinkSync('..1', join(folder, '..data'));
    writeFileSync(join(folder, '..1', 'tls.crt'), cert);
    writeFileSync(join(folder, '..1', 'tls.key'), key);
    // In place of the links beside it, files of the version before.
    writeFileSync(join(folder, 'tls.crt'), (await selfSignedCertificate(Date.now())).current.cert);
    writeFileSync(join(folder, 'tls.key'), key);

    const files = { folder, cert: 'tls.crt', key: 'tls.key' };
    const { current } = certificateIn(files, '--metrics-cert-path', recordingLogger([]));
    expect(current).toEqual({ cert, key });
  });
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AddressError, serveHttp } from '../../src/telemetry/http.js';
import type { HttpServer, Routes } from '../../src/telemetry/http.js';

const ROUTES: Routes = {
  '/healthz': () => ({ status: 200, body: 'ok\n' }),
  '/query': (query) => ({ status: 200, body: query.getAll('a').join() }),
  '/broken': () => Promise.reject(new Error('what nobody is to know')),
  '/metrics': () => Promise.resolve({ status: 200, body: 'a 1\n', contentType: 'text/plain; version=0.0.4' }),
};

async function serve(
  patienceMilliseconds?: number,
): Promise<HttpServer & { readonly ask: (path: string, method?: string) => Promise<Response> }> {
  const server = await serveHttp('127.0.0.1:0', '--health-bind-address', ROUTES, patienceMilliseconds);
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
      await expect(failed).rejects.toThrow(AddressError);
      await expect(failed).rejects.toThrow(/--metrics-bind-address .*HOST:PORT or :PORT/);
    },
  );

  it('says which option names an address that is taken', async () => {
    const { port } = await serve();
    const failed = serveHttp(`127.0.0.1:${port}`, '--metrics-bind-address', ROUTES);
    await expect(failed).rejects.toThrow(AddressError);
    await expect(failed).rejects.toThrow(`--metrics-bind-address 127.0.0.1:${port}`);
  });
});

import type { ServerHttp2Stream } from 'node:http2';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CredentialSource, Credentials } from '../../src/client/credentials.js';
import type { ApiResponse } from '../../src/client/transport.js';
import { UndiciTransport } from '../../src/client/transport.js';
import { H2Server, accessTo } from './support/h2-server.js';
import { VirtualClock } from './support/virtual-clock.js';

const GET = { method: 'GET', path: '/' } as const;

/** Where credentials come from: each time that they are read, whatever the test says. */
class Source implements CredentialSource {
  reads = 0;
  forgotten = 0;
  next: (read: number) => Promise<string> = (read) => Promise.resolve(`token-${read}`);

  async read(): Promise<Credentials> {
    return { headers: { authorization: await this.next(++this.reads) }, tls: { rejectUnauthorized: false } };
  }

  forget(): void {
    this.forgotten++;
  }
}

interface Setup {
  readonly server: H2Server;
  readonly source: Source;
  readonly clock: VirtualClock;
  readonly transport: UndiciTransport;
  /** What the server has been shown. */
  readonly shown: () => (string | undefined)[];
}

async function newSetup(accepts: (authorization: string) => boolean = () => true): Promise<Setup> {
  const server = await H2Server.start();
  server.respond = (_, stream: ServerHttp2Stream) => {
    const accepted = accepts(server.streams.at(-1)?.authorization ?? '');
    stream.respond({ ':status': accepted ? 200 : 401, 'content-type': 'application/json' });
    stream.end('{}');
  };
  const source = new Source();
  const clock = new VirtualClock();
  const access = accessTo(`https://127.0.0.1:${server.port}`);
  const transport = new UndiciTransport(access, 'test', { clock, credentials: source });
  onTestFinished(() => transport.close());
  const shown = (): (string | undefined)[] => server.streams.map(({ authorization }) => authorization);
  return { server, source, clock, transport, shown };
}

const never = (): Promise<string> => new Promise(() => undefined);
const fails = (): Promise<string> => Promise.reject(new Error('the plugin has failed'));
const outcome = (request: Promise<ApiResponse>): Promise<unknown> =>
  request.then(
    ({ status }) => status,
    (error: unknown) => error,
  );

describe('credentials that the server does not accept', () => {
  it('are read again, and the request is sent a second time', async () => {
    const { transport, shown } = await newSetup((authorization) => authorization === 'token-2');
    expect((await transport.request(GET)).status).toBe(200);
    expect((await transport.stream(GET)).status).toBe(200);
    expect(shown()).toEqual(['token-1', 'token-2', 'token-2']);
  });

  it.each([
    ['none can be read', (): Promise<string> => fails()],
    ['the same are read', (): Promise<string> => Promise.resolve('token-1')],
  ])('are the answer at once where %s', async (_, next) => {
    const { transport, source, shown } = await newSetup(() => false);
    source.next = (read) => (read === 1 ? Promise.resolve('token-1') : next());
    expect((await transport.request(GET)).status).toBe(401);
    expect((await transport.request(GET)).status).toBe(401);
    expect(shown()).toEqual(['token-1', 'token-1']);
    // What a plugin has issued isn't to be given again.
    expect(source.forgotten).toBe(2);
  });

  it('are read once for all requests that they have failed', async () => {
    const { transport, source } = await newSetup((authorization) => authorization !== 'token-1');
    const all = await Promise.all(Array.from({ length: 20 }, () => transport.request(GET)));
    expect(all.every(({ status }) => status === 200)).toBe(true);
    expect(source.reads).toBe(2);
  });
});

describe('credentials that do not come', () => {
  it('are not waited for by who is called off', async () => {
    const { transport, source } = await newSetup();
    source.next = never;
    const abort = new AbortController();
    const { signal } = abort;
    const both = [outcome(transport.request({ ...GET, signal })), transport.stream({ ...GET, signal })];
    const ended = Promise.allSettled(both);
    abort.abort();
    expect(await ended).toMatchObject([
      { value: { name: 'AbortError' } },
      { reason: { name: 'AbortError' } },
    ]);
  });
});

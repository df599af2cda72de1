import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/engine/clock.js';
import type { Clock } from '../../src/engine/clock.js';
import { Gate } from '../../src/engine/gate.js';
import type { ApiRequest, ApiStream, Transport } from '../../src/engine/transport.js';
import { TruncatedAnswer, UndiciTransport } from '../../src/engine/transport.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { eventually } from '../../src/testing/eventually.js';
import { accessTo, H2Server, Relay } from './support/h2-server.js';
import { VirtualClock } from './support/virtual-clock.js';

const JSON_HEADERS = { ':status': 200, 'content-type': 'application/json' };

function transportTo(port: number, clock?: Clock): UndiciTransport {
  const transport = new UndiciTransport(accessTo(`https://127.0.0.1:${port}`), 'test', clock && { clock });
  onTestFinished(() => transport.close());
  return transport;
}

function gateTo(wire: Transport, metrics = new Metrics()): Gate {
  const gate = new Gate({
    ...{ wire, metrics, clock: systemClock, random: Math.random, log: silentLogger, maxWrites: 100 },
  });
  onTestFinished(() => gate.close());
  return gate;
}

function answer(stream: ServerHttp2Stream): void {
  if (stream.destroyed) return;
  stream.respond(JSON_HEADERS);
  stream.end('{"ok":true}');
}

function sessionOf(server: H2Server): ServerHttp2Session {
  const [session] = server.sessions;
  if (!session) throw new Error('nobody has connected');
  return session;
}

/** So many requests that have arrived and aren't answered. */
async function inFlight(transport: Transport, server: H2Server, count: number, method: ApiRequest['method']) {
  const outcomes = Array.from({ length: count }, (_, n) =>
    transport.request({ method, path: `/${n}`, ...(method !== 'GET' && { body: {} }) }).then(
      ({ body }) => JSON.stringify(body),
      (error: unknown) => error,
    ),
  );
  await eventually(() => {
    expect(server.streams.length).toBe(count);
  });
  return outcomes;
}

describe('watches', () => {
  it('of any number are open at once, on as many connections as the server wants', async () => {
    const server = await H2Server.start();
    server.respond = (_, stream) => {
      stream.respond(JSON_HEADERS);
      stream.write('{}\n');
    };
    const transport = transportTo(server.port);
    const watches: ApiStream[] = await Promise.all(
      Array.from({ length: 250 }, (_, n) => transport.stream({ method: 'GET', path: `/watch/${n}` })),
    );
    expect(watches.every(({ status }) => status === 200)).toBe(true);
    expect(server.sessions.length).toBe(3);
    // Other requests don't wait for them.
    server.respond = (_, stream) => {
      answer(stream);
    };
    expect((await transport.request({ method: 'GET', path: '/' })).body).toEqual({ ok: true });
    expect(server.sessions.length).toBe(4);
  });

  it('end when nothing is heard of their connection, and the next one has a new connection', async () => {
    const server = await H2Server.start();
    server.respond = (_, stream) => {
      stream.respond(JSON_HEADERS);
      stream.write('{}\n');
    };
    const relay = await Relay.to(server.port);
    const clock = new VirtualClock();
    const transport = transportTo(relay.port, clock);
    const { chunks } = await transport.stream({ method: 'GET', path: '/watch' });
    const ended = buffer(chunks).catch((error: unknown) => error);
    relay.swallow();
    await clock.advance(70_000);
    expect(await ended).toMatchObject({ message: 'The connection went silent' });
    expect((await transport.stream({ method: 'GET', path: '/watch' })).status).toBe(200);
    expect(server.sessions.length).toBe(2);
  });
});

describe('a connection that ends under requests', () => {
  const ends = {
    'GOAWAY that lets them finish': (session: ServerHttp2Session) => {
      session.goaway(0);
    },
    'GOAWAY that refuses most of them': (session: ServerHttp2Session, tenth: number) => {
      session.goaway(0, tenth);
    },
    'GOAWAY because of an error': (session: ServerHttp2Session, tenth: number) => {
      session.goaway(2, tenth);
    },
    'a session that is destroyed': (session: ServerHttp2Session) => {
      session.destroy();
    },
  };
  for (const [name, end] of Object.entries(ends)) {
    for (const method of ['GET', 'PATCH', 'POST', 'DELETE'] as const) {
      it(`by ${name} costs no ${method} more than a second try`, async () => {
        const server = await H2Server.start();
        const metrics = new Metrics();
        const transport = gateTo(transportTo(server.port), metrics);
        const outcomes = await inFlight(transport, server, 80, method);
        const first = server.streams.map(({ stream }) => stream);
        server.respond = (_, stream) => {
          answer(stream);
        };
        end(sessionOf(server), first[9]?.id ?? 0);
        // What the server has accepted, it answers.
        setTimeout(() => {
          for (const stream of first) answer(stream);
        }, 50);
        expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['{"ok":true}']));
      });
    }
  }

  it('in the middle of an answer is no answer', async () => {
    const server = await H2Server.start();
    let broken = 1;
    server.respond = (_, stream) => {
      if (broken-- <= 0) {
        answer(stream);
        return;
      }
      stream.respond(JSON_HEADERS);
      stream.write('{"ok":', () => {
        stream.close(2);
      });
    };
    const transport = transportTo(server.port);
    await expect(transport.request({ method: 'GET', path: '/' })).rejects.toBeInstanceOf(TruncatedAnswer);
    broken = 1;
    const metrics = new Metrics();
    const answered = await gateTo(transport, metrics).request({ method: 'PATCH', path: '/', body: {} });
    expect(answered).toMatchObject({ body: { ok: true }, isSecondTry: true });
    expect((await metrics.requestRetries.get()).values).toMatchObject([
      { value: 1, labels: { verb: 'PATCH', host: transport.host } },
    ]);
  });
});

describe('what is taken back', () => {
  it('does not leave, although it was handed to its connection, and others go on', async () => {
    const server = await H2Server.start();
    server.respond = (path, stream) => {
      if (path !== '/watch') answer(stream);
    };
    const transport = transportTo(server.port);
    const watch = transport.stream({ method: 'GET', path: '/watch' });
    watch.catch(() => undefined);
    await transport.request({ method: 'GET', path: '/before' });
    // Right after the last look at the lease, and before the turn of the event loop ends.
    const admit = (): void => {
      queueMicrotask(() => {
        transport.withdraw();
      });
    };

    const late = transport.request({ method: 'PATCH', path: '/late', body: {}, admit });

    await expect(late).rejects.toThrow();
    expect((await transport.request({ method: 'GET', path: '/after' })).status).toBe(200);
    expect(server.streams.map(({ path }) => path).sort()).toEqual(['/after', '/before', '/watch']);
  });
});

import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/client/clock.js';
import type { Clock } from '../../src/client/clock.js';
import { Gate } from '../../src/client/gate.js';
import type { ApiRequest, Transport } from '../../src/client/transport.js';
import { TruncatedAnswer, UndiciTransport } from '../../src/client/transport.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { eventually } from '../../src/testing/eventually.js';
import { accessTo, H2Server } from './support/h2-server.js';

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

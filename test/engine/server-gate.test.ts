import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { sleep } from '../../src/engine/clock.js';
import { gated, probeOf } from '../../src/engine/gated-transport.js';
import { ServerGate } from '../../src/engine/server-gate.js';
import type { Pause } from '../../src/engine/server-gate.js';
import type { ApiRequest, ApiResponse, Transport } from '../../src/engine/transport.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { LimitedServer, refused } from './support/limited-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const read: ApiRequest = { method: 'GET', path: '/a' };
const write: ApiRequest = { method: 'PATCH', path: '/a', body: {} };
const lease: ApiRequest = { method: 'PUT', path: '/lease', lease: true };
const forever = (): AbortSignal => new AbortController().signal;

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

function recorded(lines: Line[]): Logger {
  const log = (level: string) => (fields: Line['fields'], message: string) =>
    lines.push({ level, fields, message });
  return { info: log('info'), warn: log('warn') } as unknown as Logger;
}

/** Numbers that look random, the same with every run. */
function seeded(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function setUp(maxWrites?: number) {
  const clock = new VirtualClock();
  const server = new LimitedServer(clock);
  const metrics = new Metrics();
  const lines: Line[] = [];
  const gate = new ServerGate({
    host: server.host,
    probe: probeOf(server),
    clock,
    random: seeded(),
    log: recorded(lines),
    metrics,
    ...(maxWrites !== undefined && { maxWrites }),
  });
  const pauses: (Pause | undefined)[] = [];
  gate.onChange((pause) => pauses.push(pause));
  return { clock, server, metrics, lines, gate, pauses, transport: gated(server, gate) };
}

/** The paths that were sent since the last call. */
function sentBy(server: LimitedServer): () => string[] {
  let seen = 0;
  return () => {
    const paths = server.sent.slice(seen).map(({ request }) => `${request.method} ${request.path}`);
    seen = server.sent.length;
    return paths;
  };
}

/** Sends something that is answered with 429. */
async function overload({ server, transport, clock }: ReturnType<typeof setUp>, seconds?: number) {
  server.perSecond = 0;
  server.retryAfterSeconds = seconds;
  const answer = transport.request(read);
  await clock.advance(server.latencyMilliseconds);
  expect((await answer).status).toBe(429);
  server.perSecond = Infinity;
}

/** The server goes down, and enough time passes to be certain of it. */
async function outage({ server, transport, clock, gate }: ReturnType<typeof setUp>) {
  server.down = true;
  await expect(transport.request(read)).rejects.toThrow('ECONNREFUSED');
  await clock.advance(1_500);
  expect(gate.pause).toBe('unreachable');
}

async function serverPaused(metrics: Metrics): Promise<Record<string, number>> {
  const { values } = await metrics.serverPaused.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.reason), value] as const));
}

describe('an overloaded server', () => {
  it('gets nothing for as long as it asks, from nobody but the lease', async () => {
    const world = setUp();
    const { clock, server, transport, gate, pauses, metrics } = world;
    const sent = sentBy(server);
    await overload(world, 7);
    sent();
    expect(gate.pause).toBe('overloaded');
    expect(await serverPaused(metrics)).toEqual({ overloaded: 1, unreachable: 0 });

    const waiting = [
      transport.request(read),
      transport.request(write),
      transport.stream({ ...read, path: '/watch', signal: forever() }),
    ];
    await clock.advance(6_900);
    expect(sent()).toEqual([]);
    const renewal = transport.request(lease);
    await clock.advance(20);
    await renewal;
    expect(sent()).toEqual(['PUT /lease']);

    await clock.advance(1_000);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(pauses).toEqual(['overloaded', undefined]);
    expect(await serverPaused(metrics)).toEqual({ overloaded: 0, unreachable: 0 });
    expect(clock.timers).toBe(0);
  });

  it('is asked again after a minute, even if it asks for more', async () => {
    const world = setUp();
    await overload(world, 3_600);
    await world.clock.advance(59_000);
    expect(world.gate.pause).toBe('overloaded');
    await world.clock.advance(1_000);
    expect(world.gate.pause).toBeUndefined();
  });

  it('is given longer and longer if it does not say how long, until it serves', async () => {
    const world = setUp();
    const lengths: number[] = [];
    const pauseOnce = async (): Promise<void> => {
      await overload(world);
      const startedAt = world.clock.now();
      while (world.gate.pause) await world.clock.advance(10);
      lengths.push(world.clock.now() - startedAt);
    };
    for (let n = 0; n < 9; n++) await pauseOnce();
    for (const [n, length] of lengths.entries()) {
      expect(length).toBeGreaterThanOrEqual(Math.min(100 * 2 ** n, 10_000));
      expect(length).toBeLessThanOrEqual(Math.min(100 * 2 ** n, 10_000) * 1.5 + 10);
    }
    const served = world.transport.request(read);
    await world.clock.advance(100);
    await served;
    lengths.length = 0;
    await pauseOnce();
    expect(lengths[0]).toBeLessThan(200);
  });

  it('is approached in order and little by little afterwards', async () => {
    const world = setUp();
    const { clock, server, transport } = world;
    const sent = sentBy(server);
    server.latencyMilliseconds = 1_000;
    await overload(world, 1);
    sent();
    const paths = Array.from({ length: 31 }, (_, n) => `/${n}`);
    for (const path of paths) void transport.request({ ...read, path });
    await clock.advance(1_000);
    expect(sent()).toEqual(['GET /0']);
    await clock.advance(25);
    const second = sent();
    await clock.advance(1_000);
    expect([...second, ...sent()]).toEqual(paths.slice(1).map((path) => `GET ${path}`));
    const times = server.sent.slice(1).map(({ at }) => at);
    expect(new Set(times).size).toBe(5);
  });

  it('that is still overloaded keeps those waiting who have not been let through yet', async () => {
    const world = setUp();
    const { clock, server, transport } = world;
    server.latencyMilliseconds = 5;
    await overload(world, 1);
    const sent = sentBy(server);
    sent();
    server.perSecond = 0;
    server.retryAfterSeconds = 5;
    for (let n = 0; n < 20; n++) void transport.request(read);
    await clock.advance(4_000);
    expect(sent().length).toBe(1);
    // That of the pause, and nobody's else.
    expect(clock.timers).toBe(1);
  });

  it('is warned of at most once a minute', async () => {
    const world = setUp();
    for (let n = 0; n < 30; n++) {
      await overload(world, 2);
      await world.clock.advance(3_000);
    }
    expect(world.lines.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      'warn: API server overloaded, requests wait',
      'warn: API server overloaded, requests wait',
    ]);
  });

  it('gets about as much as it takes, and nothing is lost', async () => {
    const { clock, server, transport, gate } = setUp();
    server.perSecond = 50;
    let left = 2_000;
    const startedAt = clock.now();
    const writer = async (): Promise<void> => {
      while (left > 0) {
        left--;
        // As the queue has it: what has failed is tried again.
        while ((await transport.request(write)).status !== 200);
      }
    };
    const writers = Promise.all(Array.from({ length: 48 }, writer));
    while (server.accepted < 2_000 && clock.now() - startedAt < 600_000) await clock.advance(1_000);
    await writers;

    expect(server.accepted).toBe(2_000);
    expect(server.rejected).toBeLessThan(server.accepted / 2);
    const seconds = (clock.now() - startedAt) / 1000;
    // At best 40 s; each overload costs the second that the server asks for.
    expect(seconds).toBeLessThan(120);
    expect(gate.pause === undefined || gate.pause === 'overloaded').toBe(true);
  });
});

describe('writes under way', () => {
  it('are bounded, and the next begins as soon as one ends', async () => {
    const { clock, server, transport } = setUp(4);
    const writes = Array.from({ length: 20 }, () => transport.request(write));
    await settled();
    expect(server.sent.length).toBe(4);
    const reading = transport.request(read);
    await settled();
    expect(server.sent.length).toBe(5);
    await clock.advance(20 * 5);
    await Promise.all([...writes, reading]);
    expect(server.mostUnderWay).toBe(5);
    expect(clock.timers).toBe(0);
  });

  it('are halved by overload and by answers that come too late, and grow again', async () => {
    const { clock, server, transport, metrics } = setUp(16);
    const limit = async (): Promise<number | undefined> =>
      (await metrics.writeConcurrency.get()).values[0]?.value;
    expect(await limit()).toBe(16);
    server.perSecond = 0;
    const together = Array.from({ length: 16 }, () => transport.request(write));
    await clock.advance(20);
    await Promise.all(together);
    expect(await limit()).toBe(8);
    server.perSecond = Infinity;
    await clock.advance(2_000);

    const slow: Transport = {
      ...transport,
      host: server.host,
      request: () =>
        Promise.reject(Object.assign(new Error('too late'), { code: 'UND_ERR_HEADERS_TIMEOUT' })),
    };
    const gate = new ServerGate({
      host: server.host,
      probe: probeOf(server),
      clock,
      random: seeded(),
      log: recorded([]),
      metrics,
      maxWrites: 16,
    });
    await expect(gated(slow, gate).request(write)).rejects.toThrow('too late');
    expect(await limit()).toBe(8);
    await clock.advance(100);

    const open = gated(server, gate);
    for (let n = 0; n < 500; n++) {
      const answer = open.request(write);
      await clock.advance(20);
      await answer;
    }
    expect(await limit()).toBe(16);
  });

  it('give their place back when they are called off or fail', async () => {
    const { clock, server, transport } = setUp(1);
    const controller = new AbortController();
    const first = transport.request({ ...write, signal: controller.signal });
    const second = transport.request({ ...write, path: '/b' });
    await settled();
    controller.abort();
    await expect(first).rejects.toThrow('abort');
    await clock.advance(20);
    expect((await second).status).toBe(200);
    server.down = true;
    await expect(transport.request(write)).rejects.toThrow('ECONNREFUSED');
    server.down = false;
    await clock.advance(2_000);
    const third = transport.request(write);
    await clock.advance(20);
    expect((await third).status).toBe(200);
    expect(clock.timers).toBe(0);
  });
});

describe('a server out of reach', () => {
  it('is believed in after one failure if it answers at once', async () => {
    const { clock, server, transport, pauses, lines } = setUp();
    server.down = true;
    await expect(transport.request(write)).rejects.toThrow('ECONNREFUSED');
    server.down = false;
    const next = transport.request(write);
    await clock.advance(1_100);
    expect((await next).status).toBe(200);
    expect([pauses, lines]).toEqual([[], []]);
    expect(clock.timers).toBe(0);
  });

  it('fails what is in the middle of a reconcile at once, and keeps watches and leases waiting', async () => {
    const world = setUp();
    const { clock, server, transport } = world;
    server.down = true;
    await expect(transport.request(read)).rejects.toThrow('ECONNREFUSED');
    const inTheMiddle = transport.request(write);
    const failure = expect(inTheMiddle).rejects.toMatchObject({ reason: 'Unreachable', retry: 'backoff' });
    await clock.advance(1_500);
    await failure;
    await expect(transport.request(write)).rejects.toThrow(
      'The API server api.test:443 is unreachable (connect ECONNREFUSED)',
    );
    await expect(transport.request(read)).rejects.toBeInstanceOf(OperatorError);
    const sent = sentBy(server);
    sent();

    const waiting = [
      transport.stream({ ...read, signal: forever() }),
      transport.request({ ...read, signal: forever() }),
      transport.request(lease),
    ];
    await clock.advance(60_000);
    expect(new Set(sent())).toEqual(new Set(['GET /version']));
    server.down = false;
    await clock.advance(6_000);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(clock.timers).toBe(0);
  });

  it('is tried at most once in four seconds over five minutes, whoever asks, and noticed when it is back', async () => {
    const { clock, server, transport, gate } = setUp();
    const random = seeded(7);
    const stop = new AbortController();
    const { signal } = stop;
    const loop = async (send: () => Promise<unknown>, good: number, bad: number): Promise<void> => {
      while (!signal.aborted) {
        const delay = await send().then(
          () => good,
          () => bad,
        );
        await sleep(clock, delay * (0.5 + random()), signal);
      }
    };
    for (let n = 0; n < 8; n++) void loop(() => transport.stream({ ...read, signal }), 500, 800);
    for (let n = 0; n < 16; n++) void loop(() => transport.request(write), 100, 1_000);
    void loop(() => transport.request({ ...lease, signal }), 2_000, 2_000);
    await clock.advance(10_000);
    expect(server.sent.length).toBeGreaterThan(500);

    server.down = true;
    const before = server.sent.length;
    await clock.advance(300_000);
    expect(gate.pause).toBe('unreachable');
    expect(server.sent.length - before).toBeLessThanOrEqual(0.25 * 300);
    expect(server.sent.length - before).toBeGreaterThan(50);

    const waited = server.sent.length;
    server.down = false;
    await clock.advance(5_100);
    expect(gate.pause).toBeUndefined();
    expect(server.sent.length - waited).toBeGreaterThan(9);
    stop.abort();
    await clock.advance(2_000);
    expect(clock.timers).toBe(0);
  });

  it.each(['hang', 'deaf'] as const)('is tried one request at a time if tries %s', async (kind) => {
    const world = setUp();
    const { clock, server, gate, transport } = world;
    await outage(world);
    server.outage = kind;
    const before = server.sent.length;
    await clock.advance(300_000);
    expect(server.sent.length - before).toBeLessThanOrEqual(0.25 * 300);
    expect(server.sent.length - before).toBeGreaterThan(50);
    server.down = false;
    await clock.advance(5_100);
    expect(gate.pause).toBeUndefined();
    const answer = transport.request(write);
    await clock.advance(20);
    expect((await answer).status).toBe(200);
    expect(clock.timers).toBe(0);
  });

  it('is told of once when it begins and once when it ends', async () => {
    const world = setUp();
    await outage(world);
    expect(await serverPaused(world.metrics)).toEqual({ overloaded: 0, unreachable: 1 });
    // Somebody sets the clock back.
    world.clock.setWallBy(-3_600_000);
    await world.clock.advance(120_000);
    world.server.down = false;
    await world.clock.advance(6_000);
    expect(world.pauses).toEqual(['unreachable', undefined]);
    expect(world.lines).toEqual([
      {
        level: 'warn',
        fields: {
          server: 'api.test:443',
          error: 'connect ECONNREFUSED',
          hint: 'Check that the API server is running and reachable',
        },
        message: 'API server unreachable, requests wait',
      },
      {
        level: 'info',
        fields: { server: 'api.test:443', seconds: expect.any(Number) as number },
        message: 'API server reachable again',
      },
    ]);
    expect(world.lines[1]?.fields.seconds).toBeGreaterThan(119);
    expect(await serverPaused(world.metrics)).toEqual({ overloaded: 0, unreachable: 0 });
  });

  it('is within reach again with the first answer of any status', async () => {
    const world = setUp();
    await outage(world);
    world.server.perSecond = 0;
    world.server.retryAfterSeconds = 3;
    world.server.down = false;
    await world.clock.advance(2_100);
    expect(world.pauses).toEqual(['unreachable', 'overloaded']);
    world.server.perSecond = Infinity;
    await world.clock.advance(4_000);
    expect(world.pauses).toEqual(['unreachable', 'overloaded', undefined]);
  });

  it('is not what a request shows that was called off, or never sent', async () => {
    const { clock, server, gate, transport } = setUp();
    const controller = new AbortController();
    const calledOff = transport.request({ ...read, signal: controller.signal });
    await settled();
    controller.abort();
    await expect(calledOff).rejects.toThrow('abort');
    const fenced: Transport = {
      host: server.host,
      request: (): Promise<ApiResponse> =>
        Promise.reject(new OperatorError({ reason: 'LeaseLost', message: 'fenced' })),
      stream: () => Promise.reject(refused()),
      close: () => Promise.resolve(),
    };
    await expect(gated(fenced, gate).request(write)).rejects.toThrow('fenced');
    expect(server.sent.length).toBe(1);
    expect(clock.timers).toBe(0);
  });

  it('keeps nobody waiting who has been called off', async () => {
    const world = setUp();
    const { clock, transport, server, gate } = world;
    await outage(world);
    const controller = new AbortController();
    const waiting = [
      transport.stream({ ...read, signal: controller.signal }),
      transport.request({ ...lease, signal: controller.signal }),
    ].map((promise) => expect(promise).rejects.toThrow('enough'));
    await settled();
    controller.abort(new Error('enough'));
    await Promise.all(waiting);
    await expect(transport.request({ ...lease, signal: controller.signal })).rejects.toThrow('enough');
    const sent = sentBy(server);
    sent();
    server.down = false;
    await clock.advance(6_000);
    expect(sent()).toEqual(['GET /version']);
    expect(gate.pause).toBeUndefined();
    expect(clock.timers).toBe(0);
  });

  it('is no longer tried, and keeps nobody waiting, once the transport is closed', async () => {
    const world = setUp();
    const { clock, server, transport } = world;
    await outage(world);
    const watch = transport.stream({ ...read, signal: forever() });
    const refusal = expect(watch).rejects.toThrow('closed');
    await settled();
    await transport.close();
    await refusal;
    expect(server.closed).toBe(true);
    expect(clock.timers).toBe(0);
    const tries = server.sent.length;
    await clock.advance(60_000);
    expect(server.sent.length).toBe(tries);
  });

  it('leaves no listener on the signals of those who waited', async () => {
    const world = setUp();
    const { transport, server, clock } = world;
    await outage(world);
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const watches = Array.from({ length: 5 }, () => transport.stream({ ...read, signal }));
    await settled();
    expect(listeners).toBe(5);
    server.down = false;
    await clock.advance(6_000);
    await Promise.all(watches);
    expect(listeners).toBe(0);
  });
});

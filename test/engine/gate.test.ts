import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { resourceType } from '../../src/contract/resource.js';
import { Api } from '../../src/engine/api.js';
import { ServerTime, sleep } from '../../src/engine/clock.js';
import { Gate } from '../../src/engine/gate.js';
import type { ApiRequest, ApiResponse, Transport } from '../../src/engine/transport.js';
import type { Logger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { LimitedServer } from './support/limited-server.js';
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
  const leads = { now: true };
  const gate = new Gate({
    wire: server,
    clock,
    random: seeded(),
    log: recorded(lines),
    metrics,
    ...(maxWrites !== undefined && { maxWrites }),
    fence: { admits: () => leads.now },
  });
  const pauses: boolean[] = [];
  gate.onChange((isUnreachable) => pauses.push(isUnreachable));
  return { clock, server, metrics, lines, gate, pauses, leads, transport: gate };
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

/** The server goes down, and enough time passes to be certain of it. */
async function outage({ server, transport, clock, gate }: ReturnType<typeof setUp>) {
  server.down = true;
  await expect(transport.request(read)).rejects.toThrow('ECONNREFUSED');
  await clock.advance(1_500);
  expect(gate.isUnreachable).toBe(true);
}

async function serverUnreachable(metrics: Metrics): Promise<number | undefined> {
  return (await metrics.serverUnreachable.get()).values[0]?.value;
}

describe('a server that refuses a request', () => {
  it.each([429, 503, 504, 500])('with %i gets all others at once', async (status) => {
    const { clock, server, transport, gate } = setUp();
    server.status = status;
    server.perSecond = 0;
    server.retryAfterSeconds = 60;
    const first = transport.request(write);
    await clock.advance(20);
    expect((await first).status).toBe(status);
    const all = [transport.request(read), transport.request(write), transport.stream(read)];
    await clock.advance(20);
    expect((await Promise.all(all)).map((answer) => answer.status)).toEqual([status, status, status]);
    expect(gate.isUnreachable).toBe(false);
    expect(clock.timers).toBe(0);
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
  it('fails what is in the middle of a reconcile at once, and keeps watches waiting, but not the lease', async () => {
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
    ];
    await expect(transport.request(lease)).rejects.toThrow('ECONNREFUSED');
    expect(sent()).toEqual(['PUT /lease']);
    await clock.advance(60_000);
    expect(new Set(sent())).toEqual(new Set(['GET /readyz']));
    server.down = false;
    await clock.advance(6_000);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    expect(clock.timers).toBe(0);
  });

  it('is tried less than once a second over five minutes, whatever is asked for, and noticed when it is back', async () => {
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
    expect(gate.isUnreachable).toBe(true);
    expect(server.sent.length - before).toBeLessThanOrEqual(300);
    const others = server.sent.slice(before).filter(({ request }) => !request.lease);
    expect(others.length).toBeLessThanOrEqual(0.25 * 300);
    expect(others.length).toBeGreaterThan(50);

    const waited = server.sent.length;
    server.down = false;
    await clock.advance(5_100);
    expect(gate.isUnreachable).toBe(false);
    expect(server.sent.length - waited).toBeGreaterThan(9);
    stop.abort();
    await clock.advance(2_000);
    expect(clock.timers).toBe(0);
  });

  it('is told of once when it begins and once when it ends', async () => {
    const world = setUp();
    await outage(world);
    expect(await serverUnreachable(world.metrics)).toBe(1);
    // Somebody sets the clock back.
    world.clock.setWallBy(-3_600_000);
    await world.clock.advance(120_000);
    world.server.down = false;
    await world.clock.advance(6_000);
    expect(world.pauses).toEqual([true, false]);
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
    expect(await serverUnreachable(world.metrics)).toBe(0);
  });

  it.each([200, 401, 403, 404, 429])(
    'is within reach again once /readyz is answered with %i',
    async (status) => {
      const world = setUp();
      await outage(world);
      world.server.down = false;
      world.server.perSecond = 0;
      world.server.status = status;
      await world.clock.advance(2_100);
      expect(world.pauses).toEqual([true, false]);
    },
  );

  it('is tried by real requests after a minute in which it has answered, but was not ready, and is named so', async () => {
    const world = setUp();
    const { clock, server, transport, gate, lines, pauses } = world;
    await outage(world);
    server.down = false;
    server.perSecond = 0;
    server.status = 500;
    const waiting = transport.request({ ...read, signal: forever() });
    // A probe that isn't answered begins the minute again.
    await clock.advance(50_000);
    server.down = true;
    await clock.advance(6_000);
    server.down = false;
    await clock.advance(55_000);
    expect(gate.isUnreachable).toBe(true);
    await expect(transport.request(write)).rejects.toThrow(
      'The API server api.test:443 is not ready (/readyz answers 500)',
    );
    await clock.advance(15_000);
    expect(gate.isUnreachable).toBe(false);
    expect((await waiting).status).toBe(500);
    await Promise.all([transport.request(write), clock.advance(20)]);
    expect(gate.isUnreachable).toBe(false);
    const notReady = {
      level: 'warn',
      fields: { server: 'api.test:443', error: '/readyz answers 500', hint: expect.any(String) as string },
      message: 'API server not ready, requests wait',
    };
    expect(lines.slice(1)).toMatchObject([
      notReady,
      notReady,
      { level: 'warn', message: 'API server not ready for 60 s, requests are sent' },
      { level: 'info', message: 'API server reachable again' },
    ]);

    // Keys that failed meanwhile are taken again when it is ready, and not at the end of their backoff.
    expect(pauses).toEqual([true, false]);
    server.perSecond = Infinity;
    await clock.advance(6_000);
    expect(pauses).toEqual([true, false, false]);
    expect(lines.at(-1)).toMatchObject({ level: 'info', message: 'API server ready' });
    expect(clock.timers).toBe(0);
  });
});

describe('A write that was asked to come later', () => {
  it('gets the same answer, unsent, until the time is over, and holds nothing else back', async () => {
    const clock = new VirtualClock();
    const answers: ApiResponse[] = [{ status: 429, body: {}, retryAfterSeconds: 10 }];
    let paths: string[] = [];
    const wire = {
      host: 'api.test',
      request: ({ method, path }: ApiRequest): Promise<ApiResponse> => {
        paths.push(`${method} ${path}`);
        return Promise.resolve(answers.shift() ?? { status: 200, body: {} });
      },
    } as unknown as Transport;
    const log = recorded([]);
    const transport = new Gate({
      wire,
      clock,
      random: seeded(),
      log,
      metrics: new Metrics(),
    });
    const sent = (): string[] => [paths, (paths = [])][0] as string[];
    const first = await transport.request(write);
    expect(first.retryAfterSeconds).toBeGreaterThanOrEqual(10.5);
    expect(first.retryAfterSeconds).toBeLessThanOrEqual(12);
    expect(sent()).toEqual(['PATCH /a']);

    await clock.advance(4_000);
    const again = await transport.request({ ...write, body: { changed: true } });
    expect(again).toMatchObject({ status: 429, isRepeated: true });
    expect(again.retryAfterSeconds).toBeCloseTo(Number(first.retryAfterSeconds) - 4);
    for (const other of [read, { ...write, path: '/b' }, { ...write, path: '/a/status' }])
      expect(await transport.request(other)).toMatchObject({ status: 200 });
    expect(sent()).toEqual(['GET /a', 'PATCH /b', 'PATCH /a/status']);

    await clock.advance(8_000);
    expect(await transport.request(write)).toMatchObject({ status: 200 });
    expect(sent()).toEqual(['PATCH /a']);
  });
});

describe('A process that does not lead', () => {
  it.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)('sends no %s, and counts it', async (method) => {
    const { transport, server, metrics, leads, gate } = setUp();
    leads.now = false;
    const notLeading = { reason: 'NotLeading', retry: 'now' };
    await expect(transport.request({ ...write, method })).rejects.toMatchObject(notLeading);
    expect(server.sent).toEqual([]);
    expect(await metrics.scrape()).toContain('reconstruct_fenced_writes_total 1');
    expect((await metrics.requests.get()).values).toEqual([]);
    expect(gate.isUnreachable).toBe(false);
  });

  it('reads, watches and asks for the lease', async () => {
    const { transport, server, leads, clock } = setUp();
    leads.now = false;
    const all = [transport.request(read), transport.request(lease), transport.stream(read)];
    await clock.advance(20);
    await Promise.all(all);
    expect(server.sent).toHaveLength(3);
  });
});

it('counts and times answers and failures, by method and host, whatever the wall clock does', async () => {
  const { transport, server, clock, metrics } = setUp();
  server.latencyMilliseconds = 400;
  const answers = [transport.request(write), transport.stream(read)];
  clock.setWallBy(-3_600_000);
  await clock.advance(400);
  await Promise.all(answers);
  server.down = true;
  await expect(transport.request(write)).rejects.toThrow('ECONNREFUSED');

  const text = await metrics.scrape();
  for (const line of [
    'rest_client_requests_total{code="200",method="PATCH",host="api.test:443"} 1',
    'rest_client_requests_total{code="200",method="GET",host="api.test:443"} 1',
    'rest_client_requests_total{code="<error>",method="PATCH",host="api.test:443"} 1',
    'rest_client_request_duration_seconds_sum{verb="PATCH",host="api.test:443"} 0.4',
    'rest_client_request_duration_seconds_count{verb="PATCH",host="api.test:443"} 2',
    'rest_client_request_duration_seconds_sum{verb="GET",host="api.test:443"} 0.4',
  ])
    expect(text).toContain(line);
});

describe('The clock of the API server', () => {
  it.each([45_000, -45_000])(
    'is %d ms ahead by the last answer that names a date, if any does',
    async (ahead) => {
      const clock = new VirtualClock();
      const time = new ServerTime(clock);
      let date: object = {};
      const wire: Transport = {
        host: 'api.test',
        request: () => Promise.resolve({ status: 200, body: {}, ...date }),
        stream: () => Promise.resolve({ status: 200, chunks: (async function* () {})(), ...date }),
        close: () => Promise.resolve(),
      };
      const api = new Api(wire, time);
      await api.schemaHash('v1').catch(() => undefined);
      expect(time.skewMilliseconds).toBeUndefined();
      date = { dateMilliseconds: clock.now() + ahead };
      await api.watch({ type: resourceType({ apiVersion: 'v1', kind: 'Pod' }) }, {}, forever());
      clock.setWallBy(1_000);
      expect(time.skewMilliseconds).toBe(ahead - 1_000);
    },
  );
});

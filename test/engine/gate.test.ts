import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { sleep } from '../../src/client/clock.js';
import { Gate } from '../../src/client/gate.js';
import type { ApiRequest } from '../../src/client/transport.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { LimitedServer } from './support/limited-server.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

const read: ApiRequest = { method: 'GET', path: '/a' };
const write: ApiRequest = { method: 'PATCH', path: '/a', body: {} };
const lease: ApiRequest = { method: 'PUT', path: '/lease', lease: true };
const patient = (): ApiRequest => ({ ...read, signal: new AbortController().signal });

/** Numbers that look random, the same with every run. */
function seeded(seed = 1): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

function setUp(maxWrites?: number) {
  const clock = new VirtualClock();
  const server = new LimitedServer(clock);
  const metrics = new Metrics();
  const lines: LogLine[] = [];
  const leads = { now: true };
  const gate = new Gate({
    ...{ wire: server, clock, random: seeded(), log: recordingLogger(lines), metrics },
    ...(maxWrites !== undefined && { maxWrites }),
    fence: { admits: () => leads.now },
  });
  const pauses: boolean[] = [];
  gate.onChange((isUnreachable) => pauses.push(isUnreachable));
  let seen = 0;
  /** Returns what was sent since the last call. */
  const sent = (): string[] => {
    const requests = server.sent.slice(seen).map(({ request }) => `${request.method} ${request.path}`);
    seen = server.sent.length;
    return requests;
  };
  /** The server goes down, and enough time passes to be certain of it. */
  const outage = async (): Promise<void> => {
    server.down = true;
    await expect(gate.request(read)).rejects.toThrow('ECONNREFUSED');
    await clock.advance(1_500);
    expect(gate.isUnreachable).toBe(true);
    sent();
  };
  const unreachableMetric = async (): Promise<unknown> =>
    (await metrics.serverUnreachable.get()).values[0]?.value;
  return { clock, server, metrics, lines, gate, pauses, leads, sent, outage, unreachableMetric };
}

describe('Refused requests', () => {
  it.each([429, 503, 504, 500])('with %i hold nothing else back', async (status) => {
    const { clock, server, gate } = setUp();
    Object.assign(server, { status, perSecond: 0, retryAfterSeconds: 60 });
    const first = gate.request(write);
    await clock.advance(20);
    expect((await first).status).toBe(status);
    const all = [gate.request(read), gate.request(write), gate.stream(read)];
    await clock.advance(20);
    expect((await Promise.all(all)).map((answer) => answer.status)).toEqual([status, status, status]);
    expect(gate.isUnreachable).toBe(false);
    expect(clock.timers).toBe(0);
  });

  it('are answered alike, unsent, until Retry-After is over', async () => {
    const { clock, server, gate, sent } = setUp();
    server.perSecond = 0;
    server.retryAfterSeconds = 10;
    const of = async (request: ApiRequest) =>
      (await Promise.all([gate.request(request), clock.advance(20)]))[0];
    const first = await of(write);
    // With jitter, so that not all come back at once.
    expect(first.retryAfterSeconds).toBeGreaterThanOrEqual(10.5);
    expect(first.retryAfterSeconds).toBeLessThanOrEqual(12);
    server.perSecond = Infinity;
    sent();
    await clock.advance(4_000);
    expect(await gate.request({ ...write, body: { changed: true } })).toMatchObject({
      status: 429,
      isRepeated: true,
    });
    for (const other of [read, { ...write, path: '/b' }, { ...write, path: '/a/status' }])
      expect(await of(other)).toMatchObject({ status: 200 });
    expect(sent()).toEqual(['GET /a', 'PATCH /b', 'PATCH /a/status']);
    await clock.advance(8_000);
    expect(await of(write)).toMatchObject({ status: 200 });
    expect(sent()).toEqual(['PATCH /a']);
  });
});

describe('Writes in flight', () => {
  it('are limited, reads are not, and the next begins as soon as one ends', async () => {
    const { clock, server, gate } = setUp(4);
    const writes = Array.from({ length: 20 }, () => gate.request(write));
    const reading = gate.request(read);
    await settled();
    expect(server.sent.length).toBe(5);
    await clock.advance(20 * 5);
    await Promise.all([...writes, reading]);
    expect(server.mostUnderWay).toBe(5);
    expect(clock.timers).toBe(0);
  });

  it('give their place back when they are cancelled or fail', async () => {
    const { clock, server, gate } = setUp(1);
    const controller = new AbortController();
    const first = gate.request({ ...write, signal: controller.signal });
    const second = gate.request({ ...write, path: '/b' });
    await settled();
    controller.abort();
    await expect(first).rejects.toThrow('abort');
    await clock.advance(20);
    expect((await second).status).toBe(200);
    server.down = true;
    await expect(gate.request(write)).rejects.toThrow('ECONNREFUSED');
    server.down = false;
    await clock.advance(2_000);
    const third = gate.request(write);
    await clock.advance(20);
    expect((await third).status).toBe(200);
    expect(clock.timers).toBe(0);
  });
});

describe('An unreachable server', () => {
  it('fails reconciles at once, and lets watches wait, but not the lease', async () => {
    const { clock, server, gate, sent, outage } = setUp();
    await outage();
    await expect(gate.request(write)).rejects.toThrow(
      'The API server api.test:443 is unreachable (connect ECONNREFUSED)',
    );
    await expect(gate.request(read)).rejects.toBeInstanceOf(OperatorError);
    const waiting = [gate.stream(patient()), gate.request(patient())];
    await expect(gate.request(lease)).rejects.toThrow('ECONNREFUSED');
    expect(sent()).toEqual(['PUT /lease']);
    await clock.advance(60_000);
    expect(new Set(sent())).toEqual(new Set(['GET /readyz']));
    server.down = false;
    await clock.advance(6_000);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
    expect(clock.timers).toBe(0);
  });

  it('is tried less than once a second over five minutes, whatever asks for it, and noticed when it is back', async () => {
    const { clock, server, gate } = setUp();
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
    for (let n = 0; n < 8; n++) void loop(() => gate.stream({ ...read, signal }), 500, 800);
    for (let n = 0; n < 16; n++) void loop(() => gate.request(write), 100, 1_000);
    void loop(() => gate.request({ ...lease, signal }), 2_000, 2_000);
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

  it('is logged and measured once when it begins and once when it ends, whatever the wall clock does', async () => {
    const { clock, server, pauses, lines, outage, unreachableMetric } = setUp();
    await outage();
    expect(await unreachableMetric()).toBe(1);
    clock.setWallBy(-3_600_000);
    await clock.advance(120_000);
    server.down = false;
    await clock.advance(6_000);
    expect(pauses).toEqual([true, false]);
    expect(lines).toMatchObject([
      {
        level: 'warn',
        fields: { server: 'api.test:443', error: 'connect ECONNREFUSED' },
        message: 'API server unreachable, requests wait',
      },
      { level: 'info', fields: { server: 'api.test:443' }, message: 'API server reachable again' },
    ]);
    expect(lines[1]?.fields.seconds).toBeGreaterThan(119);
    expect(await unreachableMetric()).toBe(0);
  });

  it.each([200, 401, 403, 404, 429])(
    'is reachable again once /readyz is answered with %i',
    async (status) => {
      const { clock, server, pauses, outage } = setUp();
      await outage();
      Object.assign(server, { down: false, perSecond: 0, status });
      await clock.advance(2_100);
      expect(pauses).toEqual([true, false]);
    },
  );

  it('is tried by real requests after a minute in which it has answered, but was not ready', async () => {
    const { clock, server, gate, lines, pauses, outage } = setUp();
    await outage();
    Object.assign(server, { down: false, perSecond: 0, status: 500 });
    const waiting = gate.request(patient());
    // A probe that isn't answered begins the minute again.
    await clock.advance(50_000);
    server.down = true;
    await clock.advance(6_000);
    server.down = false;
    await clock.advance(55_000);
    expect(gate.isUnreachable).toBe(true);
    await expect(gate.request(write)).rejects.toThrow(
      'The API server api.test:443 is not ready (/readyz answers 500)',
    );
    await clock.advance(15_000);
    expect(gate.isUnreachable).toBe(false);
    expect((await waiting).status).toBe(500);
    await Promise.all([gate.request(write), clock.advance(20)]);
    expect(gate.isUnreachable).toBe(false);
    expect(lines.slice(1).map(({ message }) => message)).toEqual([
      'API server not ready, requests wait',
      'API server not ready, requests wait',
      'API server not ready for 60 s, requests are sent',
      'API server reachable again',
    ]);

    // Keys that failed meanwhile are taken again when it is ready, and not at the end of their backoff.
    expect(pauses).toEqual([true, false]);
    server.perSecond = Infinity;
    await clock.advance(6_000);
    expect(pauses).toEqual([true, false, false]);
    expect(clock.timers).toBe(0);
  });
});

it.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)(
  'A process that does not lead sends no %s, and counts it; it reads, watches and asks for the lease',
  async (method) => {
    const { clock, gate, server, metrics, leads } = setUp();
    leads.now = false;
    const notLeading = { reason: 'NotLeading', retry: 'now' };
    await expect(gate.request({ ...write, method })).rejects.toMatchObject(notLeading);
    expect(server.sent).toEqual([]);
    expect(await metrics.scrape()).toContain('reconstruct_fenced_writes_total 1');
    expect((await metrics.requests.get()).values).toEqual([]);
    const all = [gate.request(read), gate.request(lease), gate.stream(read)];
    await clock.advance(20);
    await Promise.all(all);
    expect(server.sent).toHaveLength(3);
  },
);

it('Answers and failures are counted and timed by method and host, whatever the wall clock does', async () => {
  const { gate, server, clock, metrics } = setUp();
  server.latencyMilliseconds = 400;
  const answers = [gate.request(write), gate.stream(read)];
  clock.setWallBy(-3_600_000);
  await clock.advance(400);
  await Promise.all(answers);
  server.down = true;
  await expect(gate.request(write)).rejects.toThrow('ECONNREFUSED');

  const text = await metrics.scrape();
  for (const line of [
    'rest_client_requests_total{code="200",method="PATCH",host="api.test:443"} 1',
    'rest_client_requests_total{code="200",method="GET",host="api.test:443"} 1',
    'rest_client_requests_total{code="<error>",method="PATCH",host="api.test:443"} 1',
    'rest_client_request_duration_seconds_sum{verb="PATCH",host="api.test:443"} 0.4',
    'rest_client_request_duration_seconds_count{verb="PATCH",host="api.test:443"} 2',
  ])
    expect(text).toContain(line);
});

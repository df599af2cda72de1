import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { EventProps, EventStep } from '../../src/contract/plan.js';
import { OperatorError } from '../../src/contract/error.js';
import type { ApiRequest } from '../../src/client/transport.js';
import { newBench } from './support/bench.js';
import type { Bench } from './support/bench.js';
import { failure } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';
import type { Answer } from './support/scripted-transport.js';
import { settled } from './support/virtual-clock.js';

const MINUTE = 60_000;
const REGARDING = {
  apiVersion: 'demo.example.com/v1',
  kind: 'Widget',
  namespace: 'shop',
  name: 'web',
  uid: 'u',
};
const EVENT: EventProps = { type: 'Warning', reason: 'Invalid', action: 'Reconcile', note: 'it cannot be' };

interface SentEvent {
  readonly note: string;
  readonly reason: string;
  readonly metadata: { readonly name: string };
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

let bench: Bench<ScriptedTransport>;
beforeEach(() => {
  bench = newBench(new ScriptedTransport());
  bench.server.respond = ok;
});

const ok = ({ method, body }: ApiRequest): Answer => ({ status: method === 'POST' ? 201 : 200, body });
const notFound = failure(404, 'NotFound', 'events.events.k8s.io "web.1" not found');
const overloaded = failure(503, 'ServiceUnavailable', 'busy');

/** What was asked of the API server: the method, and the count if there is one. */
function asked(): string[] {
  return bench.server.requests.map(({ method, body }) => {
    const { series } = body as SentEvent;
    return series ? `${method} x${String(series.count)}` : method;
  });
}

const bodies = (): SentEvent[] => bench.server.requests.map(({ body }) => body as SentEvent);

async function tell(
  event: Partial<EventProps> = {},
  about: EventStep['regarding'] = REGARDING,
): Promise<void> {
  bench.events.send(about, { ...EVENT, ...event });
  await settled();
}

/** By outcome. */
async function counted(): Promise<Record<string, number>> {
  const { values } = await bench.metrics.events.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.outcome), value]));
}

describe('an event', () => {
  it('is one of events.k8s.io/v1 beside the object that it regards', async () => {
    await tell();
    expect(bench.server.requests[0]?.path).toBe('/apis/events.k8s.io/v1/namespaces/shop/events');
    expect(bench.server.requests[0]?.body).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: expect.stringMatching(/^web\.[0-9a-f]{12}$/) as unknown, namespace: 'shop' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'kosmos.io/reconstruct',
      reportingInstance: 'pod-1',
      regarding: REGARDING,
      ...EVENT,
    });
  });

  // The server counts bytes: `len(event.Message) > NoteLengthLimit` in pkg/apis/core/validation/events.go.
  it('has its note cut so that the server takes it, whatever its script', async () => {
    await tell({ note: '端口已被占用'.repeat(200) });
    expect(Buffer.byteLength(bodies()[0]?.note ?? '')).toBeLessThanOrEqual(1024);
    await tell({ note: `${'a😀'.slice(0, 2)}...` });
    expect(bodies()[1]?.note.isWellFormed()).toBe(true);
  });
});

describe('an event that is repeated', () => {
  it('is created once, and patched at its second occurrence', async () => {
    for (let times = 0; times < 5; times++) await tell();
    expect(asked()).toEqual(['POST', 'PATCH x2']);
    const { path, contentType, body } = bench.server.requests[1]!;
    expect(path).toBe(`/apis/events.k8s.io/v1/namespaces/shop/events/${bodies()[0]!.metadata.name}`);
    expect(contentType).toBe('application/merge-patch+json');
    expect(body).toEqual({ series: { count: 2, lastObservedTime: '2026-01-01T00:00:00.000000Z' } });
  });

  it('in a storm costs two requests, one each half an hour, and one at its end', async () => {
    for (let second = 0; second < 65 * 60; second++) {
      bench.events.send(REGARDING, EVENT);
      await bench.clock.advance(1_000);
    }
    await bench.clock.advance(15 * MINUTE);
    const [first, second, ...refreshes] = asked();
    expect([first, second]).toEqual(['POST', 'PATCH x2']);
    expect(refreshes).toHaveLength(3);
    expect(refreshes.at(-1)).toBe('PATCH x3900');
    expect(await counted()).toEqual({ sent: 1, series: 4 });
    expect(bench.clock.timers).toBe(0);
  });

  it('begins anew after six quiet minutes', async () => {
    await tell();
    await bench.clock.advance(5 * MINUTE);
    await tell();
    await bench.clock.advance(6 * MINUTE);
    await tell();
    expect(asked()).toEqual(['POST', 'PATCH x2', 'POST']);
    expect(new Set([0, 2].map((at) => bodies()[at]?.metadata.name)).size).toBe(2);
  });

  it.each<[string, Partial<EventProps>, Partial<typeof REGARDING>]>([
    ['type', { type: 'Normal' }, {}],
    ['reason', { reason: 'Other' }, {}],
    ['action', { action: 'Other' }, {}],
    ['object', {}, { name: 'other' }],
    ['object, which has gone and come again', {}, { uid: 'other' }],
  ])('is not the same with another %s', async (_, event, regarding) => {
    await tell();
    await tell(event, { ...REGARDING, ...regarding });
    expect(asked()).toEqual(['POST', 'POST']);
  });

  it('is reported in another wording as well, though only five times', async () => {
    for (let times = 0; times < 20; times++) await tell({ note: `the ${String(times)}th` });
    expect(asked()).toEqual(['POST', 'POST', 'POST', 'POST', 'POST', 'PATCH x2']);
    expect(bodies()[4]?.note).toBe('the 4th');
  });

  it('is created anew when its object is gone', async () => {
    await tell();
    bench.server.answers.push(notFound);
    await tell();
    expect(asked()).toEqual(['POST', 'PATCH x2', 'POST x2']);
  });
});

describe('an event that cannot be sent', () => {
  it('is tried twelve times, then dropped with a line in the log', async () => {
    bench.server.respond = () => overloaded;
    await tell();
    await bench.clock.advance(60 * MINUTE);
    expect(asked()).toEqual(Array.from({ length: 12 }, () => 'POST'));
    expect(new Set(bodies().map(({ metadata }) => metadata.name)).size).toBe(1);
    expect(bench.lines).toMatchObject([{ level: 'warn', message: 'event for Widget shop/web not sent' }]);
    expect(await counted()).toEqual({ dropped: 1 });
  });

  it.each<[string, Answer]>([
    ['its namespace is going', failure(403, 'Forbidden', 'unable to create: namespace is being terminated')],
    ['its namespace is gone', failure(404, 'NotFound', 'namespaces "shop" not found')],
    ['the right is missing', failure(403, 'Forbidden', 'cannot create events')],
    ['this process no longer leads', new OperatorError({ reason: 'NotLeading', message: 'the lease went' })],
  ])('is dropped quietly when %s', async (_, answer) => {
    bench.server.respond = () => answer;
    await tell();
    await bench.clock.advance(MINUTE);
    expect(asked()).toEqual(['POST']);
    expect(bench.lines).toMatchObject([{ level: 'debug' }]);
    expect(await counted()).toEqual({ dropped: 1 });
  });
});

describe('at the end of the process', () => {
  it('what waits is sent, and counts are brought up to date', async () => {
    for (let times = 0; times < 9; times++) await tell();
    bench.events.send({ ...REGARDING, name: 'other' }, EVENT);
    await bench.events.close();
    expect(asked()).toEqual(['POST', 'PATCH x2', 'POST', 'PATCH x9']);
    expect(bench.clock.timers).toBe(0);
  });
});

it('counts every occurrence exactly once, whatever fails in between', async () => {
  const step = fc.oneof(
    fc.record({ name: fc.constantFrom('a', 'b'), note: fc.constantFrom('x', 'y'), settle: fc.boolean() }),
    fc.record({ minutes: fc.integer({ min: 0, max: 9 }) }),
    fc.record({ fail: fc.integer({ min: 1, max: 3 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      bench = newBench(new ScriptedTransport());
      const counts = new Map<string, number>();
      bench.server.respond = (request) => {
        const { series, metadata } = request.body as Partial<SentEvent>;
        const name = metadata?.name ?? request.path.split('/').at(-1)!;
        expect(series?.count ?? 1).toBeGreaterThanOrEqual(counts.get(name) ?? 1);
        counts.set(name, series?.count ?? 1);
        return ok(request);
      };
      let told = 0;
      let failing = 0;
      for (const next of steps) {
        if ('minutes' in next) await bench.clock.advance(next.minutes * MINUTE);
        else if ('fail' in next) {
          // Of an event that waits to be sent again, all may have been answers to it: fewer than make it give up.
          if (bench.clock.timers === 0 && bench.server.answers.length === 0) failing = 0;
          if (failing + next.fail >= 12) continue;
          failing += next.fail;
          bench.server.answers.push(...Array<Answer>(next.fail).fill(overloaded));
        } else {
          told++;
          bench.events.send({ ...REGARDING, name: next.name }, { ...EVENT, note: next.note });
          if (next.settle) await settled();
        }
      }
      await bench.clock.advance(60 * MINUTE);
      bench.server.answers.length = 0;
      await bench.events.close();
      expect([...counts.values()].reduce((sum, count) => sum + count, 0)).toBe(told);
    }),
    { numRuns: 60 },
  );
});

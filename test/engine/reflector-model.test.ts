import fc from 'fast-check';
import { expect, it } from 'vitest';
import { objectKey } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Api } from '../../src/client/api.js';
import { Reflector } from '../../src/engine/watch/reflector.js';
import { compareResourceVersions, Store } from '../../src/engine/watch/cache.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { CONFIG_MAP, failure } from './support/builders.js';
import { ModelServer } from './support/model-server.js';
import type { Answer } from './support/scripted-transport.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

type Step =
  | { readonly do: 'put' | 'remove'; readonly name: string }
  /** A write of our own, whose answer comes at once or late. */
  | { readonly do: 'write'; readonly name: string; readonly late: boolean }
  | { readonly do: 'answer' }
  | { readonly do: 'deliver'; readonly count: number; readonly splitAt: number }
  | { readonly do: 'repeat'; readonly count: number }
  | { readonly do: 'cut'; readonly how: 'end' | 'break' | 'half' }
  | { readonly do: 'compact' }
  | { readonly do: 'refuse'; readonly answer: Answer }
  | { readonly do: 'wait'; readonly milliseconds: number };

const name = fc.constantFrom('a', 'b', 'c');
const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('write' as const), name, late: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('answer' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('deliver' as const),
      count: fc.integer({ min: 0, max: 4 }),
      splitAt: fc.nat({ max: 400 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('repeat' as const), count: fc.integer({ min: 1, max: 3 }) }),
  },
  fc.record({ do: fc.constant('cut' as const), how: fc.constantFrom('end' as const, 'break', 'half') }),
  fc.record({ do: fc.constant('compact' as const) }),
  fc.record({
    do: fc.constant('refuse' as const),
    answer: fc.constantFrom<Answer>(
      new Error('connect ECONNREFUSED'),
      failure(400, 'BadRequest', 'sendInitialEvents is unknown'),
      failure(404, undefined, 'page not found'),
      failure(410, 'Expired', 'too old'),
      failure(429, 'TooManyRequests', 'later'),
      failure(500, 'InternalError', 'etcd is away'),
      failure(503, 'ServiceUnavailable', 'starting'),
    ),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      milliseconds: fc.constantFrom(500, 5_000, 40_000, 80_000, 11 * 3_600_000),
    }),
  },
);

/** Holds what listeners are told against itself: who follows it alone must never be surprised. */
class Story {
  readonly told = new Map<string, AnyObject>();
  private readonly lastVersion = new Map<string, string>();

  tell(before: AnyObject | undefined, after: AnyObject | undefined): void {
    const { namespace, name: named } = (after ?? before)!.metadata;
    const key = objectKey(namespace, named);
    expect(before).toBe(this.told.get(key));
    if (!after) {
      this.told.delete(key);
      return;
    }
    const version = after.metadata.resourceVersion!;
    // Not even after it was gone in between.
    expect(compareResourceVersions(version, this.lastVersion.get(key) ?? '0')).toBeGreaterThan(0);
    this.lastVersion.set(key, version);
    this.told.set(key, after);
  }
}

async function play(steps: readonly Step[]): Promise<void> {
  const server = new ModelServer();
  const clock = new VirtualClock();
  const store = new Store({ keep: (object) => object });
  const story = new Story();
  const broken: unknown[] = [];
  store.onChange((before, after) => {
    try {
      story.tell(before, after);
    } catch (error) {
      broken.push(error);
    }
  });
  const reflector = new Reflector({
    ...{ api: new Api(server), scope: { type: CONFIG_MAP }, store, clock },
    ...{ random: () => 0, log: silentLogger },
    metrics: new Metrics(),
    label: 'configmaps',
  });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  const late: AnyObject[] = [];
  for (const step of steps) {
    switch (step.do) {
      case 'put':
        server.put(step.name);
        break;
      case 'remove':
        server.remove(step.name);
        break;
      case 'write': {
        const answer = server.put(step.name);
        if (step.late) late.push(answer);
        else store.written(answer);
        break;
      }
      case 'answer':
        for (const answer of late.splice(0)) store.written(answer);
        break;
      case 'deliver':
        server.deliver(step.count, step.splitAt);
        break;
      case 'repeat':
        server.repeat(step.count);
        break;
      case 'cut':
        server.cut(step.how);
        break;
      case 'compact':
        server.compact();
        break;
      case 'refuse':
        server.refusals.push(step.answer);
        break;
      case 'wait':
        await clock.advance(step.milliseconds);
        break;
    }
    await settled();
    if (broken.length > 0) throw broken[0] as Error;
  }
  server.refusals.length = 0;
  for (let n = 0; n < 6; n++) {
    await clock.advance(70_000);
    server.deliver(Infinity);
    await settled();
  }
  stop.abort();
  await running;
  if (broken.length > 0) throw broken[0] as Error;
  const versions = (objects: Iterable<AnyObject>): object =>
    Object.fromEntries([...objects].map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  const held = [...store.keys()].map((key) => store.get(key)!.object);
  expect(versions(held)).toEqual(versions(server.objects.values()));
  expect(versions(story.told.values())).toEqual(versions(server.objects.values()));
}

it('a store is what the server has, whatever happens in between, and what it tells makes sense', async () => {
  await fc.assert(fc.asyncProperty(fc.array(STEP, { maxLength: 60, size: 'max' }), play), { numRuns: 60 });
}, 120_000);

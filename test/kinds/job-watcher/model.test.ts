import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/watcher.js';
import { at } from './fixtures.js';
import { due, isUntouchable, keyOf, matchedBy } from './reference.js';
import { World } from './world.js';

const NAMES = ['a', 'b', 'ab', 'c'];
const NAMESPACES = ['default', 'team', 'kube-system'];
const seconds = fc.constantFrom('0s', '5s', '20s', '60s');
const rarely = fc.constantFrom(false, false, false, true);
const pattern = fc.constantFrom('a', '^a$', 'b|c', '.', 'none');

const spec: fc.Arbitrary<JobWatcherSpec> = fc.record(
  {
    namespacePatterns: fc.array(fc.constantFrom('default', '^team$', 'kube', '.'), {
      minLength: 1,
      maxLength: 2,
    }),
    jobNamePatterns: fc.array(pattern, { minLength: 1, maxLength: 2 }),
    selector: fc.constant({ matchLabels: { app: 'x' } }),
    ...{ completedTTL: seconds, failedTTL: seconds, frequency: fc.constantFrom('1s', '15s') },
    ...{ dryRun: rarely, suspend: rarely, allowShorterOverrides: fc.boolean() },
    priority: fc.constantFrom(0, 0, 0, 1, -1),
    ownerPolicy: fc.record(
      {
        cronJob: fc.constantFrom('Delete', 'Skip'),
        ttlSecondsAfterFinished: fc.constantFrom('Delete', 'Skip'),
      },
      { requiredKeys: [] },
    ),
    tracked: fc.constantFrom('Delete', 'Skip'),
    keepLast: fc.record({ completed: fc.nat(2), failed: fc.nat(1) }),
  },
  { requiredKeys: ['completedTTL'] },
);

/** What may be special about a Job. */
const metadata = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.constantFrom(
    { labels: { app: 'x' } },
    { labels: { 'helm.toolkit.fluxcd.io/name': 'x' } },
    { annotations: { 'batch.my.github.com/keep': 'true' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': '1s' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': '90s' } },
    { annotations: { 'batch.my.github.com/ttl-after-completed': 'nonsense' } },
    { deletionTimestamp: at(0) },
    { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'o', uid: 'o', controller: true }] },
    { ownerReferences: [{ apiVersion: 'x/v1', kind: 'Other', name: 'p', uid: 'p', controller: true }] },
  ),
);

type Step = (world: World) => void;

let uids = 0;

const addJob: fc.Arbitrary<Step> = fc
  .record({
    ...{ name: fc.constantFrom(...NAMES), namespace: fc.constantFrom(...NAMESPACES), metadata },
    ended: fc.constantFrom('Complete' as const, 'Complete' as const, 'Failed' as const, undefined),
    // Up to a finish in the future.
    ago: fc.integer({ min: -30, max: 60 }),
    spec: fc.constantFrom({}, {}, {}, { ttlSecondsAfterFinished: 1 }),
  })
  .map(({ ended, ago, ...props }) => (world) => {
    const uid = `uid-${++uids}`;
    world.addJob({ ...props, uid, endedAt: Math.floor(world.now) - ago, ...(ended && { ended }) });
  });

const setWatcher = (given: fc.Arbitrary<JobWatcherSpec>): fc.Arbitrary<Step> =>
  fc
    .tuple(given, fc.constantFrom('one', 'two', 'three'), fc.constantFrom('default', 'team', 'ops'))
    .map(([wanted, name, namespace]) => (world) => {
      world.setWatcher(wanted, { name, namespace });
    });

const dropWatcher: fc.Arbitrary<Step> = fc.nat().map((pick) => (world) => {
  const keys = [...world.watchers.keys()];
  if (keys.length > 0) world.watchers.delete(keys[pick % keys.length]!);
});

const dropJob: fc.Arbitrary<Step> = fc.nat().map((pick) => (world) => {
  const keys = [...world.jobs.keys()];
  if (keys.length > 0) world.jobs.delete(keys[pick % keys.length]!);
});

const wait: fc.Arbitrary<Step> = fc.constantFrom(1, 4, 5, 20, 61).map((time) => (world) => {
  world.now += time;
});

function steps(given: fc.Arbitrary<JobWatcherSpec>): fc.Arbitrary<Step[]> {
  const step = fc.oneof(
    { weight: 6, arbitrary: addJob },
    { weight: 3, arbitrary: setWatcher(given) },
    { weight: 1, arbitrary: dropWatcher },
    { weight: 4, arbitrary: wait },
  );
  return fc.array(step, { minLength: 1, maxLength: 40 });
}

/** By the rules, who lets which Job go now. */
function dueIn(world: World): Map<string, string> {
  const deletedNamesakes = ({ metadata }: AnyObject): number => {
    const before = world.deletions.get(`${metadata.namespace}/${metadata.name}`) ?? [];
    return before.filter(({ uid }) => uid !== metadata.uid).length;
  };
  return due({
    jobs: [...world.jobs.values()],
    watchers: [...world.watchers.values()],
    now: world.now,
    deletedNamesakes,
  });
}

function uidsOf(jobs: readonly AnyObject[]): string[] {
  return jobs.map(({ metadata }) => metadata.uid!).sort();
}

test('what is due by the rules is deleted at once, and nothing else ever', () => {
  fc.assert(
    fc.property(steps(spec), (given) => {
      const world = new World();
      for (const step of given) {
        step(world);
        const wanted = [...dueIn(world).keys()].sort();

        world.turn();

        const planned = world.plan!.delete.map(({ object }) => object);
        expect(uidsOf(planned)).toEqual(wanted);
      }
    }),
    { numRuns: 400 },
  );
});

test('what nobody may delete stays, whoever watches and however long it takes', () => {
  fc.assert(
    fc.property(steps(spec), (given) => {
      const world = new World();
      for (const step of given) {
        step(world);
        const untouchable = uidsOf([...world.jobs.values()].filter(isUntouchable));
        world.turn();
        expect(uidsOf([...world.jobs.values()])).toEqual(expect.arrayContaining(untouchable));
      }
    }),
    { numRuns: 200 },
  );
});

test('the timers are enough: all that is ever due goes in the end, each at its second', () => {
  fc.assert(
    fc.property(steps(spec), (given) => {
      const world = new World();
      for (const step of given) step(world);
      world.turn();
      for (let second = 0; second < 200; second++) {
        const { next } = world;
        world.now += 1;
        const isDue = dueIn(world).size > 0;
        const wakes = next !== undefined && next.getTime() <= Date.parse(at(world.now));
        expect(wakes || !isDue, 'something is due and no timer is set').toBe(true);
        if (wakes) world.turn();
      }
      expect(dueIn(world).size).toBe(0);
    }),
    { numRuns: 200 },
  );
});

const limits = fc.record(
  {
    maxPerRun: fc.integer({ min: 1, max: 3 }),
    maxPercent: fc.constantFrom(10, 34, 50, 100),
    mode: fc.constantFrom('Abort' as const, 'Throttle' as const),
  },
  { requiredKeys: ['maxPerRun', 'mode'] },
);
const limitedSpec = fc
  .tuple(spec, limits)
  .map(([given, limited]): JobWatcherSpec => ({ ...given, limits: limited }));

test('limits are kept to the Job, in each run and from one to the next, by the oldest deadlines', () => {
  fc.assert(
    fc.property(steps(limitedSpec), (given) => {
      const world = new World();
      /** The last run of each watcher, and of which generation. */
      const runs = new Map<string, { generation: number; at: number }>();
      for (const step of given) {
        step(world);
        const wanted = dueIn(world);
        const watchers = [...world.watchers.values()];
        const before = [...world.jobs.values()];

        world.turn();

        const gone = world.plan!.delete.map(({ object }) => object.metadata.uid!);
        expect(gone.filter((uid) => !wanted.has(uid))).toEqual([]);
        for (const one of watchers) {
          const mine = gone.filter((uid) => wanted.get(uid) === keyOf(one));
          if (mine.length > 0)
            expectWithinLimits(one, mine.length, [...wanted.values()], before, runs, world.now);
        }
      }
    }),
    { numRuns: 300 },
  );
});

function expectWithinLimits(
  watcher: LiveWatcher,
  count: number,
  deciders: readonly string[],
  jobs: readonly AnyObject[],
  runs: Map<string, { generation: number; at: number }>,
  now: number,
): void {
  const { limits: given, frequency = '60s' } = watcher.spec;
  const { generation = 0 } = watcher.metadata;
  expect(count).toBeLessThanOrEqual(given!.maxPerRun!);
  expect(count * 100).toBeLessThanOrEqual((given!.maxPercent ?? 100) * matchedBy(watcher, jobs).length);
  // Aborting, it is all or nothing.
  if (given!.mode === 'Abort') expect(count).toBe(deciders.filter((key) => key === keyOf(watcher)).length);
  const last = runs.get(keyOf(watcher));
  if (last?.generation === generation) expect(now - last.at).toBeGreaterThanOrEqual(parseInt(frequency));
  runs.set(keyOf(watcher), { generation, at: now });
}

test('throttled, all that is due goes in the end', () => {
  const throttled = spec.map((given): JobWatcherSpec => ({
    ...given,
    limits: { maxPerRun: 1, mode: 'Throttle' },
  }));
  fc.assert(
    fc.property(steps(throttled), (given) => {
      const world = new World();
      for (const step of given) step(world);
      world.goTo(world.now + 10_000);
      expect(dueIn(world).size).toBe(0);
    }),
    { numRuns: 100 },
  );
});

/** Jobs that come, change and go, many within one frequency of a watcher that stays as it is. */
const bustle: fc.Arbitrary<Step[]> = fc
  .tuple(
    setWatcher(spec.map((given): JobWatcherSpec => ({ ...given, frequency: '15s' }))),
    fc.array(
      fc.oneof(
        { weight: 3, arbitrary: addJob },
        { weight: 1, arbitrary: dropJob },
        { weight: 3, arbitrary: wait },
      ),
      {
        minLength: 10,
        maxLength: 60,
      },
    ),
  )
  .map(([first, others]) => [first, ...others]);

test('a status is written once per frequency at most, but for a condition', () => {
  const conditions = (cr: LiveWatcher | undefined): string =>
    JSON.stringify([
      cr?.status?.observedGeneration,
      (cr?.status?.conditions ?? []).map(({ type, status, reason }) => [type, status, reason]),
    ]);
  const plain = steps(spec.map((given): JobWatcherSpec => ({ ...given, frequency: '15s' })));
  fc.assert(
    fc.property(fc.oneof(plain, bustle), (given) => {
      const world = new World();
      const written = new Map<string, number>();
      for (const step of given) {
        step(world);
        const before = new Map(world.watchers);
        world.turn();
        for (const [key, cr] of world.watchers) {
          const was = before.get(key);
          if (cr.status === was?.status) continue;
          if (conditions(cr) === conditions(was))
            expect(world.now - (written.get(key) ?? -Infinity)).toBeGreaterThanOrEqual(15);
          written.set(key, world.now);
        }
      }
    }),
    { numRuns: 1000 },
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { addJob, dueIn, setWatcher, spec, steps } from './random.js';
import { keyOf, matchedBy } from './reference.js';
import { World } from './world.js';

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

/** Names of which no Job may be deleted. */
const refusedNames = fc.constantFrom<string[]>([], ['b'], ['a', 'b']);

/** A world that refuses to delete Jobs of these names, and the UIDs of those that it has refused. */
function refusing(names: readonly string[]): { world: World; refused: Set<string> } {
  const world = new World();
  const refused = new Set<string>();
  const error = new OperatorError({ reason: 'Invalid', message: 'No', retry: 'onChange' });
  world.refuse = ({ metadata }) => {
    if (!names.includes(metadata.name)) return undefined;
    refused.add(metadata.uid!);
    return error;
  };
  return { world, refused };
}

test('limits are kept to the Job, in each run and from one to the next, whatever is refused', () => {
  fc.assert(
    fc.property(steps(limitedSpec), refusedNames, (given, names) => {
      const { world, refused } = refusing(names);
      /** The last run of each watcher, and of which generation. */
      const runs = new Map<string, { generation: number; at: number }>();
      for (const step of given) {
        step(world);
        const wanted = dueIn(world);
        const watchers = [...world.watchers.values()];
        const before = [...world.jobs.values()];
        const known = new Set(refused);

        world.turn();

        const gone = world.swept.map(({ object }) => object.metadata.uid!);
        expect(gone.filter((uid) => !wanted.has(uid))).toEqual([]);
        for (const one of watchers) {
          const isMine = (uid: string): boolean => wanted.get(uid) === keyOf(one);
          const isNew = (uid: string): boolean => isMine(uid) && !known.has(uid);
          const counts = {
            tried: gone.filter(isMine).length,
            fresh: gone.filter(isNew).length,
            due: [...wanted.keys()].filter(isNew).length,
          };
          if (counts.tried > 0) expectWithinLimits(one, counts, before, runs, world.now);
        }
      }
    }),
    { numRuns: 300 },
  );
});

/** Of one watcher, what a run tries; fresh is what wasn't refused before. */
interface Counts {
  readonly tried: number;
  readonly fresh: number;
  /** Fresh ones that were due. */
  readonly due: number;
}

function expectWithinLimits(
  watcher: LiveWatcher,
  { tried, fresh, due: freshDue }: Counts,
  jobs: readonly AnyObject[],
  runs: Map<string, { generation: number; at: number }>,
  now: number,
): void {
  const { limits: given, frequency = '60s' } = watcher.spec;
  const { generation = 0 } = watcher.metadata;
  expect(tried).toBeLessThanOrEqual(given!.maxPerRun!);
  expect(tried * 100).toBeLessThanOrEqual((given!.maxPercent ?? 100) * matchedBy(watcher, jobs).length);
  // Aborting, it is all or nothing.
  if (given!.mode === 'Abort') expect(fresh).toBe(freshDue);
  // What is refused as before is no run.
  if (fresh === 0) return;
  const last = runs.get(keyOf(watcher));
  if (last?.generation === generation) expect(now - last.at).toBeGreaterThanOrEqual(parseInt(frequency));
  runs.set(keyOf(watcher), { generation, at: now });
}

test('throttled, all that is due and isn’t refused goes in the end', () => {
  const throttled = spec.map((given): JobWatcherSpec => ({
    ...given,
    limits: { maxPerRun: 1, mode: 'Throttle' },
  }));
  fc.assert(
    fc.property(steps(throttled), refusedNames, (given, names) => {
      const { world } = refusing(names);
      for (const step of given) step(world);
      world.goTo(world.now + 10_000);
      expectOnlyRefusedLeft(world, names);
    }),
    { numRuns: 300 },
  );
});

test('aborting, what is refused never keeps from deletion what comes one by one', () => {
  const aborting = spec.map((given): JobWatcherSpec => ({
    ...given,
    frequency: '1s',
    limits: { maxPerRun: 1, mode: 'Abort' },
  }));
  fc.assert(
    fc.property(
      setWatcher(aborting),
      fc.array(addJob, { maxLength: 15 }),
      refusedNames,
      (set, jobs, names) => {
        const { world } = refusing(names);
        set(world);
        for (const add of jobs) {
          add(world);
          world.goTo(world.now + 200);
        }
        expectOnlyRefusedLeft(world, names);
      },
    ),
    { numRuns: 300 },
  );
});

function expectOnlyRefusedLeft(world: World, names: readonly string[]): void {
  const due = dueIn(world);
  const left = [...world.jobs.values()].filter(({ metadata }) => due.has(metadata.uid!));
  expect(left.map(({ metadata }) => metadata.name).filter((name) => !names.includes(name))).toEqual([]);
}

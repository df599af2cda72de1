import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';
import type { LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import { at } from './fixtures.js';
import { addJob, dropJob, dueIn, setWatcher, spec, steps, uidsOf, wait, type Step } from './random.js';
import { World } from './world.js';

test('what is due by the rules is deleted at once, and nothing else ever', () => {
  fc.assert(
    fc.property(steps(spec), (given) => {
      const world = new World();
      for (const step of given) {
        step(world);
        const wanted = [...dueIn(world).keys()].sort();

        world.turn();

        const planned = world.swept.map(({ object }) => object);
        expect(uidsOf(planned)).toEqual(wanted);
      }
    }),
    { numRuns: 400 },
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

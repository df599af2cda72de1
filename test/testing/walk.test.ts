import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { fieldsOf, planWalks, Random, shorten } from '../../src/testing/walk.js';
import type { Spec, Walk } from '../../src/testing/walk.js';
import { plantedSamples } from '../scenarios/planted/crd.js';
import { sound } from '../scenarios/planted/sound.js';
import { streamIngressSamples } from '../scenarios/support/stream-ingress-swept.js';

const specsOf = (all: readonly AnyObject[]): Spec[] => all.map(({ spec }) => spec as Spec);
const samples = specsOf(plantedSamples);
const soundFields = fieldsOf(sound, samples);

const planOf = (seed: number) =>
  planWalks(soundFields, new Random(seed), { starts: samples, minEdits: 20, maxEdits: 200 });

test('a walk does everything to every field, by valid specs, and its seed repeats it', async () => {
  const plan = await planOf(3);

  expect(plan.open).toEqual([]);
  expect(plan.goals).toBeGreaterThan(8);
  expect(plan.walks.flat().flatMap((spec) => soundFields.problems(spec))).toEqual([]);
  expect(await planOf(3)).toEqual(plan);
  expect(await planOf(4)).not.toEqual(plan);
});

test('a walk leaves alone what can never be changed, and what it is asked to', async () => {
  const specs = specsOf(streamIngressSamples);
  const fields = fieldsOf(streamIngress, specs, ['proxyProtocol']);
  const props = { starts: specs, minEdits: 40, maxEdits: 120 };

  const { walks, open } = await planWalks(fields, new Random(1), props);

  const fixed = ['listen', 'protocol', 'is_service', 'upstream'].filter((field) => fields.isFixed?.([field]));
  expect(fixed).toEqual(['listen', 'protocol']);
  expect(open).toEqual([]);
  const edits = walks.flatMap((walk) => walk.slice(1).map((spec, index) => [walk[index], spec] as const));
  expect(edits.length).toBeGreaterThanOrEqual(40);
  for (const [before, after] of edits) {
    expect(fields.problems(after, before)).toEqual([]);
    expect(after.proxyProtocol).toEqual(before?.proxyProtocol);
  }
});

test('what the cluster never accepts is tried, and left out of nearly all specs', async () => {
  const starts = samples.filter(({ color }) => color === undefined);
  const isAccepted = (spec: Spec): Promise<boolean> => Promise.resolve(spec.color === undefined);
  const props = { starts, minEdits: 40, maxEdits: 80, maxFailures: 50 };

  const { walks, open } = await planWalks(soundFields, new Random(2), props, isAccepted);

  expect(open.toSorted()).toEqual(['change: color', 'remove: color', 'set: color']);
  const all = walks.flat();
  const refused = all.filter(({ color }) => color !== undefined);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(all.length / 5);
});

function shortenedBy(
  goesWrong: (walk: Walk) => boolean,
  { tries = Infinity, isValid = () => true }: { tries?: number; isValid?: (spec: object) => boolean } = {},
) {
  let left = tries;
  return (walk: Walk): Promise<Walk> =>
    shorten(walk, {
      isValid,
      hasTime: () => left > 0,
      goesWrong: (tried) => {
        left--;
        return Promise.resolve(goesWrong(tried));
      },
    });
}

/** A field is remembered from any earlier spec. */
const remembers = (walk: Walk): boolean => {
  const last = walk.at(-1);
  return walk.slice(0, -1).some((spec) => 'color' in spec) && last !== undefined && !('color' in last);
};

test('steps that have no part in it are dropped, wherever they are', async () => {
  const walk = [{}, { color: 'red' }, { size: 1 }, { size: 2 }, { size: 3 }, { size: 4 }];

  expect(await shortenedBy(remembers)(walk)).toEqual([{ color: 'red' }, {}]);
});

test('of the specs, only what it takes is left, also deep within', async () => {
  const isWrong = ([first, ...others]: Walk): boolean =>
    others.length > 0 && JSON.stringify(first).includes('"b"') && !JSON.stringify(others).includes('"b"');
  const parts = [
    { name: 'a', value: '1' },
    { name: 'b', value: '2' },
  ];

  expect(
    await shortenedBy(isWrong)([
      { size: 1, parts },
      { size: 2, parts: [{ name: 'a' }] },
    ]),
  ).toEqual([{ parts: [{ name: 'b' }] }, {}]);
});

test('when time is up, what was found by then is reported', async () => {
  const walk = [{ color: 'red', size: 1 }, { size: 2 }, { size: 3 }];

  expect(await shortenedBy(remembers, { tries: 2 })(walk)).toEqual([{ color: 'red', size: 1 }, { size: 3 }]);
  expect(await shortenedBy(remembers, { tries: 0 })(walk)).toEqual(walk);
});

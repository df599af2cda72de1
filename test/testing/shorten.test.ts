import { expect, test } from 'vitest';
import type { Walk } from '../../src/testing/walk/plan.js';
import { shorten } from '../../src/testing/sweep/shortened.js';

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

test('what the API server would refuse is not tried', async () => {
  const isValid = (spec: object): boolean => 'size' in spec;
  const walk = [{ size: 1, color: 'red', more: 1 }, { size: 1 }];

  expect(await shortenedBy(remembers, { isValid })(walk)).toEqual([{ size: 1, color: 'red' }, { size: 1 }]);
});

test('when time is up, what was found by then is told', async () => {
  const walk = [{ color: 'red', size: 1 }, { size: 2 }, { size: 3 }];

  expect(await shortenedBy(remembers, { tries: 2 })(walk)).toEqual([{ color: 'red', size: 1 }, { size: 3 }]);
  expect(await shortenedBy(remembers, { tries: 0 })(walk)).toEqual(walk);
});

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WriteLimit } from '../../src/engine/write-limit.js';

function limitOf(max: number): { limit: WriteLimit; told: number[] } {
  const told: number[] = [];
  return { limit: new WriteLimit({ max, onChange: (value) => told.push(value) }), told };
}

it('starts at its maximum, and says so', () => {
  expect(limitOf(32).told).toEqual([32]);
});

it('is halved once by writes that were under way together', () => {
  const { limit, told } = limitOf(32);
  const { round } = limit;
  for (let n = 0; n < 10; n++) limit.halve(round);
  expect(told).toEqual([32, 16]);
  limit.halve(limit.round);
  expect(limit.limit).toBe(8);
});

it('never falls below one', () => {
  const { limit } = limitOf(4);
  for (let n = 0; n < 10; n++) limit.halve(limit.round);
  expect(limit.limit).toBe(1);
  expect(limit.free).toBe(true);
});

it('grows by one for as many answers as there are writes at once, up to its maximum', () => {
  const { limit } = limitOf(8);
  limit.halve(limit.round);
  expect(limit.limit).toBe(4);
  for (let n = 0; n < 3; n++) limit.grow();
  expect(limit.limit).toBe(4);
  for (let n = 0; n < 2; n++) limit.grow();
  expect(limit.limit).toBe(5);
  for (let n = 0; n < 100; n++) limit.grow();
  expect(limit.limit).toBe(8);
});

it('stays between one and its maximum, whatever happens', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.array(fc.boolean()), (max, answers) => {
      const { limit, told } = limitOf(max);
      for (const good of answers) {
        if (good) limit.grow();
        else limit.halve(limit.round);
      }
      expect(told.every((value) => value >= 1 && value <= max)).toBe(true);
    }),
  );
});

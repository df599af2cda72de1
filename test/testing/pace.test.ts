import { expect, test } from 'vitest';
import { Pace } from '../../src/testing/sweep/stand.js';

function paceAfter(...starts: readonly number[]): Pace {
  const pace = new Pace();
  for (const milliseconds of starts) pace.started(milliseconds);
  return pace;
}

test('while operators start fast, and before one has, a wait is as long as it is meant', () => {
  expect(paceAfter().scaled(8_000)).toBe(8_000);
  expect(paceAfter(30, 160, 90).scaled(8_000)).toBe(8_000);
});

test('where they take longer, so may everything else', () => {
  expect(paceAfter(90, 1_000, 250).scaled(8_000)).toBe(32_000);
});

test('what never comes is given up in bounded time', () => {
  expect(paceAfter(20_000).scaled(8_000)).toBe(40_000);
});

test('it follows the machine', () => {
  const quick = Array.from({ length: 8 }, () => 90);

  expect(paceAfter(1_000, ...quick.slice(1)).scaled(8_000)).toBe(32_000);
  expect(paceAfter(1_000, ...quick).scaled(8_000)).toBe(8_000);
});

import { expect, test } from 'vitest';
import { Patience } from '../../src/testing/sweep/convergence.js';

test('what differs is waited for only so long', () => {
  const patience = new Patience(1_000);
  expect(patience.isOver(13_000, false)).toBe(false);
  expect(patience.isOver(13_001, false)).toBe(true);
});

test('pods get more time, and the operator its own once they are there', () => {
  const patience = new Patience(0);
  expect(patience.isOver(80_000, true)).toBe(false);
  expect(patience.isOver(80_200, false)).toBe(false);
  expect(patience.isOver(92_001, false)).toBe(true);
});

test('pods that never come are given up', () => {
  expect(new Patience(0).isOver(90_001, true)).toBe(true);
});

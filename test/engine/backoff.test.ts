import { describe, expect, it } from 'vitest';
import { backoffDelay } from '../../src/engine/work-queue.js';

const PROPS = { initialMilliseconds: 800, maxMilliseconds: 30_000, jitter: 1 };

describe('backoffDelay', () => {
  it('doubles with each failure up to its bound', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6].map((failures) => backoffDelay(PROPS, failures, () => 0));
    expect(delays).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
  });

  it('stays at its bound after any number of failures', () => {
    expect(backoffDelay(PROPS, 5000, () => 0)).toBe(30_000);
  });

  it('stretches the delay by a share of itself, the bound included', () => {
    expect(backoffDelay(PROPS, 0, () => 0.5)).toBe(1200);
    expect(backoffDelay(PROPS, 100, () => 0.5)).toBe(45_000);
    expect(backoffDelay({ ...PROPS, jitter: 0 }, 0, () => 0.9)).toBe(800);
  });
});

import { expect, it } from 'vitest';
import { Breather } from '../../src/engine/runner.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

function newBreather(): { breather: Breather; clock: VirtualClock; turns: (() => void)[] } {
  const clock = new VirtualClock();
  const turns: (() => void)[] = [];
  const nextTurn = async (): Promise<void> => new Promise((resolve) => turns.push(resolve));
  return { breather: new Breather(clock, nextTurn), clock, turns };
}

it('lets work go on for ten milliseconds, and then waits for the next turn', async () => {
  const { breather, clock, turns } = newBreather();
  expect(breather.pause()).toBeUndefined();
  clock.jump(9);
  expect(breather.pause()).toBeUndefined();
  clock.jump(1);
  const pause = breather.pause();
  expect(pause).toBeDefined();
  expect(breather.pause()).toBe(pause);
  expect(turns).toHaveLength(1);
  turns[0]?.();
  await pause;
  expect(breather.pause()).toBeUndefined();
});

it('waits after a hundred items although the clock stands still', () => {
  const { breather } = newBreather();
  for (let n = 0; n < 100; n++) expect(breather.pause()).toBeUndefined();
  expect(breather.pause()).toBeDefined();
});

it('counts from the start in each turn', async () => {
  const { breather, clock, turns } = newBreather();
  for (let n = 0; n < 5; n++) {
    expect(breather.pause()).toBeUndefined();
    clock.jump(9);
    turns[n]?.();
    await settled();
  }
  expect(turns).toHaveLength(5);
});

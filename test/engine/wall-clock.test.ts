import { describe, expect, it } from 'vitest';
import { VirtualClock } from './support/virtual-clock.js';
import { Queue } from '../../src/engine/work-queue.js';
import { Breather } from '../../src/engine/runner.js';

const HOUR = 3_600_000;

describe.each([
  ['back', -HOUR],
  ['forward', HOUR],
])('A wall clock that is set %s', (_, shift) => {
  it('does not change the times that a queue has planned, nor what it tells of waiting', () => {
    const clock = new VirtualClock();
    const waited: number[] = [];
    const worked: number[] = [];
    const observer = {
      added: () => undefined,
      taken: (milliseconds: number) => waited.push(milliseconds),
      done: (milliseconds: number) => worked.push(milliseconds),
    };
    const queue = new Queue({ clock, random: () => 0, observer });
    queue.addRateLimited('a', 10_000);
    queue.addAfter('b', 10_000);
    clock.setWallBy(shift);
    expect(queue.addRateLimited('a')).toBe(10_000);
    queue.addAfter('b', 20_000);
    queue.addAfter('a', 20_000);
    queue.addAfter('a', 5_000);
    clock.jump(5_000);
    expect(queue.depth).toBe(1);
    clock.jump(5_000);
    expect(queue.depth).toBe(2);
    void queue.take();
    clock.setWallBy(shift);
    clock.jump(3_000);
    queue.done('a');
    expect([waited, worked]).toEqual([[5_000], [3_000]]);
  });

  it('does not change how long the event loop is kept busy', () => {
    const clock = new VirtualClock();
    const breather = new Breather(clock, () => new Promise(() => undefined));
    void breather.pause();
    clock.setWallBy(shift);
    clock.jump(9);
    expect(breather.pause()).toBeUndefined();
    clock.jump(1);
    expect(breather.pause()).toBeDefined();
  });
});

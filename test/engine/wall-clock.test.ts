import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { Vanished } from '../../src/engine/apply.js';
import { instant } from '../../src/engine/clock.js';
import { EventSeriesBook } from '../../src/engine/event-series.js';
import { Fights } from '../../src/engine/fights.js';
import { Queue } from '../../src/engine/work-queue.js';
import { REFUSAL_MILLISECONDS, Refusals } from '../../src/engine/refusals.js';
import { Breather } from '../../src/engine/runner.js';
import { configMap, ownedBy } from './support/builders.js';
import { VirtualClock } from './support/virtual-clock.js';

const HOUR = 3_600_000;

describe.each([
  ['back', -HOUR],
  ['forward', HOUR],
])('A wall clock that is set %s', (_, shift) => {
  it('does not change the pause of a fight', () => {
    const clock = new VirtualClock();
    const fights = new Fights(clock);
    const pauseAfterCorrection = (): unknown => {
      try {
        fights.corrected(configMap('web', '1'), { managers: [], fields: [] }, 'hash');
        return undefined;
      } catch (error) {
        return error;
      }
    };
    for (let n = 0; n < 5; n++) pauseAfterCorrection();
    clock.setWallBy(shift);
    clock.jump(9_000);
    const check = (): void => {
      fights.checkPause(configMap('web', '1'), 'hash');
    };
    expect(check).toThrow(expect.objectContaining({ retryAfterMilliseconds: 1_000 }));
    clock.jump(1_000);
    expect(check).not.toThrow();
  });

  it('does not change how long a refusal is remembered', () => {
    const clock = new VirtualClock();
    const refusals = new Refusals(clock);
    const refused = { hash: 'h', owner: 'o', version: '1', resourceVersion: '1', portsFreed: 0 };
    refusals.remember('a', refused, new OperatorError({ reason: 'Invalid', message: 'no' }));
    clock.setWallBy(shift);
    clock.jump(REFUSAL_MILLISECONDS - 1);
    expect(refusals.find('a', refused)).toBeDefined();
    clock.jump(1);
    expect(refusals.find('a', refused)).toBeUndefined();
  });

  it('does not change how long what vanished is remembered', () => {
    const clock = new VirtualClock();
    const vanished = new Vanished(clock);
    const owner = ownedBy('shop');
    const child = (name: string) => configMap(name, '1', { ownerReferences: [owner] });
    vanished.gone(child('a'));
    clock.setWallBy(shift);
    clock.jump(599_999);
    vanished.gone(child('b'));
    expect(vanished.size).toBe(2);
    clock.jump(1);
    vanished.gone(child('c'));
    expect(vanished.size).toBe(2);
  });

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

  it('neither splits a series of events nor joins two, and shows itself in what people read', () => {
    const clock = new VirtualClock();
    const book = new EventSeriesBook(({ name }) => name);
    const regarding = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u' };
    const observe = () =>
      book.observe(regarding, { type: 'Normal', reason: 'R', action: 'A', note: 'n' }, instant(clock)).series;
    observe();
    clock.setWallBy(shift);
    clock.jump(60_000);
    expect(observe()).toMatchObject({ count: 2, lastAt: clock.now() });
    clock.jump(6 * 60_000);
    expect(observe()).toMatchObject({ count: 1, startedAt: clock.now() });
  });

  it('does not change how long the event loop is kept busy', () => {
    const clock = new VirtualClock();
    const breather = new Breather({ clock, nextTurn: () => new Promise(() => undefined) });
    void breather.pause();
    clock.setWallBy(shift);
    clock.jump(9);
    expect(breather.pause()).toBeUndefined();
    clock.jump(1);
    expect(breather.pause()).toBeDefined();
  });
});

import { describe, expect, it } from 'vitest';
import type { Lane } from '../../src/engine/loop/work-queue.js';
import { Queue } from '../../src/engine/loop/work-queue.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

function newQueue(random = () => 0): { queue: Queue; clock: VirtualClock } {
  const clock = new VirtualClock();
  const metrics = new Metrics();
  return { queue: new Queue({ clock, random, metrics, controller: 'widget' }), clock };
}

/** What a worker would get at once. */
async function takeNow(queue: Queue): Promise<string | undefined> {
  return queue.depth > 0 ? queue.take() : undefined;
}

describe('Queue', () => {
  it('hands keys out in the order in which they were added', async () => {
    const { queue } = newQueue();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(['a', 'b', 'c']);
  });

  it('does not hand out a key in work, and hands it out again once it is done', async () => {
    const { queue } = newQueue();
    queue.add('a');
    await queue.take();
    queue.add('a');
    queue.add('a');
    expect(queue.depth).toBe(0);
    queue.done('a');
    expect(queue.depth).toBe(1);
    expect(await queue.take()).toBe('a');
    queue.done('a');
    expect(queue.depth).toBe(0);
  });

  it.each([
    ['half of that at least', 0, 150_000],
    ['jitter included', 1, 300_000],
  ])('waits twice as long after each failure in a row, up to five minutes, %s', (_, random, longest) => {
    const { queue, clock } = newQueue(() => random);
    const delays = Array.from({ length: 20 }, () => {
      const delay = queue.addRateLimited('a');
      clock.jump(delay);
      return delay;
    });
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40].map((delay) => delay * (1 + random)));
    expect(delays.at(-1)).toBe(longest);
  });

  it('keeps a pause that is not over, so that a storm of events does not make it longer', () => {
    const { queue, clock } = newQueue();
    expect(queue.addRateLimited('a')).toBe(5);
    clock.jump(2);
    expect(queue.addRateLimited('a')).toBe(3);
    clock.jump(3);
    expect(queue.addRateLimited('a')).toBe(10);
  });

  it('counts a failure after a pause that is over, although its timer is late', () => {
    const { queue, clock } = newQueue();
    expect(queue.addRateLimited('a')).toBe(5);
    clock.stopFor(7);
    expect(queue.addRateLimited('a')).toBe(10);
  });
});

/** Everything that can be taken at once, in its order. */
async function takeAll(queue: Queue): Promise<string[]> {
  const taken: string[] = [];
  for (let key = await takeNow(queue); key !== undefined; key = await takeNow(queue)) taken.push(key);
  return taken;
}

function addAll(queue: Queue, lane: Lane, count: number): void {
  for (let n = 0; n < count; n++) queue.add(`${lane}/${n}`, lane);
}

describe('Queue, lanes', () => {
  it('takes changes before children, and those before what a list has brought', async () => {
    const { queue } = newQueue();
    queue.add('listed', 'initial');
    queue.add('child', 'child');
    queue.add('change', 'change');
    expect(await takeAll(queue)).toEqual(['change', 'child', 'listed']);
  });

  it('moves a key up that is added to a more urgent lane, and never down', async () => {
    const { queue } = newQueue();
    for (const key of ['a', 'b', 'c']) queue.add(key, 'initial');
    queue.add('d', 'change');
    queue.add('b', 'change');
    queue.add('b', 'initial');
    expect(queue.depthOf('initial')).toBe(2);
    expect(await takeAll(queue)).toEqual(['d', 'b', 'a', 'c']);
  });

  it('takes the oldest of the lowest lane as every eighth', async () => {
    const { queue } = newQueue();
    addAll(queue, 'initial', 2);
    addAll(queue, 'change', 20);
    const taken = await takeAll(queue);
    expect(taken.indexOf('initial/0')).toBe(7);
    expect(taken.indexOf('initial/1')).toBe(15);
  });
});

describe('Queue, later', () => {
  it('takes a key within the shortest of the delays that were asked for, whatever is asked for afterwards', async () => {
    const { queue, clock } = newQueue();
    queue.addWithin('a', 1_000, 'status');
    queue.addWithin('a', 100, 'status');
    queue.addWithin('a', 1_000, 'status');
    await clock.advance(100);
    expect(await takeNow(queue)).toBe('a');
  });
});

describe('Queue, held', () => {
  it('hands out nothing while any reason holds, and keeps everything', async () => {
    const { queue } = newQueue();
    const taken: (string | undefined)[] = [];
    void queue.take().then((key) => taken.push(key));
    queue.hold('standby');
    queue.hold('paused');
    queue.add('a');
    queue.add('a');
    queue.release('standby');
    queue.release('never held');
    await settled();
    expect(taken).toEqual([]);
    expect(queue.depth).toBe(1);
    queue.release('paused');
    await settled();
    expect(taken).toEqual(['a']);
    expect(queue.depth).toBe(0);
  });
});

describe('Queue, measured', () => {
  it('tells since when the oldest key waits, in whichever lane, held back or not', async () => {
    const clock = new VirtualClock();
    const metrics = new Metrics();
    const queue = new Queue({ clock, random: () => 0, metrics, controller: 'widget' });
    const told = async (): Promise<string | undefined> =>
      /reconstruct_queue_oldest_seconds\{.*\} (\S+)/.exec(await metrics.scrape())?.[1];
    expect(await told()).toBe('0');
    queue.hold('standby');
    queue.add('old', 'status');
    clock.jump(2_000);
    queue.add('young', 'change');
    // It has waited for as long as before, although it comes later in its new lane.
    queue.add('old', 'change');
    clock.jump(1_000);
    expect(await told()).toBe('3');
    queue.release('standby');
    await queue.take();
    expect(await told()).toBe('3');
    await queue.take();
    expect(await told()).toBe('0');
  });
});

import { describe, expect, it } from 'vitest';
import type { Lane } from '../../src/engine/work-queue.js';
import { QueueMetrics, Queue } from '../../src/engine/work-queue.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

function newQueue(random = () => 0): { queue: Queue; clock: VirtualClock } {
  const clock = new VirtualClock();
  return { queue: new Queue({ clock, random }), clock };
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

  it('adds a key when its delay is over, and not before', () => {
    const { queue, clock } = newQueue();
    queue.addAfter('a', 1000);
    clock.jump(999);
    expect(queue.depth).toBe(0);
    clock.jump(1);
    expect(queue.depth).toBe(1);
  });

  it.each([
    { name: 'the later', delays: [1000, 5000] },
    { name: 'the sooner', delays: [5000, 1000] },
  ])('keeps the sooner of two delays when $name is set last', ({ delays }) => {
    const { queue, clock } = newQueue();
    for (const delay of delays) queue.addAfter('a', delay);
    clock.jump(1000);
    expect(queue.depth).toBe(1);
    expect(clock.timers).toBe(0);
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

  it('waits no longer than it is asked to, jitter included', () => {
    const { queue, clock } = newQueue(() => 1);
    const delays = Array.from({ length: 20 }, () => {
      const delay = queue.addRateLimited('a', 60_000, 120_000);
      clock.jump(delay);
      return delay;
    });
    expect(delays[0]).toBe(60_000);
    expect(delays.at(-1)).toBe(120_000);
  });

  it('keeps a pause that is not over, so that a storm of events does not make it longer', () => {
    const { queue, clock } = newQueue();
    expect(queue.addRateLimited('a')).toBe(5);
    clock.jump(2);
    expect(queue.addRateLimited('a')).toBe(3);
    clock.jump(3);
    expect(queue.addRateLimited('a')).toBe(10);
  });

  it('counts failures per key and from the start after a success', () => {
    const { queue, clock } = newQueue();
    clock.jump(queue.addRateLimited('a'));
    clock.jump(queue.addRateLimited('a'));
    expect(queue.addRateLimited('b')).toBe(5);
    queue.forget('a');
    expect(queue.addRateLimited('a')).toBe(5);
  });

  it('hands out nothing once it is closed, and lets waiting workers go', async () => {
    const { queue, clock } = newQueue();
    const waiting = queue.take();
    queue.addAfter('later', 1000);
    queue.close();
    queue.add('now');
    queue.addAfter('later still', 1000);
    expect(await waiting).toBeUndefined();
    expect(await queue.take()).toBeUndefined();
    expect(clock.timers).toBe(0);
  });

  it('keeps its order and loses nothing over many thousand keys', async () => {
    const { queue } = newQueue();
    const taken: (string | undefined)[] = [];
    for (let round = 0; round < 5; round++) {
      for (let n = 0; n < 1500; n++) queue.add(`${round}/${n}`);
      for (let n = 0; n < 1200; n++) taken.push(await queue.take());
    }
    while (queue.depth > 0) taken.push(await queue.take());
    expect(taken).toEqual(
      Array.from({ length: 5 }, (_, round) => Array.from({ length: 1500 }, (_, n) => `${round}/${n}`)).flat(),
    );
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

  it('takes a key that was added in work from the most urgent lane that it was added to', async () => {
    const { queue } = newQueue();
    queue.add('a', 'initial');
    await queue.take();
    queue.add('a', 'initial');
    queue.add('a', 'change');
    queue.add('a', 'child');
    queue.done('a');
    expect(queue.depthOf('change')).toBe(1);
    expect(await queue.take()).toBe('a');
    queue.done('a');
    expect(queue.depth).toBe(0);
  });

  it('takes the oldest of the lowest lane as every eighth', async () => {
    const { queue } = newQueue();
    addAll(queue, 'initial', 2);
    addAll(queue, 'change', 20);
    const taken = await takeAll(queue);
    expect(taken.indexOf('initial/0')).toBe(7);
    expect(taken.indexOf('initial/1')).toBe(15);
  });

  it('lets the lanes take turns when all of them are overdue', async () => {
    const { queue, clock } = newQueue();
    for (const lane of ['initial', 'child', 'change'] as const) addAll(queue, lane, 3);
    const taken: (string | undefined)[] = [];
    for (let n = 0; n < 6; n++) {
      clock.jump(60_000);
      taken.push((await takeNow(queue))?.split('/')[0]);
    }
    expect(taken).toEqual(['initial', 'child', 'change', 'initial', 'child', 'change']);
  });

  // https://github.com/kubernetes-sigs/controller-runtime/issues/3157
  it('tries what has failed again in the lane from which it was taken', async () => {
    const { queue, clock } = newQueue();
    queue.add('a', 'initial');
    await queue.take();
    const pause = queue.addRateLimited('a');
    queue.done('a');
    clock.jump(pause);
    expect(queue.depthOf('initial')).toBe(1);
    await queue.take();
    queue.addAgain('a');
    queue.done('a');
    expect(queue.depthOf('initial')).toBe(1);
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

  it('takes what was in work and added again only when it is released', async () => {
    const { queue } = newQueue();
    queue.add('a');
    await queue.take();
    queue.hold('standby');
    queue.add('a');
    queue.done('a');
    let key: string | undefined;
    void queue.take().then((taken) => (key = taken));
    await settled();
    expect(key).toBeUndefined();
    queue.release('standby');
    await settled();
    expect(key).toBe('a');
  });
});

describe('Queue, planned times', () => {
  it('gathers changes for a time that later ones do not push on', () => {
    const { queue, clock } = newQueue();
    for (let n = 0; n < 10; n++) {
      queue.addCoalesced('a', 100, 'child');
      clock.jump(9);
    }
    expect(queue.depth).toBe(0);
    clock.jump(10);
    expect(queue.depth).toBe(1);
    expect(clock.timers).toBe(0);
  });

  it('has served gathered changes when the key is taken for another reason', async () => {
    const { queue, clock } = newQueue();
    queue.addCoalesced('a', 100, 'child');
    queue.add('a');
    expect(await queue.take()).toBe('a');
    queue.done('a');
    clock.jump(1_000);
    expect(queue.depth).toBe(0);
  });

  it('does not gather what waits already, unless in a less urgent lane', () => {
    const { queue, clock } = newQueue();
    queue.add('a', 'child');
    queue.addCoalesced('a', 100, 'child');
    expect(clock.timers).toBe(0);
    queue.add('b', 'initial');
    queue.addCoalesced('b', 100, 'child');
    clock.jump(100);
    expect(queue.depthOf('child')).toBe(2);
  });

  it('keeps the time that was asked for, and the pause after a failure, when a key is taken in between', async () => {
    const { queue, clock } = newQueue();
    queue.addAfter('a', 1_000);
    const pause = queue.addRateLimited('a', 500);
    queue.addCoalesced('a', 100, 'child');
    for (const at of [100, pause, 1_000]) {
      clock.jump(at - (clock.now() - Date.UTC(2026, 0, 1)));
      expect(await takeNow(queue)).toBe('a');
      queue.done('a');
    }
    expect(clock.timers).toBe(0);
  });

  it('waits at least as long as it is asked to, also when a shorter pause is not over', () => {
    const { queue, clock } = newQueue();
    expect(queue.addRateLimited('a', 60_000)).toBe(60_000);
    clock.jump(59_000);
    expect(queue.addRateLimited('a')).toBe(1_000);
    expect(queue.addRateLimited('a', 5_000)).toBe(5_000);
    clock.jump(4_999);
    expect(queue.depth).toBe(0);
    clock.jump(1);
    expect(queue.depth).toBe(1);
    // Only pauses that were over have counted.
    expect(queue.addRateLimited('a')).toBe(10);
  });
});

describe('Queue, measured', () => {
  it('tells since when the oldest key waits, in whichever lane, held back or not', async () => {
    const clock = new VirtualClock();
    const metrics = new Metrics();
    const measured = new QueueMetrics(metrics, 'widget');
    const queue = new Queue({ clock, random: () => 0, observer: measured });
    measured.readOnScrape(queue, clock);
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

  it('tells what was added, how long it waited and how long it was in work', async () => {
    const clock = new VirtualClock();
    const heard: string[] = [];
    const observer = {
      added: () => heard.push('added'),
      taken: (waited: number) => heard.push(`taken after ${waited}`),
      done: (worked: number) => heard.push(`done after ${worked}`),
    };
    const queue = new Queue({ clock, random: () => 0, observer });
    queue.add('a');
    queue.add('a');
    clock.jump(30);
    await queue.take();
    queue.add('a');
    queue.add('a');
    clock.jump(12);
    expect(queue.workingSince).toEqual([clock.now() - 12]);
    queue.done('a');
    expect(queue.workingSince).toEqual([]);
    clock.jump(1);
    queue.hold('standby');
    clock.jump(1_000);
    queue.release('standby');
    clock.jump(2);
    await queue.take();
    expect(heard).toEqual([
      'added',
      'taken after 30',
      'added',
      'done after 12',
      // The time for which it was held doesn't count.
      'taken after 2',
    ]);
  });
});

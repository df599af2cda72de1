import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Queue } from '../../src/engine/queue.js';
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

  it('takes a key that was added several times once', async () => {
    const { queue } = newQueue();
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
    expect(queue.depth).toBe(2);
    expect([await takeNow(queue), await takeNow(queue), await takeNow(queue)]).toEqual(['a', 'b', undefined]);
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

  it('gives a key to the worker that has waited longest', async () => {
    const { queue } = newQueue();
    const taken: string[] = [];
    for (const worker of ['first', 'second'])
      void queue.take().then((key) => taken.push(`${worker} ${key ?? ''}`));
    queue.add('a');
    queue.add('b');
    await settled();
    expect(taken).toEqual(['first a', 'second b']);
  });

  it('counts an add between the hand-over and the worker as an add while in work', async () => {
    const { queue } = newQueue();
    const taking = queue.take();
    queue.add('a');
    queue.add('a');
    expect(await taking).toBe('a');
    expect(queue.depth).toBe(0);
    queue.done('a');
    expect(queue.depth).toBe(1);
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

  it('adds a key at once although it has a delay', () => {
    const { queue } = newQueue();
    queue.addAfter('a', 1000);
    queue.add('a');
    expect(queue.depth).toBe(1);
  });

  it('waits twice as long after each failure in a row, up to five minutes', () => {
    const { queue, clock } = newQueue();
    const delays = Array.from({ length: 20 }, () => {
      const delay = queue.addRateLimited('a');
      clock.jump(delay);
      return delay;
    });
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(300_000);
  });

  it('stretches the pause by up to itself', () => {
    expect(newQueue(() => 0.999).queue.addRateLimited('a')).toBeCloseTo(10, 1);
  });

  it('keeps a pause that is not over, so that a storm of events does not make it longer', () => {
    const { queue, clock } = newQueue();
    expect(queue.addRateLimited('a')).toBe(5);
    clock.jump(2);
    expect(queue.addRateLimited('a')).toBe(3);
    clock.jump(3);
    expect(queue.addRateLimited('a')).toBe(10);
  });

  it('does not wait for a distant time that was planned when something fails', () => {
    const { queue } = newQueue();
    queue.addAfter('a', 600_000);
    expect(queue.addRateLimited('a')).toBe(5);
  });

  it('counts failures per key and from the start after a success', () => {
    const { queue, clock } = newQueue();
    clock.jump(queue.addRateLimited('a'));
    clock.jump(queue.addRateLimited('a'));
    expect(queue.addRateLimited('b')).toBe(5);
    queue.forget('a');
    expect(queue.addRateLimited('a')).toBe(5);
  });

  it('drops what was planned when a key is forgotten', () => {
    const { queue, clock } = newQueue();
    queue.addAfter('a', 1000);
    queue.forget('a');
    clock.jump(10_000);
    expect(queue.depth).toBe(0);
    expect(clock.timers).toBe(0);
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

/** What the queue is meant to be, in the plainest words. */
class Model {
  ready: string[] = [];
  readonly working = new Set<string>();
  readonly again = new Set<string>();
  readonly planned = new Map<string, number>();
  readonly failures = new Map<string, number>();
  readonly backoffs = new Set<string>();
  now = 0;

  add(key: string): void {
    if (this.working.has(key)) this.again.add(key);
    else if (!this.ready.includes(key)) this.ready.push(key);
  }

  addAfter(key: string, delay: number): void {
    const at = this.now + delay;
    if ((this.planned.get(key) ?? Infinity) <= at) return;
    this.backoffs.delete(key);
    // Of those that are due at once, the one that was set first comes first.
    this.planned.delete(key);
    this.planned.set(key, at);
  }

  addRateLimited(key: string): number {
    const planned = this.planned.get(key);
    if (planned !== undefined && this.backoffs.has(key)) return planned - this.now;
    const failures = this.failures.get(key) ?? 0;
    this.failures.set(key, failures + 1);
    const delay = Math.min(5 * 2 ** failures, 300_000);
    const sooner = (planned ?? Infinity) > this.now + delay;
    this.addAfter(key, delay);
    if (sooner) this.backoffs.add(key);
    return delay;
  }

  forget(key: string): void {
    this.failures.delete(key);
    this.planned.delete(key);
    this.backoffs.delete(key);
  }

  take(): string | undefined {
    const key = this.ready.shift();
    if (key !== undefined) this.working.add(key);
    return key;
  }

  done(key: string): void {
    this.working.delete(key);
    if (this.again.delete(key)) this.add(key);
  }

  advance(milliseconds: number): void {
    this.now += milliseconds;
    const due = [...this.planned].filter(([, at]) => at <= this.now).sort(([, a], [, b]) => a - b);
    for (const [key] of due) {
      this.planned.delete(key);
      this.backoffs.delete(key);
      this.add(key);
    }
  }
}

interface Pair {
  readonly queue: Queue;
  readonly clock: VirtualClock;
  readonly model: Model;
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const delay = fc.integer({ min: 0, max: 40 });

/** One step on the queue and on the model; where both answer, the answers must be equal. */
const step: fc.Arbitrary<(pair: Pair) => Promise<void> | void> = fc.oneof(
  {
    weight: 4,
    arbitrary: key.map((name) => ({ queue, model }: Pair) => {
      queue.add(name);
      model.add(name);
    }),
  },
  {
    weight: 4,
    arbitrary: fc.constant(async ({ queue, model }: Pair) => {
      expect(await takeNow(queue)).toBe(model.take());
    }),
  },
  {
    weight: 4,
    arbitrary: fc.nat().map((pick) => ({ queue, model }: Pair) => {
      const inWork = [...model.working];
      const name = inWork[pick % Math.max(1, inWork.length)];
      if (name === undefined) return;
      queue.done(name);
      model.done(name);
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(key, delay).map(([name, milliseconds]) => ({ queue, model }: Pair) => {
      queue.addAfter(name, milliseconds);
      model.addAfter(name, milliseconds);
    }),
  },
  {
    weight: 2,
    arbitrary: key.map((name) => ({ queue, model }: Pair) => {
      expect(queue.addRateLimited(name)).toBe(model.addRateLimited(name));
    }),
  },
  {
    weight: 1,
    arbitrary: key.map((name) => ({ queue, model }: Pair) => {
      queue.forget(name);
      model.forget(name);
    }),
  },
  {
    weight: 3,
    arbitrary: delay.map((milliseconds) => ({ clock, model }: Pair) => {
      clock.jump(milliseconds);
      model.advance(milliseconds);
    }),
  },
);

describe('Queue, against a model', () => {
  it('behaves like it, whatever happens to it in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const pair = { ...newQueue(), model: new Model() };
        for (const run of steps) {
          await run(pair);
          expect(pair.queue.depth).toBe(pair.model.ready.length);
        }
        // Nothing is lost: everything that is left comes out in the same order.
        pair.clock.jump(1_000_000);
        pair.model.advance(1_000_000);
        for (const name of [...pair.model.working]) {
          pair.queue.done(name);
          pair.model.done(name);
        }
        for (let name = pair.model.take(); name !== undefined; name = pair.model.take()) {
          expect(await takeNow(pair.queue)).toBe(name);
        }
        expect(pair.queue.depth).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it('never has one key in work twice, with workers that wait', async () => {
    const action = fc.oneof(
      key.map((name) => ({ add: name })),
      fc.nat().map((pick) => ({ done: pick })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.integer({ min: 1, max: 4 }),
        async (actions, workers) => {
          const { queue } = newQueue();
          const working: string[] = [];
          const lastAdded = new Map<string, number>();
          const lastTaken = new Map<string, number>();
          let time = 0;
          let twice: string | undefined;
          const work = (): void => {
            void queue.take().then((name) => {
              if (name === undefined) return;
              if (working.includes(name)) twice = name;
              working.push(name);
              lastTaken.set(name, time);
            });
          };
          for (let worker = 0; worker < workers; worker++) work();
          const finish = (pick: number): void => {
            const [name] = working.splice(pick % Math.max(1, working.length), 1);
            if (name === undefined) return;
            queue.done(name);
            work();
          };
          for (const act of actions) {
            time++;
            if ('add' in act) {
              lastAdded.set(act.add, time);
              queue.add(act.add);
            } else {
              finish(act.done);
            }
            await settled();
          }
          while (working.length > 0) {
            time++;
            finish(0);
            await settled();
          }
          expect(twice).toBeUndefined();
          for (const [name, at] of lastAdded) expect(lastTaken.get(name)).toBeGreaterThanOrEqual(at);
          queue.close();
        },
      ),
      { numRuns: 200 },
    );
  });
});

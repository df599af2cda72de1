import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LANES, Queue } from '../../src/engine/work-queue.js';
import type { Lane } from '../../src/engine/work-queue.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

function newQueue(): { queue: Queue; clock: VirtualClock } {
  const clock = new VirtualClock();
  return { queue: new Queue({ clock, random: () => 0 }), clock };
}

type Kind = 'requeue' | 'backoff' | 'coalesced' | 'settling';

interface Plan {
  readonly kind: Kind;
  readonly key: string;
  readonly at: number;
  readonly lane: Lane;
  /** When it was asked for first. */
  readonly since: number;
}

const higher = (a: Lane, b: Lane): Lane => (LANES.indexOf(a) < LANES.indexOf(b) ? a : b);

/** What the queue is meant to be, in the plainest words. */
class Model {
  readonly waiting: Record<Lane, string[]> = { change: [], child: [], initial: [], status: [] };
  readonly working = new Map<string, Lane>();
  readonly again = new Map<string, Lane>();
  readonly failures = new Map<string, number>();
  readonly holds = new Set<string>();
  /** Per lane with keys in it: keys of others that were taken, and the time, since it was served or began. */
  readonly passed: Record<Lane, number> = { change: 0, child: 0, initial: 0, status: 0 };
  readonly since: Record<Lane, number> = { change: 0, child: 0, initial: 0, status: 0 };
  /** The one that was served, or began, last comes last. */
  order: Lane[] = [];
  plans: Plan[] = [];

  constructor(public now: number) {}

  get depth(): number {
    return LANES.reduce((sum, lane) => sum + this.waiting[lane].length, 0);
  }

  add(key: string, lane: Lane): void {
    if (this.working.has(key)) {
      this.again.set(key, higher(lane, this.again.get(key) ?? lane));
      return;
    }
    const old = this.laneOf(key);
    if (old !== undefined && higher(old, lane) === old) return;
    if (old) this.waiting[old].splice(this.waiting[old].indexOf(key), 1);
    if (this.waiting[lane].length === 0) this.serve(lane);
    this.waiting[lane].push(key);
  }

  addAfter(key: string, delay: number, lane: Lane): void {
    this.sooner('requeue', key, delay, lane);
  }

  addCoalesced(key: string, delay: number, lane: Lane): void {
    const waitsIn = this.laneOf(key) ?? this.again.get(key);
    if (waitsIn !== undefined && higher(waitsIn, lane) === waitsIn) return;
    this.sooner('coalesced', key, delay, lane);
  }

  addSettling(key: string, quiet: number, longest: number, lane: Lane): void {
    const waitsIn = this.laneOf(key) ?? this.again.get(key);
    if (waitsIn !== undefined && higher(waitsIn, lane) === waitsIn) return;
    const planned = this.planned('settling', key);
    const since = planned?.since ?? this.now;
    const at = Math.min(this.now + quiet, since + longest);
    this.drop('settling', key);
    this.plans.push({ kind: 'settling', key, at, since, lane: higher(lane, planned?.lane ?? lane) });
  }

  addRateLimited(key: string, minimum: number): number {
    const lane = this.working.get(key) ?? 'change';
    const planned = this.planned('backoff', key);
    if (planned) {
      if (planned.at < this.now + minimum) this.plan('backoff', key, minimum, lane);
      return Math.max(planned.at - this.now, minimum);
    }
    const failures = this.failures.get(key) ?? 0;
    this.failures.set(key, failures + 1);
    const delay = Math.max(Math.min(5 * 2 ** failures, 150_000), minimum);
    this.plan('backoff', key, delay, lane);
    return delay;
  }

  forget(key: string): void {
    this.failures.delete(key);
    this.drop('requeue', key);
    this.drop('backoff', key);
  }

  take(): { key: string; lane: Lane } | undefined {
    if (this.holds.size > 0) return undefined;
    const lanes = LANES.filter((lane) => this.waiting[lane].length > 0);
    const lane = this.turn(lanes);
    const key = lane && this.waiting[lane].shift();
    if (!lane || key === undefined) return undefined;
    for (const other of lanes) this.passed[other]++;
    this.serve(lane);
    this.working.set(key, lane);
    this.drop('coalesced', key);
    this.drop('settling', key);
    return { key, lane };
  }

  done(key: string): void {
    this.working.delete(key);
    const lane = this.again.get(key);
    this.again.delete(key);
    if (lane) this.add(key, lane);
  }

  advance(milliseconds: number): void {
    const end = this.now + milliseconds;
    const due = this.plans.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
    this.plans = this.plans.filter(({ at }) => at > end);
    for (const { key, at, lane } of due) {
      this.now = Math.max(this.now, at);
      this.add(key, lane);
    }
    this.now = end;
  }

  private turn(lanes: readonly Lane[]): Lane | undefined {
    const lowestFirst = [...lanes].reverse();
    const share = lowestFirst.find((lane) => this.passed[lane] >= (lane === 'status' ? 15 : 7));
    const overdue = lowestFirst
      .filter((lane) => this.now - this.since[lane] >= 30_000)
      .sort((a, b) => this.order.indexOf(a) - this.order.indexOf(b));
    return (lanes.length > 1 ? (share ?? overdue[0]) : undefined) ?? lanes[0];
  }

  private serve(lane: Lane): void {
    this.passed[lane] = 0;
    this.since[lane] = this.now;
    this.order = [...this.order.filter((other) => other !== lane), lane];
  }

  private laneOf(key: string): Lane | undefined {
    return LANES.find((lane) => this.waiting[lane].includes(key));
  }

  private planned(kind: Kind, key: string): Plan | undefined {
    return this.plans.find((plan) => plan.kind === kind && plan.key === key);
  }

  private drop(kind: Kind, key: string): void {
    this.plans = this.plans.filter((plan) => plan.kind !== kind || plan.key !== key);
  }

  private plan(kind: Kind, key: string, delay: number, lane: Lane): void {
    this.drop(kind, key);
    this.plans.push({ kind, key, at: this.now + delay, lane, since: this.now });
  }

  private sooner(kind: Kind, key: string, delay: number, lane: Lane): void {
    const planned = this.planned(kind, key);
    if (!planned) this.plan(kind, key, delay, lane);
    else if (planned.at > this.now + delay) this.plan(kind, key, delay, higher(lane, planned.lane));
    else this.plans[this.plans.indexOf(planned)] = { ...planned, lane: higher(lane, planned.lane) };
  }
}

interface Head {
  readonly key: string;
  readonly since: number;
  /** Keys of other lanes that were taken since. */
  passed: number;
  /** Those that were taken when it had waited for 30 s. */
  passedLate: number;
}

/** How long the oldest key of each lane waits, counted from outside. */
class Watchdog {
  private readonly heads = new Map<Lane, Head>();

  /** Before each take: what waits. */
  look({ clock, model }: Pair): void {
    for (const lane of LANES) {
      const [key] = model.waiting[lane];
      if (key === undefined) this.heads.delete(lane);
      else if (this.heads.get(lane)?.key !== key)
        this.heads.set(lane, { key, since: clock.now(), passed: 0, passedLate: 0 });
    }
  }

  taken(from: Lane, now: number): void {
    this.heads.delete(from);
    for (const [lane, head] of this.heads) {
      head.passed++;
      if (now - head.since >= 30_000) head.passedLate++;
      expect(head.passed).toBeLessThanOrEqual({ change: 3, child: 9, initial: 8, status: 15 }[lane]);
      expect(head.passedLate).toBeLessThanOrEqual(3);
    }
  }
}

interface Pair {
  readonly queue: Queue;
  readonly clock: VirtualClock;
  readonly model: Model;
  readonly watchdog: Watchdog;
}

const KEYS = Array.from({ length: 24 }, (_, n) => `k${n}`);
const key = fc.constantFrom(...KEYS);
const lane = fc.constantFrom(...LANES);
const delay = fc.integer({ min: 0, max: 40 });
const reason = fc.constantFrom('standby', 'paused');

/** As of one controller, whose events come faster than that. */
const SETTLE = { quietMilliseconds: 20, longestMilliseconds: 50 };

type Step = (pair: Pair) => Promise<void> | void;

async function take(pair: Pair): Promise<void> {
  const { queue, model, clock, watchdog } = pair;
  watchdog.look(pair);
  const expected = model.take();
  if (!expected) return;
  expect(await queue.take()).toBe(expected.key);
  watchdog.taken(expected.lane, clock.now());
}

const STEPS: readonly { weight: number; arbitrary: fc.Arbitrary<Step> }[] = [
  {
    weight: 8,
    arbitrary: fc.tuple(key, lane).map(([name, to]) => ({ queue, model }: Pair) => {
      queue.add(name, to);
      model.add(name, to);
    }),
  },
  { weight: 8, arbitrary: fc.constant(take) },
  {
    weight: 6,
    arbitrary: fc.nat().map((pick) => ({ queue, model }: Pair) => {
      const inWork = [...model.working.keys()];
      const name = inWork[pick % Math.max(1, inWork.length)];
      if (name === undefined) return;
      queue.done(name);
      model.done(name);
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(key, delay, lane).map(([name, milliseconds, to]) => ({ queue, model }: Pair) => {
      queue.addAfter(name, milliseconds, to);
      model.addAfter(name, milliseconds, to);
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(key, delay, lane).map(([name, milliseconds, to]) => ({ queue, model }: Pair) => {
      queue.addCoalesced(name, milliseconds, to);
      model.addCoalesced(name, milliseconds, to);
    }),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(key, lane).map(([name, to]) => ({ queue, model }: Pair) => {
      queue.addSettling(name, SETTLE, to);
      model.addSettling(name, SETTLE.quietMilliseconds, SETTLE.longestMilliseconds, to);
    }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(key, delay).map(([name, least]) => ({ queue, model }: Pair) => {
      expect(queue.addRateLimited(name, least)).toBe(model.addRateLimited(name, least));
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
    weight: 1,
    arbitrary: reason.map((why) => ({ queue, model }: Pair) => {
      queue.hold(why);
      model.holds.add(why);
    }),
  },
  {
    weight: 2,
    arbitrary: reason.map((why) => ({ queue, model }: Pair) => {
      queue.release(why);
      model.holds.delete(why);
    }),
  },
  {
    weight: 3,
    arbitrary: fc
      .oneof(delay, fc.constantFrom(10_000, 29_999, 40_000))
      .map((milliseconds) => ({ clock, model }) => {
        clock.jump(milliseconds);
        model.advance(milliseconds);
      }),
  },
];

describe('Queue, against a model', () => {
  it('behaves like it, whatever happens to it in whatever order, and no lane starves', async () => {
    const steps = fc.array(fc.oneof(...STEPS), { maxLength: 150, size: 'max' });
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const { queue, clock } = newQueue();
        const pair = { queue, clock, model: new Model(clock.now()), watchdog: new Watchdog() };
        const { model } = pair;
        for (const run of all) {
          await run(pair);
          for (const each of LANES) expect(queue.depthOf(each)).toBe(model.waiting[each].length);
          expect(queue.workingSince).toHaveLength(model.working.size);
          expect(clock.timers).toBe(model.plans.length);
        }
        // Nothing is lost: everything that is left comes out, in the same order.
        for (const why of [...model.holds]) queue.release(why);
        model.holds.clear();
        clock.jump(1_000_000);
        model.advance(1_000_000);
        for (const name of [...model.working.keys()]) {
          queue.done(name);
          model.done(name);
        }
        while (model.depth > 0) await take(pair);
        expect(queue.depth).toBe(0);
      }),
      { numRuns: 300 },
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

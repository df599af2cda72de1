import { expect, test } from 'vitest';
import { hold } from '../../src/engine/preview/hold.js';
import { Updates } from '../../src/author/updates.js';
import { dateConditions } from '../../src/author/status.js';
import type { LiveResource } from '../../src/author/status.js';
import type { Change } from '../../src/contract/change.js';
import type { Condition, ConditionProps, Readiness } from '../../src/contract/conditions.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { refOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { recordText } from '../../src/values/projections.js';
import { childReadiness, worstReadiness } from '../../src/values/readiness.js';

const BUILD = 'bbbbbbbb';
const [COUNT, AT_ONCE, WORKERS, READY_MILLISECONDS] = [24, 3, 4, 20_000];
/** Longest time that a Deployment takes, and times of a step and of a start. */
const [ROLL_MILLISECONDS, STEP_MILLISECONDS] = [3_000, 50];

type Resource = AnyObject & LiveResource;
interface Child {
  readonly name: string;
  readonly rolls: boolean;
  build?: string;
  at: number;
  /** Time at which a Deployment is ready. */
  readyAt: number;
}
interface Shop {
  readonly name: string;
  readonly isFragile: boolean;
  generation: number;
  observed: number;
  conditions: readonly Condition[];
  readonly children: readonly Child[];
  isEdited: boolean;
}

/** Pseudo-random numbers from 0 to 1. */
function randomOf(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), state | 1) + 0x6d2b79f5) | 0;
    state ^= state + Math.imul(state ^ (state >>> 7), state | 61);
    return ((state ^ (state >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A rollout over shops of three children, by processes that are killed between any two writes. */
class World {
  now = Date.parse('2026-01-01T00:00:00Z');
  readonly shops = new Map<string, Shop>();
  kills = 0;
  mostUnready = 0;
  /** What the lease says, and what is to be written to it with the next renewal. */
  stopped: string | undefined;
  private noted: string | undefined;
  private term = 0;
  private updates = this.process();
  private queue = new Set<string>();
  private timers = new Map<string, number>();
  private plans = new Map<string, Generator<undefined, void>>();
  readonly random: () => number;

  constructor(seed: number, fragile: (index: number) => boolean) {
    this.random = randomOf(seed);
    for (let index = 0; index < COUNT; index++) {
      const name = `shop-${String(index).padStart(2, '0')}`;
      const child = (part: string, rolls: boolean): Child => ({
        ...{ name: `${name}-${part}`, rolls, build: 'aaaaaaaa', at: this.now, readyAt: 0 },
      });
      // Pods are replaced by the child that is applied first, in the middle, or last.
      const rolls = Math.floor(this.random() * 3);
      this.shops.set(`a/${name}`, {
        ...{ name, isFragile: fragile(index), generation: 1, observed: 1, isEdited: false },
        conditions: dateConditions(
          [{ type: 'Ready', status: 'True', reason: 'Any', message: '' }],
          [],
          new Date(this.now),
          1,
        ),
        children: [0, 1, 2].map((part) => child(String(part), part === rolls)),
      });
    }
    this.restart();
  }

  /** Does one thing: a write, the beginning of a plan, a look at the clock, or a kill. */
  step(killing: number): void {
    this.now += STEP_MILLISECONDS;
    if (this.random() < killing) {
      this.kills++;
      this.restart();
      return;
    }
    if (this.random() < 0.05 && this.noted !== undefined) this.stopped = this.noted;
    for (const [key, at] of this.timers) if (at <= this.now) this.wake(key);
    for (const [key, shop] of this.shops)
      if (
        shop.children.some(({ readyAt }) => readyAt > this.now - 2 * STEP_MILLISECONDS && readyAt <= this.now)
      )
        this.wake(key);
    const startable = [...this.queue].filter((key) => !this.plans.has(key));
    if (startable.length > 0 && this.plans.size < WORKERS && this.random() < 0.5) {
      const key = startable[Math.floor(this.random() * Math.min(3, startable.length))]!;
      this.queue.delete(key);
      this.plans.set(key, this.plan(key));
    }
    const running = [...this.plans];
    if (running.length === 0) return;
    const [key, plan] = running[Math.floor(this.random() * running.length)]!;
    if (plan.next().done) this.plans.delete(key);
    this.mostUnready = Math.max(this.mostUnready, this.unready().length);
  }

  edit(key: string): void {
    const shop = this.shops.get(key)!;
    shop.generation++;
    shop.isEdited = true;
    this.wake(key);
  }

  unready(): string[] {
    return [...this.shops.values()]
      .filter((shop) => !shop.isEdited && !this.isReady(shop))
      .map(({ name }) => name);
  }

  updated(): string[] {
    return [...this.shops.values()]
      .filter(({ children }) => children.every(({ build }) => build === BUILD))
      .map(({ name }) => name);
  }

  private wake(key: string): void {
    this.timers.delete(key);
    this.queue.add(key);
  }

  private restart(): void {
    this.term++;
    this.updates = this.process();
    this.noted = undefined;
    this.plans = new Map();
    this.timers = new Map();
    this.queue = new Set(this.shops.keys());
  }

  private process(): Updates {
    return new Updates('shop', {
      build: () => BUILD,
      term: () => this.term,
      handler: hold,
      rollout: {
        ...{ atOnce: AT_ONCE, readyMilliseconds: READY_MILLISECONDS },
        stateOf: () => ((this.noted ?? this.stopped) === undefined ? undefined : { isStopped: true }),
        stop: (_kind, _build, why) => (this.noted = why),
      },
    });
  }

  private isReady({ children }: Shop): boolean {
    return children.every(({ readyAt }) => readyAt <= this.now);
  }

  private *plan(key: string): Generator<undefined, void> {
    const shop = this.shops.get(key)!;
    const { updates } = this;
    const cr = this.resource(shop);
    const isLeft = shop.children.filter(({ build }) => build !== BUILD).length;
    const list = () => [...this.shops.values()].map((one) => [this.resource(one), this.own(one)] as const);
    const update = updates.judge({
      ...{ cr, own: this.own(shop), rendering: isLeft === 0 ? undefined : String(isLeft) },
      ...{ now: new Date(this.now), list },
    })!;
    const changes: Change[] = [];
    if (update.isHeld) {
      if (update.isNews) yield;
      const pending = [{ reason: 'RollsPods', text: 'pods' } as const];
      changes.push({ ref: refOf(cr), action: 'unchanged', ...(update.isNews && { pending }) });
    } else
      for (const child of shop.children) {
        if (child.build === BUILD) continue;
        yield;
        child.build = BUILD;
        child.at = this.now;
        if (child.rolls)
          child.readyAt = shop.isFragile ? Infinity : this.now + ROLL_MILLISECONDS * this.random();
        changes.push({ ref: refOf(cr), action: 'configured' });
      }
    const readiness = worstReadiness(this.own(shop).map(childReadiness));
    const outcome = update.conclude(changes, readiness);
    const conditions = this.conditionsOf(cr, readiness, outcome.condition);
    if (outcome.requeueAt) this.timers.set(key, outcome.requeueAt.getTime());
    for (const woken of outcome.wakes ?? []) this.wake(woken);
    if (
      JSON.stringify(conditions) === JSON.stringify(shop.conditions) &&
      shop.observed === cr.metadata.generation
    )
      return;
    yield;
    shop.conditions = conditions;
    shop.observed = cr.metadata.generation!;
    this.wake(key);
  }

  private conditionsOf(
    cr: Resource,
    { phase, reason, message }: Readiness,
    more: ConditionProps | undefined,
  ): readonly Condition[] {
    const ready = { type: 'Ready', status: phase === 'ready' ? 'True' : 'False', reason, message } as const;
    return dateConditions(
      [ready, ...(more ? [more] : [])],
      cr.status!.conditions!,
      new Date(this.now),
      cr.metadata.generation,
    );
  }

  private resource({ name, generation, observed, conditions }: Shop): Resource {
    return {
      ...{ apiVersion: 'example.com/v1', kind: 'Shop', spec: {} },
      metadata: { name, namespace: 'a', uid: name, generation },
      status: { observedGeneration: observed, conditions },
    };
  }

  private own({ name: owner, children }: Shop): AnyObject[] {
    return children.map(({ name, build, at, rolls, readyAt }) => ({
      ...{ apiVersion: 'example.com/v1', kind: rolls ? 'Web' : 'Text' },
      metadata: {
        ...{ name, namespace: 'a', generation: 1 },
        annotations: {
          [APPLIED_HASH_ANNOTATION]: recordText({
            hash: 'h',
            owner,
            ...(build !== undefined && { build: { name: build, at } }),
          }),
        },
      },
      ...(rolls && {
        status: {
          observedGeneration: 1,
          conditions: [{ type: 'Ready', status: readyAt <= this.now ? 'True' : 'False' }],
        },
      }),
    }));
  }
}

/** The last three have found faults. */
const seeds = [...Array.from({ length: 40 }, (_, seed) => seed), 57, 1_166, 1_566];

test('killed between any two writes, a rollout updates all in the end, and never too many at once', () => {
  for (const seed of seeds) {
    const world = new World(seed, () => false);
    for (
      let step = 0;
      step < 20_000 && (world.updated().length < COUNT || world.unready().length > 0);
      step++
    )
      world.step(world.kills < 40 ? 0.02 : 0);
    expect(world.mostUnready, `seed ${seed}`).toBeLessThanOrEqual(AT_ONCE);
    expect(world.updated(), `seed ${seed}`).toHaveLength(COUNT);
    expect(world.stopped, `seed ${seed}`).toBeUndefined();
  }
});

test('it stops at what is broken, and goes no further, while edits are carried out', () => {
  for (const seed of seeds) {
    const world = new World(seed, (index) => index % 8 === 7);
    for (let step = 0; step < 20_000 && world.stopped === undefined; step++)
      world.step(world.kills < 20 ? 0.02 : 0);
    expect(world.stopped, `seed ${seed}`).toMatch(/^Shop a\/shop-\d+ was ready before/);
    const before = new Set(world.updated());
    world.edit('a/shop-22');
    for (let step = 0; step < 3_000; step++) world.step(step % 500 === 0 ? 1 : 0);
    before.add('shop-22');
    expect(world.mostUnready, `seed ${seed}`).toBeLessThanOrEqual(AT_ONCE);
    expect(world.updated().filter((name) => !before.has(name)).length, `seed ${seed}`).toBeLessThanOrEqual(
      AT_ONCE,
    );
    expect(world.updated(), `seed ${seed}`).toContain('shop-22');
  }
});

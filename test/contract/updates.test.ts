import { expect, test } from 'vitest';
import { hold } from '../../src/engine/preview/hold.js';
import { NO_BUILD, Updates } from '../../src/author/updates.js';
import type { LiveResource } from '../../src/author/status.js';
import type { Change } from '../../src/contract/change.js';
import type { Condition, Readiness } from '../../src/contract/conditions.js';
import type { Upgrades } from '../../src/contract/kind.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { keyOf, refOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { OperatorError } from '../../src/contract/error.js';
import { recordText } from '../../src/values/projections.js';

const START = Date.parse('2026-01-01T00:00:00Z');
const [A, B] = ['aaaaaaaa', 'bbbbbbbb'];
const ready: Readiness = { phase: 'ready', reason: 'Available', message: 'all well' };
const progressing: Readiness = { phase: 'progressing', reason: 'Progressing', message: 'on its way' };
const isTrue = (type: string, more: Partial<Condition> = {}): Condition => ({
  ...{ type, status: 'True', reason: 'Any', message: '', lastTransitionTime: new Date(START).toISOString() },
  ...more,
});

function shop(name: string, generation = 1, conditions = [isTrue('Ready')]): AnyObject & LiveResource {
  return {
    ...{
      apiVersion: 'example.com/v1',
      kind: 'Shop',
      metadata: { name, namespace: 'a', uid: name, generation },
    },
    spec: {},
    status: { observedGeneration: 1, conditions },
  };
}

/** A child that a build has applied at this number of seconds after the start; by an older release where none is named. */
function child(of: AnyObject, build?: string, seconds = 0, name = of.metadata.name): AnyObject {
  const { uid: owner = '' } = of.metadata;
  const record = recordText({
    ...{ hash: 'h', owner },
    ...(build !== undefined && { build: { name: build, at: START + 1_000 * seconds } }),
  });
  return {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { name, namespace: 'a', annotations: { [APPLIED_HASH_ANNOTATION]: record } },
  };
}

/** Plans of custom resources, one after another, by one process. */
class Process {
  now = START;
  readonly updates: Updates;
  readonly all = new Map<AnyObject & LiveResource, readonly AnyObject[]>();

  constructor(upgrades: Partial<Upgrades> & { readonly is?: string }) {
    const { is = B } = upgrades;
    this.updates = new Updates('shop', { build: () => is, term: () => 1, handler: hold, ...upgrades });
  }

  judge(
    cr: AnyObject & LiveResource,
    own: readonly AnyObject[],
    {
      release,
      rendering = 'rendering',
      isSame = false,
    }: { release?: string; rendering?: string; isSame?: boolean } = {},
  ) {
    return this.updates.judge({
      ...{ cr, own, release, rendering: isSame ? undefined : rendering },
      ...{ now: new Date(this.now), list: () => [...this.all] },
    });
  }

  conclude(
    cr: AnyObject & LiveResource,
    own: readonly AnyObject[],
    changes: readonly Change[],
    readiness = ready,
  ) {
    return this.judge(cr, own)!.conclude(changes, readiness);
  }
}

const isHeld = (
  cr: AnyObject & LiveResource,
  own: readonly AnyObject[],
  upgrades: { is?: string; release?: string } = {},
) => new Process(upgrades).judge(cr, own, upgrades)?.isHeld;

test('what another build would change is held, and what its user has edited or released is not', () => {
  const web = shop('web');
  expect(isHeld(web, [child(web)])).toBe(true);
  expect(isHeld(web, [child(web, A)])).toBe(true);
  expect(isHeld(shop('web', 2), [child(web, A)])).toBe(false);
  expect(isHeld({ ...web, status: {} }, [child(web, A)])).toBe(false);
  expect(isHeld(web, [])).toBe(false);
  expect(isHeld(web, [child(web, A)], { release: B })).toBe(false);
  expect(isHeld(web, [child(web, A)], { release: 'always' })).toBe(false);
  expect(isHeld(web, [child(web, A)], { release: A })).toBe(true);
});

test('the child that was applied last says which build a custom resource has, also after a step back', () => {
  const web = shop('web');
  const mixed = [child(web, B, 2, 'one'), child(web, A, 1, 'two')];
  expect(isHeld(web, mixed, { is: B })).toBe(false);
  expect(isHeld(web, mixed, { is: A })).toBe(true);
});

test('an edit that is not carried out whole is not held by the next process', () => {
  const web = shop('web', 2);
  const own = [child(web, A)];
  const edited = { ...web, status: { observedGeneration: 2 } };
  const after = (change: Partial<Change>): boolean | undefined => {
    const { condition } = new Process({}).conclude(web, own, [
      { ref: refOf(web), action: 'failed', ...change },
    ]);
    const conditions = condition ? [isTrue(condition.type, { ...condition, observedGeneration: 2 })] : [];
    return isHeld({ ...edited, status: { observedGeneration: 2, conditions } }, own);
  };
  expect(after({ action: 'skipped' })).toBe(false);
  expect(after({ error: new OperatorError({ reason: 'Timeout', message: '', retry: 'backoff' }) })).toBe(
    false,
  );
  expect(after({ error: new OperatorError({ reason: 'ImmutableField', message: '' }) })).toBe(false);
  expect(after({ action: 'configured' })).toBe(true);
});

test('an edit of which nothing could be rendered yet is not held, and a release that was not carried out whole is', () => {
  const edited = shop('web', 2);
  const { condition } = new Process({}).updates.notApplied(edited, false, new Date(START));
  // A deletion counts as a generation, too.
  expect(new Process({}).updates.notApplied(edited, true, new Date(START)).condition).toBeUndefined();
  const conditions = [isTrue('UpdatePending', { ...condition, observedGeneration: 2 })];
  const own = [child(edited, A)];
  expect(isHeld({ ...edited, status: { observedGeneration: 2, conditions } }, own)).toBe(false);

  const released = shop('web', 1);
  const process = new Process({});
  const update = process.judge(released, own, { release: B })!;
  const changes = [{ ref: refOf(released), action: 'skipped' } as const];
  expect(update.conclude(changes, ready)).toEqual({});
});

test('what the present build renders as it is follows its references, also before anything was looked at', () => {
  const process = new Process({});
  const web = shop('web');
  expect(process.judge(web, [child(web, A)], { isSame: true })?.isHeld).toBe(false);
  expect(process.judge(web, [child(web, A)], { rendering: 'by another reference' })?.isHeld).toBe(false);
});

test('a step to a time without hold, and back, holds what an earlier time has released', () => {
  const web = shop('web');
  expect(isHeld(web, [child(web, NO_BUILD, 2, 'one'), child(web, B, 1, 'two')])).toBe(true);
});

test('what would change is found out once, in turn, and again when something else would', () => {
  const process = new Process({});
  const [web, api] = [shop('web'), shop('api')];
  expect(process.judge(web, [child(web)])).toMatchObject({ isHeld: true, isNews: true });
  const second = process.judge(api, [child(api)]);
  expect(second).toMatchObject({ isHeld: true, isNews: false });
  expect(second!.conclude([], ready)).toEqual({ requeueAt: new Date(START + 20) });
  const pending = [{ reason: 'RollsPods', text: 'Deployment web rolls its pods: .spec.x' } as const];
  const { condition } = process.conclude(
    web,
    [child(web)],
    [{ ref: refOf(web), action: 'unchanged', pending }],
  );
  expect(condition).toMatchObject({ type: 'UpdatePending', status: 'True', reason: 'RollsPods' });
  expect(condition!.message).toMatch(
    /^Build bbbbbbbb: Deployment web rolls its pods: \.spec\.x\. Held until/,
  );
  expect(process.judge(web, [child(web)])).toMatchObject({ isHeld: true, isNews: false });
  process.now += 20;
  expect(process.judge(api, [child(api)])).toMatchObject({ isNews: true });
  process.now += 20;
  expect(process.judge(web, [child(web)], { rendering: 'other' })).toMatchObject({ isNews: true });

  // THEN the next process goes by what is said
  const said = shop('web', 1, [isTrue('UpdatePending', { ...condition })]);
  expect(new Process({}).judge(said, [child(said)])).toMatchObject({ isHeld: true, isNews: false });
  expect(new Process({ is: A }).judge(said, [child(said)])).toMatchObject({ isHeld: true, isNews: true });
});

test('a number is updated at once; the next follows one that is ready, and is woken by it', () => {
  const stopped: string[] = [];
  const rollout = {
    ...{ atOnce: 2, readyMilliseconds: 60_000 },
    stateOf: () => (stopped.length > 0 ? { isStopped: true } : undefined),
    stop: (_kind: string, _build: string, why: string) => stopped.push(why),
  };
  const process = new Process({ rollout });
  const [one, two, three] = [shop('one'), shop('two'), shop('three')];
  const old = (cr: AnyObject): AnyObject[] => [child(cr, A)];
  const fresh = (cr: AnyObject): AnyObject[] => [child(cr, B, 1)];
  expect(process.judge(one, old(one))?.isHeld).toBe(false);
  expect(process.judge(two, old(two))?.isHeld).toBe(false);
  expect(process.judge(three, old(three))?.isHeld).toBe(true);
  const configured = (cr: AnyObject): Change => ({ ref: refOf(cr), action: 'configured' });
  expect(process.conclude(one, fresh(one), [configured(one)], progressing)).toMatchObject({
    condition: { status: 'False', reason: 'Updating' },
    requeueAt: new Date(START + 60_000),
  });
  expect(process.judge(three, old(three))?.isHeld).toBe(true);
  expect(process.conclude(one, fresh(one), []).wakes).toEqual([keyOf(three)]);
  expect(process.judge(three, old(three))?.isHeld).toBe(false);

  // WHEN another process begins in the middle: one says that it is ready, as it was before the update
  const next = new Process({ rollout });
  for (const cr of [two, three])
    next.all.set(cr, [{ ...fresh(cr)[0]!, status: { conditions: [isTrue('Reconciling')] } }]);
  const four = shop('four');
  expect(next.judge(four, old(four))?.isHeld).toBe(true);

  // WHEN one isn't ready in time
  next.conclude(two, fresh(two), [], progressing);
  next.now += 60_000;
  const { event } = next.conclude(two, fresh(two), [], progressing);
  expect(event).toMatchObject({ type: 'Warning', reason: 'RolloutStopped' });
  expect(stopped).toEqual([
    "Shop a/two was ready before, and isn't 60 s after its update: Progressing: on its way",
  ]);
  next.conclude(three, fresh(three), []);
  expect(next.judge(four, old(four))?.isHeld).toBe(true);
});

test('a process that begins in the middle counts what another one has half applied, whatever it says of itself, until its own plan says that it is ready', () => {
  const rollout = { atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined, stop: () => undefined };
  const process = new Process({ rollout });
  const [half, paused, held] = [shop('half'), shop('paused'), shop('held')];
  const own = (cr: AnyObject): AnyObject[] => [child(cr, B, 1, 'first'), child(cr, A, 0, 'second')];
  for (const cr of [half, paused]) process.all.set(cr, own(cr));
  expect(process.judge(held, [child(held, A)])?.isHeld).toBe(true);
  expect(process.updates.notApplied(paused, true, new Date(START)).wakes).toEqual([]);
  expect(process.conclude(half, own(half), []).wakes).toEqual([keyOf(held)]);
  expect(process.judge(held, [child(held, A)])?.isHeld).toBe(false);
});

test('what is not ready long after all were updated stops nothing', () => {
  const stopped: string[] = [];
  const rollout = {
    ...{ atOnce: 2, readyMilliseconds: 60_000, stateOf: () => undefined },
    stop: (_kind: string, _build: string, why: string) => stopped.push(why),
  };
  const process = new Process({ rollout });
  const web = shop('web');
  const own = [child(web, B, 1)];
  process.conclude(web, own, []);
  expect(process.conclude(web, own, [], progressing).condition).toBeUndefined();
  process.now += 60_000;
  expect(process.conclude(web, own, [], progressing)).toEqual({ wakes: [] });
  expect(stopped).toEqual([]);
});

test('one custom resource holds a rollout up once, and not for longer than its time; a new one does not at all', () => {
  const stopped: string[] = [];
  let state: { isStopped: boolean; resumedAt?: number } | undefined;
  const rollout = {
    ...{ atOnce: 1, readyMilliseconds: 60_000, stateOf: () => state },
    stop: (_kind: string, _build: string, why: string) => {
      stopped.push(why);
      state = { isStopped: true };
    },
  };
  const process = new Process({ rollout });
  const [web, held] = [shop('web'), shop('held')];
  const [fresh, old] = [[child(web, B, 1)], [child(held, A)]];
  const isAdmitted = (): boolean => process.judge(held, old)?.isHeld === false;
  process.judge(web, [child(web, A)]);
  process.conclude(web, fresh, [{ ref: refOf(web), action: 'configured' }], progressing);
  expect(isAdmitted()).toBe(false);
  process.conclude(web, fresh, []);

  // WHEN it isn't ready again within its time
  process.now += 30_000;
  process.conclude(web, fresh, [], progressing);
  expect(isAdmitted()).toBe(false);
  process.now += 30_000;
  process.conclude(web, fresh, [], progressing);
  expect(stopped).toHaveLength(1);

  // WHEN it is resumed, and it is ready and not, again and again
  state = { isStopped: false, resumedAt: process.now };
  for (let round = 0; round < 3; round++) {
    process.conclude(web, fresh, []);
    process.conclude(web, fresh, [], progressing);
    process.now += 60_000;
    process.conclude(web, fresh, [], progressing);
  }
  expect(stopped).toHaveLength(1);

  // WHEN others are created that are never ready, or no longer
  for (const name of ['never', 'sometimes']) {
    const cr = { ...shop(name), status: { conditions: [] } };
    if (name === 'sometimes') process.conclude(cr, [child(cr, B, 1)], []);
    const seen = name === 'sometimes' ? shop(name) : cr;
    process.conclude(seen, [child(cr, B, 1)], [], progressing);
  }
  expect(isAdmitted()).toBe(true);
  expect(stopped).toHaveLength(1);
});

test('renderings that change again and again keep no other from its look', () => {
  const process = new Process({});
  const [web, api] = [shop('web'), shop('api')];
  process.judge(shop('first'), []);
  for (let rendering = 0; rendering < 1_000; rendering++)
    process.judge(web, [child(web)], { rendering: String(rendering) });
  const { requeueAt } = process.judge(api, [child(api)])!.conclude([], ready);
  expect(requeueAt!.getTime() - START).toBeLessThan(100);
});

test.each<[string, (process: Process, web: ReturnType<typeof shop>, own: readonly AnyObject[]) => unknown]>([
  [
    'an apply that failed',
    (process, web, own) => process.conclude(web, own, [{ ref: refOf(web), action: 'failed' }]),
  ],
  ['a pause', ({ updates }, web) => updates.notApplied(web, true, new Date(START))],
  ['a reference that was missing', ({ updates }, web) => updates.notApplied(web, false, new Date(START))],
])('what the present build renders as it is follows its references, also after %s', (_, happens) => {
  const process = new Process({});
  const web = shop('web');
  const own = [child(web, A)];
  process.judge(web, own, { isSame: true })!.conclude([], ready);
  happens(process, web, own);
  expect(process.judge(web, own, { rendering: 'by another reference' })?.isHeld).toBe(false);
});

test('one that is never planned is not waited for', () => {
  const rollout = { atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined, stop: () => undefined };
  const process = new Process({ rollout });
  const [silent, one, two] = [shop('silent'), shop('one'), shop('two')];
  process.all.set(silent, [child(silent, B, 1)]);
  const held = process.judge(one, [child(one, A)])!;
  expect(held.isHeld).toBe(true);
  expect(held.conclude([], ready).requeueAt).toEqual(new Date(START + 70_000));
  expect(process.judge(two, [child(two, A)])?.isHeld).toBe(true);
  process.now += 70_000;
  const next = (): readonly string[] => process.updates.forget('a/other', new Date(process.now));
  expect(next()).toEqual([keyOf(one)]);
});

test('what is admitted and turns out to be as it was takes no place', () => {
  const rollout = { atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined, stop: () => undefined };
  const process = new Process({ rollout });
  const [one, two] = [shop('one'), shop('two')];
  process.conclude(one, [child(one, A)], [{ ref: refOf(one), action: 'unchanged' }], progressing);
  expect(process.judge(two, [child(two, A)])?.isHeld).toBe(false);
});

test('what a process begins and the next one ends is known by the third as an update, though nothing was held yet', () => {
  const stopped: string[] = [];
  const rollout = {
    ...{ atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined },
    stop: (_kind: string, _build: string, why: string) => stopped.push(why),
  };
  const web = shop('web');
  const half = [child(web, B, 1, 'first'), child(web, A, 0, 'second')];
  const second = new Process({ rollout });
  const rest: Change = { ref: refOf(web), action: 'configured' };
  const { condition } = second.conclude(web, half, [rest], progressing);
  expect(condition).toMatchObject({ reason: 'Updating' });
  const said = shop('web', 1, [isTrue('Ready', { status: 'False' }), isTrue('UpdatePending', condition)]);
  const third = new Process({ rollout });
  third.now += 60_000;
  third.conclude(said, [child(web, B, 1)], [], progressing);
  expect(stopped).toHaveLength(1);
});

import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { inNamespaces } from '../../src/author/namespace-selector.js';
import { OwnedChildren } from '../../src/author/owned-children.js';
import type { ChangeSet } from '../../src/contract/change.js';
import type { Reader } from '../../src/contract/controller.js';
import type { RenderedType } from '../../src/contract/kind.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { keyOf, refOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { HoldStep, Plan } from '../../src/contract/plan.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import { hold } from '../../src/engine/preview/hold.js';
import { OWN_CONSTRUCTS } from '../../src/render/renderer.js';
import { withCreated } from '../../src/values/created.js';
import { contentHash } from '../../src/values/json.js';
import { recordText } from '../../src/values/projections.js';

const [A, B] = ['aaaaaaaa', 'bbbbbbbb'];
const SHOP = resourceType({ apiVersion: 'example.com/v1', kind: 'Shop' });
const CONFIG = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

class Shop extends Construct {}
OWN_CONSTRUCTS.add(Shop);

const config = (name: string, value: string): AnyObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { value } },
  metadata: { namespace: 'a', name },
});
/** A child as a build has applied it. */
const live = (object: AnyObject): AnyObject => ({
  ...object,
  metadata: {
    ...object.metadata,
    annotations: {
      ...object.metadata.annotations,
      [APPLIED_HASH_ANNOTATION]: recordText({
        ...{ hash: contentHash(object), owner: 'web', build: { name: A, at: 1 } },
      }),
    },
  },
});
const shop = (annotations = {}, status: object = { observedGeneration: 1 }): AnyObject => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Shop', spec: {}, status },
  metadata: { namespace: 'a', name: 'web', uid: 'web', generation: 1, annotations },
});

/**
 * Returns plans of an operator of build B, which renders these objects.
 * @param rollout others of the kind, with their children, where it updates by number
 */
function operator(
  rendered: readonly AnyObject[],
  rollout?: { readonly others: ReadonlyMap<AnyObject, AnyObject> },
  child: RenderedType = CONFIG,
) {
  const others = rollout?.others ?? new Map<AnyObject, AnyObject>();
  const paced = { atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined, stop: () => undefined };
  const all = new OwnedChildren(
    { name: 'shop', type: SHOP, construct: Shop, children: [child], formerChildren: [] },
    {
      render: () => [...rendered],
      upgrades: { build: () => B, term: () => 1, handler: hold, ...(rollout && { rollout: paced }) },
    },
  );
  return (cr: AnyObject, children: readonly AnyObject[]): Plan => {
    const found = [cr, ...children];
    const reader: Reader = {
      get: (type, key) => found.find((one) => groupKind(one) === groupKind(type) && keyOf(one) === key),
      all: () => [cr, ...others.keys()],
      controlledBy: (_type, uid) =>
        uid === 'web' ? children : [...others].flatMap(([of, own]) => (of.metadata.uid === uid ? [own] : [])),
      mappedTo: () => [],
      find: () => ({}),
    };
    return all.reconcile('a/web', reader, new Date('2026-01-02T03:04:05Z'));
  };
}

const textOf = (steps: Plan['steps']): string[] =>
  steps.map((step) =>
    step.do === 'barrier'
      ? '|'
      : [step.do, step.object.metadata.name, 'build' in step ? 'marked' : ''].join(' ').trim(),
  );
const held = ({ steps }: Plan): HoldStep =>
  steps.find((step): step is HoldStep => step.do === 'reconstruct/hold')!;
const pendingIn = (plan: Plan, changes: ChangeSet = []) => {
  const { conditions } = plan.conclude(changes).status[0]?.status as {
    conditions: { type: string; message: string }[];
  };
  return conditions.find(({ type }) => type === 'UpdatePending');
};

test('what another build does not change is applied, and all else held; what goes is made again, and the rest looked at again', () => {
  const [same, old, gone, away] = (['same', 'other', 'gone', 'away'] as const).map((name) =>
    live(config(name, '1')),
  ) as [AnyObject, AnyObject, AnyObject, AnyObject];
  const rendered = [config('same', '1'), config('other', '2')];
  const plan = operator(rendered);
  const first = plan(shop(), [same, old, gone, away]);
  expect(textOf(first.steps)).toEqual(['own same', 'reconstruct/hold web']);
  expect(textOf(held(first).steps)).toEqual(['own other marked', '|', 'prune gone', 'prune away']);
  expect(held(first).isNews).toBe(true);
  const pending = [{ reason: 'Changes', text: 'ConfigMap other changes' } as const];
  const said = pendingIn(first, [{ ref: refOf(shop()), action: 'unchanged', pending }]);
  expect(said!.message).toMatch(/^Build bbbbbbbb: ConfigMap other changes\. Held until/);

  // THEN it isn't looked at twice, by this process or the next, unless it renders something else
  expect(held(plan(shop(), [same, old, gone, away])).isNews).toBe(false);
  const status = { observedGeneration: 1, conditions: [said] };
  const again = operator(rendered)(shop({}, status), [away, gone, old, same]);
  expect(held(again).isNews).toBe(false);
  expect(pendingIn(again)).toMatchObject({ message: said!.message });
  expect(
    held(operator([config('same', '1'), config('other', '3')])(shop({}, status), [same, old, gone, away]))
      .isNews,
  ).toBe(true);

  // WHEN a child goes
  const next = plan(shop(), [same, gone]);
  expect(textOf(next.steps)).toEqual(['own same', 'own other', 'reconstruct/hold web']);
  expect(textOf(held(next).steps)).toEqual(['|', 'prune gone']);
  const { events } = next.conclude([{ ref: refOf(old), action: 'created' }]);
  expect(events.map(({ event }) => event.reason)).toEqual(['CreatedByNewBuild']);
  expect(textOf(operator(rendered)(shop({}, status), [same, gone]).steps)).toEqual([
    'own same',
    'reconstruct/hold web',
  ]);

  // WHEN it is released
  const released = plan(shop({ 'reconstruct.kosmos.io/release': B }), [same, old, gone, away]);
  expect(textOf(released.steps)).toEqual([
    'own same marked',
    'own other marked',
    '|',
    'prune gone',
    'prune away',
  ]);
  expect(pendingIn(released)).toBeUndefined();
});

test.each([
  ['one of the new build may be under way when a process begins', {}, true],
  [
    'one that is paused is not waited for',
    { annotations: { 'reconstruct.kosmos.io/paused': 'true' } },
    false,
  ],
  ['nor one that goes', { deletionTimestamp: '2026-01-02T03:04:05Z' }, false],
])('%s', (_, metadata, isHeld) => {
  const status = { observedGeneration: 1, conditions: [{ type: 'Ready', status: 'True' }] };
  const other = {
    ...shop({}, status),
    metadata: { namespace: 'a', name: 'other', uid: 'other', generation: 1, ...metadata },
  };
  const record = recordText({ hash: 'h', owner: 'other', build: { name: B, at: 1 } });
  const own = {
    ...config('other', '1'),
    metadata: { namespace: 'a', name: 'other', annotations: { [APPLIED_HASH_ANNOTATION]: record } },
  };
  const plan = operator([config('same', '2')], { others: new Map([[other, own]]) });
  const { steps } = plan(shop(), [live(config('same', '1'))]);
  expect(steps.some((step) => step.do === 'reconstruct/hold')).toBe(isHeld);
});

test('a field that stays as it was created is nothing that another build would change', () => {
  const paths = ['.data'];
  const created = live(withCreated(config('same', '1'), paths));
  const plan = operator([config('same', '2')], undefined, { ...CONFIG, createOnly: paths });
  expect(textOf(plan(shop(), [created]).steps)).toEqual(['own same marked', '|']);
});

test('where nothing would change, nothing is held', () => {
  const children = [live(config('same', '1'))];
  const plan = operator([config('same', '1')]);
  expect(textOf(plan(shop(), children).steps)).toEqual(['own same marked', '|']);
});

test('what is no longer looked after, since its namespace has lost its label, is not updated in place of others', () => {
  const status = { observedGeneration: 1, conditions: [{ type: 'Ready', status: 'True' }] };
  const named = (namespace: string, name: string): AnyObject => ({
    ...shop({}, status),
    metadata: { namespace, name, uid: name, generation: 1 },
  });
  const rendered = ({ metadata: { namespace } }: Pick<AnyObject, 'metadata'>, value: string): AnyObject => {
    const object = config('same', value);
    return { ...object, metadata: { ...object.metadata, ...(namespace && { namespace }) } };
  };
  const selected = new Map(['a', 'b'].map((name) => [name, { metadata: { name } } as AnyObject]));
  const all = new Map(
    [named('a', 'one'), named('b', 'two'), named('a', 'three')].map((cr) => [keyOf(cr), cr]),
  );
  const paced = { atOnce: 1, readyMilliseconds: 60_000, stateOf: () => undefined, stop: () => undefined };
  const controller = inNamespaces(
    new OwnedChildren(
      { name: 'shop', type: SHOP, construct: Shop, children: [CONFIG], formerChildren: [] },
      {
        ...{ render: (_kind, cr) => [rendered(cr, '2')], namespaceSelector: 'team=a' },
        upgrades: { build: () => B, term: () => 1, handler: hold, rollout: paced },
      },
    ),
    'team=a',
  );
  const reader: Reader = {
    get: (type, key) => {
      const [namespace = ''] = key.split('/');
      if (type.kind !== 'ConfigMap') return selected.get(key) ?? all.get(key);
      return live(rendered({ metadata: { name: 'same', namespace } }, '1'));
    },
    controlledBy: (_type, uid) =>
      [...all.values()].filter(({ metadata }) => metadata.uid === uid).map((cr) => live(rendered(cr, '1'))),
    ...{ all: () => [...all.values()], mappedTo: () => [], find: () => ({}) },
  };
  const plan = (key: string): Plan => controller.reconcile(key, reader, new Date('2026-01-02T03:04:05Z'));
  const isHeld = ({ steps }: Plan): boolean => steps.some((step) => step.do === 'reconstruct/hold');
  expect(['a/one', 'b/two', 'a/three'].map((key) => isHeld(plan(key)))).toEqual([false, true, true]);

  selected.delete('b');
  expect(plan('b/two').conclude([]).wakes).toEqual([]);
  selected.delete('a');
  expect(plan('a/one').conclude([]).wakes).toEqual(['a/three']);
  selected.set('a', { metadata: { name: 'a' } } as AnyObject);
  expect(isHeld(plan('a/three'))).toBe(false);
});

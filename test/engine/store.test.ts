import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  GENERATED_ANNOTATION,
  SHARED_HASH_PREFIX,
} from '../../src/contract/names.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject, ManagedFieldsEntry } from '../../src/contract/object.js';
import { keepStatus, unreadableFor } from '../../src/values/projections.js';
import { Store } from '../../src/engine/watch/cache.js';
import type { StoreProps } from '../../src/engine/watch/cache.js';
import {
  isLegacy,
  MAX_KEPT,
  sharedWithLeftovers,
  stands,
  withoutOwners,
} from '../../src/engine/steps/managed-fields.js';
import {
  anObject,
  applied,
  configMap,
  DEPLOYMENT,
  MANAGER,
  ownedBy,
  recordingLogger,
} from './support/builders.js';
import type { LogLine } from './support/builders.js';

type Change = readonly [before: string | undefined, after: string | undefined];

function newStore(props: Partial<StoreProps> = {}): { store: Store; changes: Change[] } {
  const store = new Store({ keep: (object) => object, freeze: true, ...props });
  const changes: Change[] = [];
  const tag = (object: AnyObject | undefined): string | undefined =>
    object && `${object.metadata.name}@${object.metadata.resourceVersion ?? ''}`;
  store.onChange((before, after) => changes.push([tag(before), tag(after)]));
  return { store, changes };
}

function replace(store: Store, resourceVersion: string, objects: AnyObject[], namespace?: string): boolean {
  return store.replace(
    objects.map((object) => store.project(object)),
    resourceVersion,
    namespace,
  );
}

/** Nested so deeply that a recursion without a bound ends at the end of the stack. */
const deep = (levels = 7_000): object =>
  JSON.parse(`${'{"f:a":'.repeat(levels)}{}${'}'.repeat(levels)}`) as object;

describe('Store, an object that is nested too deeply', () => {
  const spec = (name: string, version: string, levels?: number): AnyObject => ({
    ...configMap(name, version, { managedFields: [applied('user', deep(levels)), applied(MANAGER, {})] }),
    spec: deep(levels),
    status: { ready: true },
  });

  it.each([{}, { readOnly: true }, { keep: keepStatus }, { readOnly: true, dropsUnreadable: true }])(
    'leaves all others as they are: %j',
    (props) => {
      const lines: LogLine[] = [];
      const { store } = newStore({ ...props, log: recordingLogger(lines) });
      replace(store, '3', [spec('deep', '1'), configMap('a', '2')]);
      store.observed(spec('deep', '4'));
      store.written(spec('deep', '5'));
      store.observed(configMap('b', '6'));
      replace(store, '7', [spec('deep', '5'), configMap('a', '2')]);

      expect([...store.keys()].filter((key) => key !== 'shop/deep')).toEqual(['shop/a']);
      const kept = store.get('shop/deep');
      expect(kept?.object.spec).toBeUndefined();
      if (!props.readOnly) expect(kept?.owned.get(MANAGER)).toBeDefined();
      if (props.keep) return;
      expect(lines[0]?.message).toMatch(/^ConfigMap shop\/deep is nested more than 200 levels deep, .*; /);
      expect(lines.every(({ message }) => message.includes('shop/deep'))).toBe(true);
      expect(kept && unreadableFor(kept.object)?.reason).toBe(props.dropsUnreadable ? undefined : 'TooDeep');
    },
  );

  it('is kept whole where it is not', () => {
    const { store } = newStore();
    store.observed(spec('a', '1', 150));
    expect(store.get('shop/a')?.object.spec).toEqual(deep(150));
  });

  it('is one that a projection makes such, or that contains itself', () => {
    const circle: Record<string, unknown> = {};
    circle.a = circle;
    for (const status of [deep(), circle]) {
      const { store } = newStore({ keep: (object) => ({ ...object, status }) });
      store.observed(configMap('a', '1'));
      expect(store.get('shop/a')?.object.status).toBeUndefined();
    }
  });
});

describe('Store, a record of field managers that a writer made up', () => {
  const fields = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`f:${n}`, {}]));
  const below = (depth: number, inner: object): object =>
    depth === 0 ? inner : { 'f:a': below(depth - 1, inner) };
  const key = '['.repeat(300) + ']'.repeat(300);
  const record = { 'f:metadata': { 'f:annotations': { [`f:${APPLIED_HASH_ANNOTATION}`]: {} } } };
  const annotations = { [APPLIED_HASH_ANNOTATION]: 'x u' };

  it.each<[string, readonly ManagedFieldsEntry[]]>([
    ['spells a deep value', [applied('a', { ...record, 'f:data': { [`v:${key}`]: {} } })]],
    ['spells a deep key', [applied('a', { ...record, 'f:data': { [`k:{"a":${key}}`]: {} } })]],
    ['is large', [applied('a', { ...record, 'f:data': below(180, fields(100_000)) })]],
    [
      'is in many entries',
      Array.from({ length: 1_000 }, (_, n) => applied(`a${n}`, { ...record, 'f:data': fields(100) })),
    ],
  ])('is left out where it %s, and the entry before it counts', (_, entries) => {
    const { store } = newStore();
    store.observed(
      configMap('a', '1', { annotations, managedFields: [applied(MANAGER, record), ...entries] }),
    );
    const { owned } = store.get('shop/a')!;
    expect(owned.has(MANAGER)).toBe(true);
    expect(owned.size).toBeLessThanOrEqual(50);
  });

  it('has as little kept of made up annotations and owners', () => {
    const { store } = newStore({ keep: keepStatus });
    const long = 'x'.repeat(250_000);
    const medium = 'x'.repeat(19_950);
    const theirs = {
      [`${SHARED_HASH_PREFIX}a`]: long,
      [`${SHARED_HASH_PREFIX}b`]: medium,
      [GENERATED_ANNOTATION]: long,
      [ADOPT_BY_ANNOTATION]: long,
    };
    const owners = Array.from({ length: 10_000 }, (_, n) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', name: `a${n}`, uid: String(n), controller: n === 9_999 },
    }));
    store.observed(
      configMap('a', '1', { annotations: { ...theirs, ...annotations }, ownerReferences: owners }),
    );
    const { object } = store.get('shop/a')!;
    expect(object.metadata.annotations).toEqual(annotations);
    expect(object.metadata.ownerReferences).toHaveLength(10);
    expect(controllerOf(object)?.uid).toBe('9999');
  });

  it('has no more kept than MAX_KEPT characters, however many entries are like ours, and shows all the same that it has changed', () => {
    const { store } = newStore();
    const observe = (version: string, ...more: readonly object[]): readonly string[] => {
      const managedFields = Array.from({ length: 30 }, (_, n) =>
        applied(`a${n}`, { ...record, 'f:data': Object.assign(fields(400), ...more) as object }),
      );
      store.observed(configMap('a', version, { annotations, managedFields }));
      return [...store.get('shop/a')!.owned.values()];
    };
    const kept = observe('1');
    expect(kept.join('').length).toBeLessThan(MAX_KEPT + 30 * 50);
    expect(observe('2')).toEqual(kept);
    expect(observe('3', { 'f:more': {} }).at(-1)).not.toBe(kept.at(-1));
  });

  it('is kept compressed where an object has many fields, and known again', () => {
    const { store } = newStore();
    const observe = (version: string, count: number): string => {
      const managedFields = [applied(MANAGER, { ...record, 'f:data': fields(count) })];
      store.observed(configMap('a', version, { annotations, managedFields }));
      return store.get('shop/a')!.owned.get(MANAGER)!;
    };
    const kept = observe('1', 2_000);
    expect(kept.length).toBeLessThan(JSON.stringify(fields(2_000)).length / 2);
    expect(observe('2', 2_000)).toBe(kept);
    expect(observe('3', 2_001)).not.toBe(kept);
  });

  it('is kept to name who changed an object, but for what is large', () => {
    const { store } = newStore({ keep: keepStatus });
    const others = applied('b', { 'f:data': { 'f:1': {} } });
    const long = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`f:${n}${'x'.repeat(4_000)}`, {}]),
    );
    const managedFields = [applied(MANAGER, { ...record, 'f:data': fields(2) })];
    store.observed(configMap('a', '1', { annotations, managedFields }));
    const changed = [
      applied(MANAGER, { ...record, 'f:data': fields(1) }),
      others,
      applied('evil', { 'f:data': fields(10_000) }),
      applied('worse', { 'f:data': long }),
    ];
    store.observed(configMap('a', '2', { annotations, managedFields: changed }));
    expect(store.get('shop/a')!.drifted).toEqual(changed.slice(0, 2));
  });

  it('has its leftovers gone through for some entries, however many are like ours', () => {
    let walks = 0;
    const leftover = {
      ...applied('kubectl', {}),
      get fieldsV1(): object {
        walks++;
        return { 'f:data': fields(10) };
      },
    };
    const walksFor = (count: number): number => {
      const ours = Array.from({ length: count }, (_, n) =>
        applied(`a${n}`, { ...record, 'f:data': fields(10) }),
      );
      walks = 0;
      const object = configMap('a', '1', { annotations, managedFields: [...ours, leftover] });
      expect(sharedWithLeftovers(object)?.get('a0')).toBe(true);
      return walks;
    };
    expect(walksFor(40)).toBe(walksFor(20));
  });

  it('is not taken from commands where it is left out', () => {
    const managedFields = [
      applied(MANAGER, record),
      ...Array.from({ length: 60 }, () => applied('kubectl', record)),
    ];
    const object = configMap('a', '1', { annotations, managedFields });
    expect(withoutOwners(isLegacy, object, MANAGER)).toBeUndefined();
    // Known as shared, it would be read with each reconcile.
    const { store } = newStore();
    store.observed(object);
    expect(store.get('shop/a')).not.toHaveProperty('shared');
  });
});

describe('Store', () => {
  it('never goes back, whatever comes in whatever order, unless a complete list says so', () => {
    const input = fc.record({
      how: fc.constantFrom('observed', 'written', 'replaced'),
      name: fc.constantFrom('a', 'b'),
      version: fc.integer({ min: 1, max: 120 }),
    });
    fc.assert(
      fc.property(fc.array(input), (inputs) => {
        const { store } = newStore();
        store.onChange((before, after, source) => {
          if (before && after && !source.list)
            expect(Number(after.metadata.resourceVersion)).toBeGreaterThan(
              Number(before.metadata.resourceVersion),
            );
        });
        for (const { how, name, version } of inputs) {
          const object = configMap(name, String(version));
          if (how === 'observed') store.observed(object);
          else if (how === 'written') store.written(object);
          else replace(store, String(version), [object]);
        }
      }),
    );
  });

  it('does not let a deleted object come back through the late answer to a write', () => {
    const { store } = newStore();
    store.observed(configMap('a', '1'));
    store.observedDeletion(configMap('a', '8'));
    store.written(configMap('a', '7'));
    expect(store.size).toBe(0);
  });

  it('keeps the successor when the deletion of its namesake comes late', () => {
    const { store } = newStore();
    store.observed(configMap('a', '1', { uid: 'old' }));
    store.written(configMap('a', '9', { uid: 'new' }));
    store.observedDeletion(configMap('a', '5', { uid: 'old' }));
    expect(store.get('shop/a')?.object.metadata.uid).toBe('new');
  });

  it('replaces everything at once, and tells what has gone', () => {
    const { store, changes } = newStore();
    for (const [name, version] of [
      ['gone', '1'],
      ['same', '2'],
      ['changed', '3'],
    ] as const)
      store.observed(configMap(name, version));
    changes.length = 0;
    replace(store, '10', [configMap('same', '2'), configMap('changed', '7'), configMap('new', '8')]);
    expect(changes).toEqual([
      ['gone@1', undefined],
      ['changed@3', 'changed@7'],
      [undefined, 'new@8'],
    ]);
    expect([...store.keys()].sort()).toEqual(['shop/changed', 'shop/new', 'shop/same']);
  });

  it('does not say so of what is new, nor of what was deleted here while the list was on its way', () => {
    const { store } = newStore();
    store.observed(configMap('a', '5'));
    store.observed(configMap('b', '10'));
    store.gone('shop/a');
    expect(replace(store, '12', [configMap('a', '5'), configMap('b', '10'), configMap('c', '11')])).toBe(
      false,
    );
    store.observedDeletion(configMap('a', '13'));
    expect(replace(store, '1000', [configMap('a', '5'), configMap('b', '10')])).toBe(true);
  });

  it('tells what a field manager has applied from what only has the reference', () => {
    const { store } = newStore();
    const ownerReferences = [ownedBy('x')];
    const made = { ownerReferences, managedFields: [applied(MANAGER, { 'f:data': {} })] };
    store.observed(configMap('own', '1', made));
    store.observed(configMap('planted', '2', { ownerReferences, managedFields: [applied('kubectl', {})] }));
    const updated = { ...applied(MANAGER, { 'f:data': {} }), operation: 'Update' };
    store.observed(configMap('updated', '3', { ownerReferences, managedFields: [updated] }));
    const names = (manager?: string) =>
      store.controlledBy('uid-x', manager).map(({ metadata }) => metadata.name);
    expect(names()).toEqual(['own', 'planted', 'updated']);
    expect(names(MANAGER)).toEqual(['own']);
  });

  it('finds objects by their controller, through changes of hands', () => {
    const { store } = newStore();
    const names = (owner: string): string[] => store.controlledBy(owner).map(({ metadata }) => metadata.name);
    store.observed(configMap('a', '1', { ownerReferences: [ownedBy('x')] }));
    store.observed(configMap('b', '2', { ownerReferences: [ownedBy('x')] }));
    store.observed(configMap('c', '3', { ownerReferences: [{ ...ownedBy('x'), controller: false }] }));
    store.observed(configMap('d', '4'));
    expect(names('uid-x')).toEqual(['a', 'b']);
    store.observed(configMap('a', '5', { ownerReferences: [ownedBy('y')] }));
    expect(names('uid-x')).toEqual(['b']);
    expect(names('uid-y')).toEqual(['a']);
    store.observed(configMap('b', '6'));
    store.gone('shop/a');
    expect(names('uid-x')).toEqual([]);
    expect(names('uid-y')).toEqual([]);
  });

  it('keeps the projection, with what we own worked out before the rest is dropped', () => {
    const { store } = newStore({ keep: keepStatus });
    const annotations = { 'reconstruct.kosmos.io/applied-hash': 'h' };
    const recorded = { 'f:annotations': { 'f:reconstruct.kosmos.io/applied-hash': {} } };
    const managedFields = [applied(MANAGER, { 'f:metadata': recorded, 'f:spec': { 'f:replicas': {} } })];
    store.observed(
      anObject(
        DEPLOYMENT,
        'web',
        { resourceVersion: '1', annotations, managedFields },
        { spec: { replicas: 1 } },
      ),
    );
    const entry = store.get('shop/web');
    expect(entry?.object).not.toHaveProperty('spec');
    expect(entry?.object.metadata).not.toHaveProperty('managedFields');
    const intent = { metadata: { annotations }, spec: { replicas: 1 } };
    expect(entry && stands(entry, MANAGER, intent)).toBe(true);
  });
});

describe('keepStatus', () => {
  it('keeps identity, our annotations and the status, and nothing else', () => {
    const object = anObject(
      DEPLOYMENT,
      'web',
      {
        uid: 'u',
        resourceVersion: '3',
        generation: 2,
        labels: { app: 'web' },
        annotations: {
          'reconstruct.kosmos.io/applied-hash': 'h',
          'reconstruct.kosmos.io/adopt-by': 'Widget/web',
          other: 'x',
        },
        ownerReferences: [ownedBy('web')],
        deletionTimestamp: '2026-01-01T00:00:00Z',
      },
      { spec: {}, status: { replicas: 1 } },
    );
    expect(keepStatus(object)).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        namespace: 'shop',
        name: 'web',
        uid: 'u',
        resourceVersion: '3',
        generation: 2,
        ownerReferences: [ownedBy('web')],
        deletionTimestamp: '2026-01-01T00:00:00Z',
        annotations: {
          'reconstruct.kosmos.io/applied-hash': 'h',
          'reconstruct.kosmos.io/adopt-by': 'Widget/web',
        },
      },
      status: { replicas: 1 },
    });
    expect(keepStatus(configMap('a', '1'))).not.toHaveProperty('status');
  });
});

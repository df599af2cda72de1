import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { keepStatus } from '../../src/contract/projections.js';
import { Store } from '../../src/engine/cache.js';
import type { StoreProps } from '../../src/engine/cache.js';
import { anObject, applied, configMap, DEPLOYMENT, MANAGER, ownedBy } from './support/builders.js';

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

const versionIn = (store: Store, key: string): string | undefined =>
  store.get(key)?.object.metadata.resourceVersion;

describe('Store', () => {
  it('tells of new, changed and deleted objects with the state before and after', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '1'));
    store.observed(configMap('a', '2'));
    store.observedDeletion(configMap('a', '3'));
    expect(changes).toEqual([
      [undefined, 'a@1'],
      ['a@1', 'a@2'],
      ['a@2', undefined],
    ]);
    expect(store.size).toBe(0);
  });

  it('shows the change already when it tells of it', () => {
    const { store } = newStore();
    const seen: unknown[] = [];
    store.onChange(() => seen.push(versionIn(store, 'shop/a'), store.controlledBy('uid-web').length));
    store.observed(configMap('a', '1', { ownerReferences: [ownedBy('web')] }));
    store.observedDeletion(configMap('a', '2', { ownerReferences: [ownedBy('web')] }));
    expect(seen).toEqual(['1', 1, undefined, 0]);
  });

  it('never goes back to an older version, and does not tell of what it knows', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '100'));
    store.observed(configMap('a', '99'));
    store.observed(configMap('a', '100'));
    store.written(configMap('a', '98'));
    expect(versionIn(store, 'shop/a')).toBe('100');
    expect(changes).toHaveLength(1);
  });

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

  it('shows the answer to a write at once, and passes over its echo', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '1'));
    store.written(configMap('a', '5'));
    store.observed(configMap('a', '3'));
    store.observed(configMap('a', '5'));
    expect(changes).toEqual([
      [undefined, 'a@1'],
      ['a@1', 'a@5'],
    ]);
  });

  it('shows an object that was just created', () => {
    const { store } = newStore();
    replace(store, '10', []);
    store.written(configMap('a', '11'));
    expect(versionIn(store, 'shop/a')).toBe('11');
  });

  it('does not let a deleted object come back through the late answer to a write', () => {
    const { store } = newStore();
    store.observed(configMap('a', '1'));
    store.observedDeletion(configMap('a', '8'));
    store.written(configMap('a', '7'));
    expect(store.size).toBe(0);
  });

  it('does not let an object come back that a list no longer shows', () => {
    const { store } = newStore();
    store.observed(configMap('a', '1'));
    replace(store, '20', []);
    store.written(configMap('a', '15'));
    expect(store.size).toBe(0);
  });

  it('does not let an object come back that a bookmark has passed', () => {
    const { store } = newStore();
    store.advance('20', undefined);
    store.written(configMap('a', '15'));
    expect(store.size).toBe(0);
    store.written(configMap('a', '21'));
    expect(store.size).toBe(1);
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

  it('keeps on a list what was written after it', () => {
    const { store } = newStore();
    store.written(configMap('created', '12'));
    store.written(configMap('changed', '11'));
    replace(store, '10', [configMap('changed', '9')]);
    expect(versionIn(store, 'shop/created')).toBe('12');
    expect(versionIn(store, 'shop/changed')).toBe('11');
  });

  it('says that the server went back where a list has what a watch has told the end of, whatever its version', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '5'));
    store.observedDeletion(configMap('a', '10'));
    changes.length = 0;
    expect(replace(store, '1000', [configMap('a', '5')])).toBe(true);
    expect(changes).toEqual([[undefined, 'a@5']]);
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

  it('does not say so of what was deleted here in one namespace, whatever was listed of another', () => {
    const { store } = newStore();
    for (const namespace of ['shop', 'ops']) store.observed(configMap('a', '5', { namespace }));
    store.observed(configMap('b', '10', { namespace: 'ops' }));
    store.gone('ops/a');
    replace(store, '12', [configMap('a', '5')], 'shop');
    const ops = [configMap('a', '5', { namespace: 'ops' }), configMap('b', '10', { namespace: 'ops' })];
    expect(replace(store, '12', ops, 'ops')).toBe(false);
  });

  it('believes a complete list of every object, also where it shows an older one, and says so', () => {
    const { store, changes } = newStore();
    for (const name of ['same', 'old', 'gone']) store.observed(configMap(name, '150'));
    store.observed(configMap('old', '200'));
    store.written(configMap('written', '201'));
    changes.length = 0;
    const list = [configMap('same', '150'), configMap('old', '150'), configMap('written', '140')];
    expect(replace(store, '1000', list)).toBe(true);
    expect(changes).toEqual([
      ['gone@150', undefined],
      ['old@200', 'old@150'],
      ['written@201', 'written@140'],
    ]);
    expect(replace(store, '1001', list)).toBe(false);
  });

  it('does not take an object back to what a late answer to a write from before the list says', () => {
    const { store } = newStore();
    store.observed(configMap('a', '200'));
    replace(store, '1000', [configMap('a', '150')]);
    store.written(configMap('a', '205'));
    expect(versionIn(store, 'shop/a')).toBe('150');
    store.written(configMap('a', '1001'));
    expect(versionIn(store, 'shop/a')).toBe('1001');
  });

  it('takes an object of the same version for another one where a list shows other content', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '7'));
    store.observed(configMap('b', '8'));
    changes.length = 0;
    replace(store, '10', [configMap('a', '7', { labels: { after: 'the backup' } }), configMap('b', '8')]);
    expect(changes).toEqual([['a@7', 'a@7']]);
  });

  it('drops on the next list what was written and is not there any more', () => {
    const { store } = newStore();
    store.written(configMap('a', '12'));
    replace(store, '12', []);
    expect(store.size).toBe(0);
  });

  it('replaces a namespace without touching the others', () => {
    const { store, changes } = newStore({ perNamespace: true });
    store.observed(configMap('a', '1', { namespace: 'one' }));
    store.observed(configMap('a', '2', { namespace: 'two' }));
    changes.length = 0;
    replace(store, '10', [], 'one');
    expect([...store.keys()]).toEqual(['two/a']);
    expect(changes).toEqual([['a@1', undefined]]);
  });

  it('does not take the progress of one namespace for that of another', () => {
    const { store } = newStore({ perNamespace: true });
    store.advance('50', 'one');
    store.observed(configMap('b', '60', { namespace: 'one' }));
    store.written(configMap('a', '40', { namespace: 'two' }));
    store.written(configMap('a', '40', { namespace: 'one' }));
    expect([...store.keys()].sort()).toEqual(['one/b', 'two/a']);
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

  it('removes what is said to be gone, if it is the one that was meant', () => {
    const { store, changes } = newStore();
    store.observed(configMap('a', '1', { uid: 'new' }));
    store.gone('shop/a', 'old');
    expect(store.size).toBe(1);
    store.gone('shop/a', 'new');
    store.gone('shop/a', 'new');
    expect(changes).toHaveLength(2);
  });

  it('keeps the projection, with what we own worked out before the rest is dropped', () => {
    const { store } = newStore({ keep: keepStatus });
    const managedFields = [applied(MANAGER, { 'f:spec': { 'f:replicas': {} } })];
    store.observed(
      anObject(DEPLOYMENT, 'web', { resourceVersion: '1', managedFields }, { spec: { replicas: 1 } }),
    );
    const entry = store.get('shop/web');
    expect(entry?.object).not.toHaveProperty('spec');
    expect(entry?.object.metadata).not.toHaveProperty('managedFields');
    expect(entry?.owned.get(MANAGER)).toBe(store.paths.expected({ spec: { replicas: 1 } }));
  });

  it('freezes what it keeps, at every depth', () => {
    const { store } = newStore();
    store.observed(configMap('a', '1', { annotations: { x: 'y' } }));
    const annotations = store.get('shop/a')?.object.metadata.annotations as Record<string, string>;
    expect(() => (annotations.x = 'z')).toThrow(TypeError);
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

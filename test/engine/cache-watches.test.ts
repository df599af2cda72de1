import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { StoreReader, Stores } from '../../src/engine/watch/reader.js';
import { CONFIG_MAP, DEPLOYMENT, SERVICE, configMap, ownedBy, recordingLogger } from './support/builders.js';
import { WATCHES, startedRunner } from './support/started-runner.js';
import type { Store } from '../../src/engine/watch/cache.js';
import type { LogLine } from './support/builders.js';

const watch = (props: Partial<Watch>): Watch => ({
  ...{ type: CONFIG_MAP, keep: (object) => object, mapsTo: () => ['all'] },
  ...props,
});
const ALL = watch({ readOnly: true });
const OF_OPS = watch({ namespaces: ['ops'], mapsTo: () => ['ops'] });
const ONE = watch({ namespaces: ['ops'], name: 'tcp', mapsTo: () => ['one'] });

const inOps = (name: string, version: string): AnyObject => configMap(name, version, { namespace: 'ops' });

/** Each watch has delivered all that it covers, marked with its own number. */
function readerOf(...watches: Watch[]): StoreReader {
  const stores = new Stores({ perNamespace: false, freeze: true });
  const marked = watches.map((each, index) => ({
    ...each,
    keep: (object: AnyObject) => ({ ...object, kept: index }),
  }));
  const reader = StoreReader.open(marked, stores);
  for (const [index, { namespaces, name }] of watches.entries())
    for (const object of [configMap('tcp', '1', owned), inOpsOwned('tcp'), inOpsOwned('udp')])
      if (namespaces?.includes(object.metadata.namespace ?? '') ?? true)
        if (name === undefined || name === object.metadata.name)
          reader.storeOf(marked[index]!).observed(object);
  return reader;
}

const owned = { ownerReferences: [ownedBy('web')] };
const inOpsOwned = (name: string): AnyObject => configMap(name, '1', { ...owned, namespace: 'ops' });

const marks = (objects: readonly AnyObject[]): string[] =>
  objects.map(({ metadata, kept }) => `${metadata.namespace}/${metadata.name} ${String(kept)}`).sort();

describe('A reader of several watches of one type', () => {
  const reader = readerOf(ALL, OF_OPS, ONE);

  it('shows each object once, as the most precise watch keeps it', () => {
    const of = (key: string): unknown => reader.get(CONFIG_MAP, key)?.kept;
    expect([of('shop/tcp'), of('ops/udp'), of('ops/tcp')]).toEqual([0, 1, 2]);
    expect(marks(reader.controlledBy(CONFIG_MAP, ownedBy('web').uid))).toEqual([
      'ops/tcp 2',
      'ops/udp 1',
      'shop/tcp 0',
    ]);
  });

  it('finds an object by the key that its own watch maps it to', () => {
    expect(marks(reader.mappedTo(CONFIG_MAP, 'one'))).toEqual(['ops/tcp 2']);
    expect(marks(reader.mappedTo(CONFIG_MAP, 'ops'))).toEqual(['ops/udp 1']);
    expect(marks(reader.mappedTo(CONFIG_MAP, 'all'))).toEqual(['shop/tcp 0']);
  });

  it.each([
    ['the same', {}, {}],
    ['told apart by nothing but a selector', {}, { selector: 'a=b' }],
    ['of the same namespaces', { namespaces: ['a', 'b'] }, { namespaces: ['b', 'a'] }],
    ['of the same name', { name: 'x', namespaces: ['a'] }, { name: 'x', namespaces: ['a'] }],
  ])('refuses two that are %s', (_, a, b) => {
    expect(() => readerOf(watch(a), watch(b))).toThrow('ConfigMap is watched twice by one controller');
  });
});

describe('Several watches of one type', () => {
  const WIDGETS = WATCHES[0]!;

  it('wake by the most precise alone', async () => {
    const { reader, reconciled, clock } = startedRunner(undefined, 2, [WIDGETS, ALL, ONE]);
    for (const each of [ALL, ONE]) reader.storeOf(each).observed(inOps('tcp', '5'));
    await clock.advance(1_000);
    expect(reconciled).toEqual(['one']);
    reader.storeOf(ALL).observed(inOps('udp', '6'));
    await clock.advance(1_000);
    expect(reconciled).toEqual(['one', 'all']);
  });
});

describe('Projections', () => {
  /** What is well is of no interest; of the rest, the reason is kept. */
  const keep = (object: AnyObject): AnyObject | undefined => {
    if (object.reason === 'throw') throw new TypeError('a bug of the kind');
    if (!object.reason) return undefined;
    const { namespace, name, uid, resourceVersion, labels } = object.metadata;
    const metadata = { namespace, name, uid, resourceVersion, labels } as AnyObject['metadata'];
    return { apiVersion: object.apiVersion, kind: object.kind, metadata, reason: object.reason };
  };
  const mapsTo = ({ metadata }: AnyObject): string[] =>
    (metadata.labels?.app ?? '').split(',').filter(Boolean);
  const WATCH: Watch = { type: CONFIG_MAP, readOnly: true, keep, mapsTo };

  const pod = (
    name: string,
    version: number,
    reason = '',
    more: object = {},
    app = 'shop/web',
  ): AnyObject => ({
    ...configMap(name, String(version), { labels: { app } }),
    ...more,
    ...(reason && { reason }),
  });

  interface Opened {
    readonly store: Store;
    readonly reader: StoreReader;
    readonly told: string[];
    readonly lines: LogLine[];
  }

  function opened(watch: Watch = WATCH): Opened {
    const lines: LogLine[] = [];
    const stores = new Stores({ perNamespace: false, freeze: true, log: recordingLogger(lines) });
    const reader = StoreReader.open([watch], stores);
    const store = reader.store(CONFIG_MAP);
    const told: string[] = [];
    const versionOf = (object?: AnyObject): string => object?.metadata.resourceVersion ?? '-';
    store.onChange((before, after) => told.push(`${versionOf(before)} ${versionOf(after)}`));
    return { store, reader, told, lines };
  }

  const kept = ({ store }: Opened): string[] =>
    [...store.keys()].map((key) => `${key}@${store.get(key)?.object.metadata.resourceVersion ?? ''}`);

  const list = ({ store }: Opened, version: number, ...objects: AnyObject[]): void => {
    store.replace(objects.map(store.project.bind(store)), String(version));
  };

  describe('What is only read', () => {
    it('is not kept while it is of no interest, and no listener is called', () => {
      const one = opened();
      one.store.observed(pod('a', 1));
      list(one, 5, pod('a', 1), pod('b', 2));
      expect(kept(one)).toEqual([]);
      expect(one.told).toEqual([]);
    });

    it('comes when it becomes of interest, and goes when it is of none any more', () => {
      const one = opened();
      one.store.observed(pod('a', 1));
      one.store.observed(pod('a', 2, 'Crash'));
      expect(kept(one)).toEqual(['shop/a@2']);
      one.store.observed(pod('a', 3));
      expect(kept(one)).toEqual([]);
      one.store.observed(pod('a', 4, 'Crash'));
      list(one, 9, pod('a', 6));
      expect(kept(one)).toEqual([]);
      expect(one.told).toEqual(['- 2', '2 -', '- 4', '4 -']);
    });
  });

  describe('A change of what is only read', () => {
    const started = () => startedRunner(undefined, 2, [WATCHES[0]!, WATCH]);

    it('calls for the key within 100 ms, however many there are', async () => {
      const { deliver, reconciled, clock } = started();
      for (let n = 1; n < 9; n++) await deliver(pod(`pod-${n}`, 1, 'Crash'));
      expect(reconciled).toEqual([]);
      await clock.advance(100);
      expect(reconciled).toEqual(['shop/web']);
      await deliver(pod('pod-1', 1));
      await clock.advance(1_000);
      expect(reconciled).toEqual(['shop/web', 'shop/web']);
    });
  });
});

function storeWith(keep: (object: AnyObject) => AnyObject): { store: Store; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const stores = new Stores({ perNamespace: false, freeze: true, log: recordingLogger(lines) });
  return { store: stores.open({ type: CONFIG_MAP, keep, mapsTo: () => [] }), lines };
}

const withSecrets = (object: AnyObject): AnyObject => {
  if (object.metadata.name === 'bad') throw new Error('no data');
  return object;
};

describe('A projection that throws', () => {
  it('leaves the object what is reported of it and applied by, and nothing more', () => {
    const { store } = storeWith(withSecrets);
    const meta = { ownerReferences: [ownedBy('web')], labels: { a: 'b' }, deletionTimestamp: '2026-01-01' };
    store.observed({ ...configMap('bad', '7', meta), status: { ready: true }, data: { a: 'b' } });
    const { ownerReferences, deletionTimestamp } = meta;
    expect(store.get('shop/bad')?.object).toEqual({
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: {
        ...{ namespace: 'shop', name: 'bad', uid: 'uid-bad', resourceVersion: '7' },
        ...{ ownerReferences, deletionTimestamp },
      },
      status: { ready: true },
    });
    expect(store.controlledBy('uid-web')).toHaveLength(1);
  });

  it('is reported once for each version of the object, as a bug of the kind', () => {
    const { store, lines } = storeWith(withSecrets);
    store.observed(configMap('bad', '7'));
    store.observed(configMap('bad', '7'));
    store.written(configMap('bad', '7'));
    expect(lines).toMatchObject([
      {
        level: 'error',
        fields: { err: new Error('no data'), resourceVersion: '7' },
        message:
          "ConfigMap shop/bad can't be projected, which is a bug of the kind: no data; its identity and status alone are kept",
      },
    ]);
    store.observed(configMap('bad', '8'));
    expect(lines).toHaveLength(2);
  });
});

describe('Stores', () => {
  const watch = (props: Partial<Watch> = {}): Watch => ({ type: CONFIG_MAP, mapsTo: () => [], ...props });
  const newStores = (): Stores => new Stores({ perNamespace: false, freeze: true });

  describe('Stores', () => {
    it.each([
      ['type', { type: SERVICE }],
      ['selector', { selector: 'a=b' }],
      ['projection', { keep: (object) => object }],
    ] as [string, Partial<Watch>][])('are not shared where the %s differs', (_, other) => {
      const stores = newStores();
      expect(stores.open(watch())).not.toBe(stores.open(watch(other)));
      expect(stores.all()).toHaveLength(2);
    });

    it('can do without a kind only if all who read it can', () => {
      const stores = newStores();
      const optional = (): unknown[] => stores.all().map(({ optional: can }) => can);
      stores.open(watch({ optional: true }));
      expect(optional()).toEqual([true]);
      stores.open(watch({ optional: true }));
      expect(optional()).toEqual([true]);
      stores.open(watch());
      expect(optional()).toEqual([false]);
      stores.open(watch({ optional: true }));
      expect(optional()).toEqual([false]);
    });
  });

  describe('StoreReader', () => {
    it('refuses to read what is not declared', () => {
      const reader = StoreReader.open([watch()], newStores());
      expect(() => reader.get(DEPLOYMENT, 'shop/a')).toThrow(
        "Deployment.apps is not among the controller's watches",
      );
    });
  });
});

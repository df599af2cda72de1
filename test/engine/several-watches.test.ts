import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { StoreReader, Stores } from '../../src/engine/cache.js';
import { plan } from './support/bench.js';
import { CONFIG_MAP, configMap, MANAGER, ownedBy, widget, WIDGET } from './support/builders.js';
import { startedRunner, WATCHES } from './support/started-runner.js';

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

  it('writes an object where it belongs, also one that is not there yet', () => {
    const store = (namespace: string, name: string) =>
      reader.store({ ...CONFIG_MAP, metadata: { namespace, name } });
    expect(store('ops', 'tcp').size).toBe(1);
    expect(store('ops', 'new').size).toBe(2);
    expect(store('elsewhere', 'tcp').size).toBe(3);
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

  it('don’t wake a key by its own write, which the broader one tells of as well', async () => {
    const of = (props: Partial<Watch>): Watch => ({ ...watch(props), mapsTo: () => ['one'] });
    const [all, one] = [of({ readOnly: true }), of({ namespaces: ['ops'], name: 'tcp' })];
    const { uid, resourceVersion, ...metadata } = inOps('tcp', '1').metadata;
    const { reader, reconciled, server, clock } = startedRunner(
      () =>
        plan({
          apply: [{ object: { ...inOps('tcp', '1'), metadata, data: { a: 'b' } }, fieldManager: MANAGER }],
        }),
      2,
      [of({ type: WIDGET }), all, one],
    );
    reader.store(WIDGET).observed(server.put(WIDGET, widget('web')));
    await clock.advance(1_000);
    expect(server.writes.filter((write) => write.includes('/ops/'))).toHaveLength(1);

    for (const each of [all, one]) reader.storeOf(each).observed(server.get(CONFIG_MAP, 'ops/tcp')!);
    await clock.advance(5_000);
    expect(reconciled).toEqual(['one']);

    reader.storeOf(one).observed(server.put(CONFIG_MAP, { ...server.get(CONFIG_MAP, 'ops/tcp')!, data: {} }));
    await clock.advance(5_000);
    expect(reconciled.length).toBeGreaterThan(1);
  });
});

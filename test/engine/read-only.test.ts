import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { Store } from '../../src/engine/cache.js';
import { StoreReader, Stores } from '../../src/engine/cache.js';
import { CONFIG_MAP, configMap, recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { startedRunner, WATCHES } from './support/started-runner.js';

/** What is well is of no interest; of the rest, the reason is kept. */
const keep = (object: AnyObject): AnyObject | undefined => {
  if (object.reason === 'throw') throw new TypeError('a bug of the kind');
  if (!object.reason) return undefined;
  const { namespace, name, uid, resourceVersion, labels } = object.metadata;
  const metadata = { namespace, name, uid, resourceVersion, labels } as AnyObject['metadata'];
  return { apiVersion: object.apiVersion, kind: object.kind, metadata, reason: object.reason };
};
const mapsTo = ({ metadata }: AnyObject): string[] => (metadata.labels?.app ?? '').split(',').filter(Boolean);
const WATCH: Watch = { type: CONFIG_MAP, readOnly: true, keep, mapsTo };

const pod = (name: string, version: number, reason = '', more: object = {}, app = 'shop/web'): AnyObject => ({
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
  it('is not kept while it is of no interest, and nobody is told', () => {
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

describe('What is found by the key that it maps to', () => {
  it('follows the objects: each of their keys, as they are now', () => {
    const { store, reader } = opened();
    const names = (key: string): string[] =>
      reader.mappedTo(CONFIG_MAP, key).map(({ metadata }) => metadata.name);
    store.observed(pod('a', 1, 'Crash'));
    store.observed(pod('b', 2, 'Crash'));
    store.observed(pod('c', 3, 'Crash', {}, 'shop/other,shop/web'));
    expect(names('shop/web').sort()).toEqual(['a', 'b', 'c']);
    expect(names('shop/other')).toEqual(['c']);
    store.observed(pod('c', 4, 'Crash', {}, 'shop/other'));
    store.observed(pod('a', 5));
    expect(names('shop/web')).toEqual(['b']);
    expect(names('shop/other')).toEqual(['c']);
    expect(names('shop/none')).toEqual([]);
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

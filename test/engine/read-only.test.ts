import { describe, expect, it, vi } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { StreamedList, listPages } from '../../src/engine/watch.js';
import type { Api } from '../../src/engine/api.js';
import { Applier } from '../../src/engine/apply.js';
import { Manager } from '../../src/engine/manager.js';
import type { Store } from '../../src/engine/cache.js';
import { StoreReader, Stores } from '../../src/engine/cache.js';
import { CONFIG_MAP, configMap, recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { plan } from './support/bench.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { startedRunner, WATCHES } from './support/started-runner.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

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

  it('does not go back to an older version after the answer to a read has shown that it is of no interest', () => {
    const one = opened();
    one.store.observed(pod('a', 1, 'Crash'));
    one.store.written(pod('a', 9));
    one.store.observed(pod('a', 5, 'Crash'));
    one.store.observed(pod('a', 9));
    expect(one.told).toEqual(['- 1', '1 5', '5 -']);
  });

  it('is left out of a list as it arrives', async () => {
    const { store } = opened();
    const streamed = new StreamedList(store.project.bind(store));
    for (const object of [pod('a', 1), pod('b', 2, 'Crash'), pod('c', 3, 'Crash')])
      streamed.take({ type: 'ADDED', object });
    streamed.take({ type: 'MODIFIED', object: pod('c', 4) });
    const end = configMap('', '9', { annotations: { 'k8s.io/initial-events-end': 'true' } });
    expect(streamed.take({ type: 'BOOKMARK', object: end })?.entries).toHaveLength(1);

    const page = { items: [pod('a', 1), pod('b', 2, 'Crash')], resourceVersion: '9' };
    const api = { list: () => Promise.resolve(page) } as unknown as Api;
    const scope = { type: CONFIG_MAP };
    const paged = await listPages(api, scope, store.project.bind(store), new AbortController().signal);
    expect(paged.entries).toHaveLength(1);
  });

  it('has no store in common with what is written', () => {
    const stores = new Stores({ perNamespace: false, freeze: true });
    expect(stores.open({ type: CONFIG_MAP, mapsTo })).not.toBe(
      stores.open({ type: CONFIG_MAP, mapsTo, readOnly: true }),
    );
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

  it('is found of what is written too, through an index that nobody pays for who does not ask', () => {
    const asked = vi.fn(mapsTo);
    const { reader, store } = opened({ type: CONFIG_MAP, keep: (object) => object, mapsTo: asked });
    store.observed(pod('a', 1));
    expect(asked).not.toHaveBeenCalled();
    const [first] = reader.mappedTo(CONFIG_MAP, 'shop/web');
    expect(first?.metadata.name).toBe('a');
    store.observed(pod('b', 2));
    expect(reader.mappedTo(CONFIG_MAP, 'shop/web')).toHaveLength(2);
    // The same object, so that what is worked out from it can be remembered.
    expect(reader.mappedTo(CONFIG_MAP, 'shop/web')[0]).toBe(first);
    store.observedDeletion(pod('a', 3));
    expect(reader.mappedTo(CONFIG_MAP, 'shop/web').map(({ metadata }) => metadata.name)).toEqual(['b']);
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

  it('calls nobody where what is kept is the same', async () => {
    const { deliver, reconciled, clock, reader } = started();
    await deliver(pod('a', 1, 'Crash', { restarts: 1 }));
    await clock.advance(1_000);
    reconciled.length = 0;
    await deliver(pod('a', 1, 'Crash', { restarts: 2 }));
    await deliver(pod('b', 1));
    await clock.advance(1_000);
    expect(reconciled).toEqual([]);
    expect(reader.get(CONFIG_MAP, 'shop/a')?.metadata.resourceVersion).toBe('102');
  });
});

describe('What goes of what is only read', () => {
  it('is nothing that the applier has to remember', async () => {
    const changed = vi.spyOn(Applier.prototype, 'gone');
    const server = new FakeApiServer();
    const controller = { name: 'widget', kind: 'Widget', watches: [WATCH], reconcile: () => plan({}) };
    const manager = new Manager({
      ...{ controllers: [controller], transport: server, metrics: new Metrics(), clock: new VirtualClock() },
      ...{ log: recordingLogger([]), instance: 'pod-1', random: () => 0 },
    });
    const run = new AbortController();
    const running = manager.run(run.signal);
    await settled();
    server.put(CONFIG_MAP, pod('a', 1, 'Crash'));
    await settled();
    server.remove(CONFIG_MAP, 'shop/a');
    await settled();
    run.abort();
    await running;
    expect(changed).not.toHaveBeenCalled();
    changed.mockRestore();
  });
});

import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { refresh } from '../../src/engine/refresh.js';
import type { Store } from '../../src/engine/cache.js';
import { newBench } from './support/bench.js';
import type { Bench } from './support/bench.js';
import { CONFIG_MAP, configMap, failure } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

const A = configMap('a', '10', { uid: 'uid-a' });
const B = configMap('a', '30', { uid: 'uid-b' });

/** The server says that it isn't there; meanwhile something happens. */
function benchWhere(meanwhile: (bench: Bench) => void): Bench {
  const bench = newBench(new FakeApiServer());
  bench.server.intercept = () => {
    meanwhile(bench);
    return failure(404, 'NotFound', 'configmaps "a" not found');
  };
  return bench;
}

/** The server has this; meanwhile something happens. */
function benchWith(live: AnyObject, meanwhile: (store: Store) => void = () => undefined): Bench {
  const bench = newBench(new FakeApiServer());
  bench.server.intercept = () => {
    meanwhile(bench.reader.store(CONFIG_MAP));
    return { status: 200, body: live };
  };
  return bench;
}

const version = ({ reader }: Bench): string | undefined =>
  reader.get(CONFIG_MAP, 'shop/a')?.metadata.resourceVersion;
const at = (resourceVersion: string): AnyObject => configMap('a', resourceVersion, { uid: 'uid-a' });

describe('refresh', () => {
  it('believes the answer also where it is older than what was known, as after a restored backup', async () => {
    const bench = benchWith(at('10'));
    bench.reader.store(CONFIG_MAP).observed(at('200'));
    await refresh(bench.api, A, bench.reader);
    expect(version(bench)).toBe('10');
  });

  it('believes that an object is back whose deletion was seen', async () => {
    const bench = benchWith(at('10'));
    const store = bench.reader.store(CONFIG_MAP);
    store.observed(at('10'));
    store.observedDeletion(at('200'));
    await refresh(bench.api, A, bench.reader);
    expect(version(bench)).toBe('10');
  });

  it.each([
    [
      'was changed',
      (store: Store) => {
        store.observed(at('300'));
      },
      '300',
    ],
    [
      'was written',
      (store: Store) => {
        store.written(at('300'));
      },
      '300',
    ],
    [
      'was deleted',
      (store: Store) => {
        store.observedDeletion(at('300'));
      },
      undefined,
    ],
  ])('does not go back to an answer that is old because the object %s meanwhile', async (_, act, is) => {
    const bench = benchWith(at('200'), act);
    bench.reader.store(CONFIG_MAP).observed(at('200'));
    await refresh(bench.api, A, bench.reader);
    expect(version(bench)).toBe(is);
  });

  it('does not bring back what has come and gone meanwhile', async () => {
    const bench = benchWith(at('300'), (store) => {
      store.observed(at('300'));
      store.observedDeletion(at('301'));
    });
    await refresh(bench.api, A, bench.reader);
    expect(version(bench)).toBeUndefined();
  });
});

describe('refresh, of an object that is gone', () => {
  it('lets go of the one that was known', async () => {
    const { api, reader } = benchWhere(() => undefined);
    reader.store(CONFIG_MAP).observed(A);
    expect(await refresh(api, A, reader)).toBeUndefined();
    expect(reader.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
  });

  it('keeps a successor of which the watch has told before the answer came', async () => {
    const { api, reader } = benchWhere((bench) => {
      const store = bench.reader.store(CONFIG_MAP);
      store.observedDeletion({ ...A, metadata: { ...A.metadata, resourceVersion: '20' } });
      store.observed(B);
    });
    reader.store(CONFIG_MAP).observed(A);
    await refresh(api, A, reader);
    expect(reader.get(CONFIG_MAP, 'shop/a')?.metadata.uid).toBe('uid-b');
  });

  it('keeps one that nobody knew of when it was asked for', async () => {
    const { api, reader } = benchWhere((bench) => {
      bench.reader.store(CONFIG_MAP).observed(B);
    });
    await refresh(api, B, reader);
    expect(reader.get(CONFIG_MAP, 'shop/a')?.metadata.uid).toBe('uid-b');
  });
});

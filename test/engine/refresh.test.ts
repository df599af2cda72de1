import { describe, expect, it } from 'vitest';
import { refresh } from '../../src/engine/refresh.js';
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

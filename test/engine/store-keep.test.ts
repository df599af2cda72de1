import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { Store } from '../../src/engine/cache.js';
import { Stores } from '../../src/engine/cache.js';
import { CONFIG_MAP, configMap, ownedBy, recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';

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
  it('leaves the object its identity: it is there, and whose it is, and nothing more', () => {
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
    });
    expect(store.controlledBy('uid-web')).toHaveLength(1);
  });

  it('is told once for each version of the object, as a bug of the kind', () => {
    const { store, lines } = storeWith(withSecrets);
    store.observed(configMap('bad', '7'));
    store.observed(configMap('bad', '7'));
    store.written(configMap('bad', '7'));
    expect(lines).toMatchObject([
      {
        level: 'error',
        fields: { err: new Error('no data'), resourceVersion: '7' },
        message:
          "ConfigMap shop/bad can't be projected, which is a bug of the kind; only its identity is kept",
      },
    ]);
    store.observed(configMap('bad', '8'));
    expect(lines).toHaveLength(2);
  });

  it.each([
    ['nothing', () => undefined],
    ['an object without metadata', () => ({})],
    ['another name', (object: AnyObject) => ({ ...object, metadata: { ...object.metadata, name: 'x' } })],
    ['no uid', ({ metadata: { uid, ...metadata }, ...rest }: AnyObject) => ({ ...rest, metadata })],
    [
      'no version',
      ({ metadata: { resourceVersion, ...metadata }, ...rest }: AnyObject) => ({ ...rest, metadata }),
    ],
    ['no kind', ({ kind, ...rest }: AnyObject) => rest],
  ])('is one that returns %s, too', (_, keep) => {
    const { store, lines } = storeWith(keep as (object: AnyObject) => AnyObject);
    store.observed(configMap('a', '7'));
    expect(store.get('shop/a')?.object).toEqual(configMap('a', '7'));
    expect(lines).toHaveLength(1);
  });
});

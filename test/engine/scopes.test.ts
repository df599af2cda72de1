import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import { Api } from '../../src/engine/api.js';
import { watchName } from '../../src/engine/reflector.js';
import { scopesOf } from '../../src/engine/scopes.js';
import { StoreReader, Stores } from '../../src/engine/cache.js';
import { CONFIG_MAP, configMap } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

const watch = (more: Partial<Watch> = {}): Watch => ({ type: CONFIG_MAP, mapsTo: () => [], ...more });

function scopes(perWatch: readonly Partial<Watch>[], namespaces: readonly string[] = []): string[] {
  const stores = new Stores({ perNamespace: namespaces.length > 0, freeze: true });
  for (const more of perWatch) stores.open(watch(more));
  return stores.all().flatMap((watched) => scopesOf(watched, namespaces).map(watchName));
}

describe('What is watched of a type', () => {
  it('is all of it, or what is in the namespaces that the operator watches', () => {
    expect(scopes([{}])).toEqual(['configmaps']);
    expect(scopes([{}], ['a', 'b'])).toEqual(['configmaps in a', 'configmaps in b']);
  });

  it('is what is in the namespaces that the watch names, whichever the operator watches', () => {
    expect(scopes([{ namespaces: ['ops'] }])).toEqual(['configmaps in ops']);
    expect(scopes([{ namespaces: ['ops'] }], ['a', 'b'])).toEqual(['configmaps in ops']);
  });

  it('may be one object', () => {
    expect(scopes([{ namespaces: ['ops'], name: 'tcp' }])).toEqual(['configmaps/tcp in ops']);
  });

  it('is shared by those who watch the same, and by no others', () => {
    const ops = { namespaces: ['ops'] };
    expect(scopes([ops, { namespaces: ['ops'] }, {}, { ...ops, name: 'tcp' }])).toHaveLength(3);
  });
});

it('One object is asked for by its name', async () => {
  const server = new FakeApiServer();
  server.intercept = () => ({ status: 200, body: { metadata: { resourceVersion: '1' }, items: [] } });
  const one = { type: CONFIG_MAP, namespace: 'ops', name: 'tcp' };
  await new Api(server).list(one, undefined, new AbortController().signal);
  expect(server.requests[0]).toMatchObject({
    path: '/api/v1/namespaces/ops/configmaps',
    query: { fieldSelector: 'metadata.name=tcp' },
  });
});

it('What is watched in namespaces of its own is listed for each of them', () => {
  const stores = new Stores({ perNamespace: false, freeze: true });
  const reader = StoreReader.open([watch({ namespaces: ['a', 'b'] })], stores);
  const store = reader.store(CONFIG_MAP);
  const inB = configMap('x', '5', { namespace: 'b' });
  store.replace([store.project(inB)], '5', 'b');
  store.replace([], '6', 'a');
  expect(reader.get(CONFIG_MAP, 'b/x')).toBe(store.get('b/x')?.object);
  expect(reader.get(CONFIG_MAP, 'b/x')).toBeDefined();
});

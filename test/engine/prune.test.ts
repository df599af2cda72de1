import { expect, it } from 'vitest';
import { prune } from '../../src/engine/prune.js';
import { newBench } from './support/bench.js';
import type { Bench } from './support/bench.js';
import { CONFIG_MAP, configMap, failure } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

function setup(): Bench & { seen: ReturnType<typeof configMap> } {
  const bench = newBench(new FakeApiServer());
  const seen = bench.server.put(CONFIG_MAP, configMap('a', '1'));
  bench.reader.store(CONFIG_MAP).observed(seen);
  return { ...bench, seen };
}

it('deletes what was seen, and forgets it at once', async () => {
  const { api, server, reader, seen } = setup();
  expect(await prune(api, { object: seen }, reader)).toMatchObject({ action: 'deleted', ref: { name: 'a' } });
  expect(server.get(CONFIG_MAP, 'shop/a')).toBeUndefined();
  expect(reader.store(CONFIG_MAP).size).toBe(0);
});

it('deletes nothing that has changed since, and has the plan made again', async () => {
  const { api, server, reader, seen } = setup();
  server.put(CONFIG_MAP, configMap('a', '1', { labels: { x: 'y' } }));
  expect(await prune(api, { object: seen }, reader)).toMatchObject({
    action: 'failed',
    error: { reason: 'Conflict', retry: 'now' },
  });
  expect(server.get(CONFIG_MAP, 'shop/a')).toBeDefined();
});

it('finds what is gone already unchanged, and forgets it', async () => {
  const { api, server, reader, seen } = setup();
  server.remove(CONFIG_MAP, 'shop/a');
  expect(await prune(api, { object: seen }, reader)).toMatchObject({ action: 'unchanged' });
  expect(reader.store(CONFIG_MAP).size).toBe(0);
});

it('counts as its own what a second try finds gone: the first has got through', async () => {
  const { api, server, reader, seen } = setup();
  server.intercept = () => ({ ...failure(404, 'NotFound', 'gone'), isSecondTry: true });
  expect(await prune(api, { object: seen }, reader)).toMatchObject({ action: 'deleted' });
  expect(reader.store(CONFIG_MAP).size).toBe(0);
});

it('does not forget a successor of what is gone', async () => {
  const { api, server, reader, seen } = setup();
  server.remove(CONFIG_MAP, 'shop/a');
  reader.store(CONFIG_MAP).observed(configMap('a', '900', { uid: 'new' }));
  await prune(api, { object: seen }, reader);
  expect(reader.get(CONFIG_MAP, 'shop/a')?.metadata.uid).toBe('new');
});

it('keeps what has to finish first, as on its way out', async () => {
  const { api, server, reader, seen } = setup();
  const body = configMap('a', '500', { deletionTimestamp: '2026-01-01T00:00:00Z' });
  server.intercept = () => ({ status: 200, body });
  expect(await prune(api, { object: seen }, reader)).toMatchObject({ action: 'deleted' });
  expect(reader.get(CONFIG_MAP, 'shop/a')?.metadata.deletionTimestamp).toBeDefined();
});

it('answers with a failure, whatever goes wrong', async () => {
  const { api, server, reader, seen } = setup();
  server.intercept = () => failure(403, 'Forbidden', 'no');
  expect(await prune(api, { object: seen }, reader)).toMatchObject({
    action: 'failed',
    error: { reason: 'Forbidden' },
  });
  server.intercept = () => Promise.reject(new Error('ECONNRESET'));
  expect(await prune(api, { object: seen }, reader)).toMatchObject({ error: { reason: 'Unreachable' } });
  expect(reader.store(CONFIG_MAP).size).toBe(1);
});

it('takes nothing for gone whose kind is not served', async () => {
  const { api, server, reader, seen } = setup();
  server.intercept = () => ({ status: 404, body: '404 page not found\n' });
  expect(await prune(api, { object: seen }, reader)).toMatchObject({
    action: 'failed',
    error: { reason: 'KindNotServed' },
  });
  expect(reader.get(CONFIG_MAP, 'shop/a')).toBeDefined();
});

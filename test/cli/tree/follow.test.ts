import { expect, test } from 'vitest';
import { missedNotes } from '../../../src/cli/tree/collect.js';
import { follow, WatchedSource } from '../../../src/cli/tree/follow.js';
import { Api } from '../../../src/engine/api.js';
import type { ApiError } from '../../../src/engine/api-error.js';
import { CONFIG_MAP, configMap, failure } from '../../engine/support/builders.js';
import { settled, VirtualClock } from '../../engine/support/virtual-clock.js';
import { WatchedServer } from '../support/watched-server.js';

const scope = { type: CONFIG_MAP, namespace: 'shop' };

function setup() {
  const server = new WatchedServer({ configmaps: [configMap('a', '5')] });
  const clock = new VirtualClock();
  const interrupted = new AbortController();
  let changes = 0;
  const onChange = (): void => {
    changes++;
  };
  const props = { api: new Api(server), clock, signal: interrupted.signal };
  const source = new WatchedSource({ ...props, onChange });
  return { server, clock, interrupted, props, source, changes: () => changes };
}

test('what may be listed and not watched is refused, and asked for again after a while', async () => {
  const { server, clock, source } = setup();
  server.unwatchable.add('configmaps');

  await expect(source.list(scope)).rejects.toThrow('Watch configmaps: 403 configmaps is forbidden');
  await expect(source.list(scope)).rejects.toMatchObject({ code: 403 });
  expect([server.lists, server.streams.length]).toEqual([1, 1]);

  server.unwatchable.clear();
  await clock.advance(30_001);
  expect((await source.list(scope)).map(({ metadata }) => metadata.name)).toEqual(['a']);
});

test('a right to watch that is withdrawn is noticed', async () => {
  const { server, clock, source, changes } = setup();
  await source.list(scope);
  server.unwatchable.add('configmaps');
  server.streams[0]!.end();
  await clock.advance(10_000);

  expect(changes()).toBe(1);
  await expect(source.list(scope)).rejects.toMatchObject({ code: 403 });
});

test('what fails for another reason is asked for again soon', async () => {
  const { server, clock, source } = setup();
  server.refused.set('configmaps', failure(503, 'ServiceUnavailable', 'busy'));
  await expect(source.list(scope)).rejects.toMatchObject({ code: 503 });
  server.refused.clear();
  await clock.advance(2_001);

  expect(await source.list(scope)).toHaveLength(1);
});

test('nothing is waited for beyond the signal', async () => {
  const { server, interrupted, source, props } = setup();
  const stream = server.stream.bind(server);
  server.stream = (request) => {
    server.silent = true;
    return stream(request);
  };
  const listed = expect(source.list(scope)).rejects.toThrow('aborted');
  const followed = follow({
    ...props,
    collect: () => new Promise(() => undefined),
    onDocument: () => true,
  });
  await settled();
  interrupted.abort();

  await listed;
  await followed;
});

test('a note names the right that is missing', async () => {
  const { server, source } = setup();
  server.unwatchable.add('configmaps');
  const error = await source.list(scope).catch((thrown: unknown) => thrown as ApiError);

  expect(missedNotes([{ type: CONFIG_MAP, error: error as ApiError }])).toEqual([
    'Not seen, for want of the right to watch them: configmaps',
  ]);
});

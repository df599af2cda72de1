import { beforeEach, expect, test } from 'vitest';
import { Follower } from '../../../src/cli/dev/follower.js';
import type { Change } from '../../../src/cli/dev/changes.js';
import type { StatusDocument } from '../../../src/cli/status/document.js';
import type { SeenKind } from '../../../src/cli/status/targets.js';
import { Api } from '../../../src/engine/api.js';
import { anObject, CONFIG_MAP, configMap, failure, ownedBy, WIDGET } from '../../engine/support/builders.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';
import { WatchedServer } from '../support/watched-server.js';

const kind = { name: 'widget', type: WIDGET, children: [CONFIG_MAP], formerChildren: [] };

const child = configMap('a', '5', { ownerReferences: [ownedBy('a')] });

let server: WatchedServer;
let clock: VirtualClock;
let follower: Follower;
let documents: StatusDocument[];
let changes: Change[];
let troubles: (readonly string[])[];

beforeEach(() => {
  server = new WatchedServer({
    widgets: [anObject(WIDGET, 'a', { uid: 'uid-a', resourceVersion: '1' })],
    configmaps: [child],
    events: [],
  });
  clock = new VirtualClock();
  documents = [];
  changes = [];
  troubles = [];
  follower = new Follower({
    ...{ api: new Api(server), clock },
    onDocument: (document) => void documents.push(document),
    onChanges: (all) => void changes.push(...all),
    onTrouble: (lines) => void troubles.push(lines),
  });
});

/** As far as it is known of a kind that is looked at. */
function look(props: object = kind): void {
  follower.follow([props as SeenKind]);
}

const busy = failure(429, 'TooManyRequests', 'busy');

test('a first look that fails is told, and tried again after a pause until it works', async () => {
  server.refused.set('widgets', busy);
  look();
  await clock.advance(1_999);
  expect(troubles).toEqual([['List widgets: 429 busy']]);
  await clock.advance(1);
  expect(troubles).toHaveLength(2);
  expect(documents).toEqual([]);

  server.refused.clear();
  await clock.advance(2_000);
  expect(documents.map(({ resources }) => resources.map(({ name }) => name))).toEqual([['a']]);
  expect(troubles.at(-1)).toEqual([]);
});

test('a kind that is served a moment later is seen then', async () => {
  server.refused.set('widgets', failure(404, undefined, '404 page not found'));
  look();
  await clock.advance(100);
  server.refused.clear();
  await clock.advance(2_000);

  expect(documents).toHaveLength(1);
});

test('a later look that fails is told too, until one works', async () => {
  look();
  await clock.advance(0);
  expect(troubles).toEqual([[]]);
  server.unwatchable.add('widgets');
  server.streams.find(({ request }) => request.path.endsWith('/widgets'))!.end();
  await clock.advance(10_000);
  expect(troubles.at(-1)).toEqual(['Watch widgets: 403 widgets is forbidden: cannot watch']);

  server.unwatchable.clear();
  await clock.advance(40_000);
  expect(troubles.at(-1)).toEqual([]);
});

test('nothing is asked for once it is stopped after a look that has failed', async () => {
  server.refused.set('widgets', busy);
  look();
  await clock.advance(0);
  follower.stop();
  const { lists } = server;
  await clock.advance(60_000);

  expect(server.lists).toBe(lists);
  expect(troubles).toHaveLength(1);
});

test('what was made in a version that is served, and is asked for in one that is not, is not told to be gone', async () => {
  look();
  await clock.advance(0);
  server.refused.set('configmaps', failure(404, undefined, '404 page not found'));
  look({ ...kind, children: [{ ...CONFIG_MAP, apiVersion: 'v9' }] });
  await clock.advance(0);
  expect(documents.at(-1)!.resources[0]).toMatchObject({
    ...{ children: [], notes: ['Not served by the API server: configmaps of v9'] },
  });
  server.refused.clear();
  look();
  await clock.advance(0);

  expect(documents).toHaveLength(3);
  expect(changes.map(({ text }) => text)).toEqual(['Widget shop/a: made', 'ConfigMap shop/a: made']);
});

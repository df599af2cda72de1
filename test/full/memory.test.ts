import { beforeAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, putStatus } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const { kind, config } = await loadKind('test/support/kinds/latch.config.mjs');
const user = 'operator-79';
let latches: Subject;
let controller: RunningController;

const start = async (as = user): Promise<RunningController> =>
  startController({ ...{ cluster, user: as, kinds: [kind], config }, namespaces: [latches.namespace] });

const data = async (name: string): Promise<unknown> =>
  (await cluster.find(latches.childPlace(configMaps, name)))?.data;
const says = async (name: string, opened: boolean): Promise<void> =>
  eventually(async () => {
    expect(await data(name)).toEqual({ opened: String(opened) });
  });
const status = async (name: string): Promise<Readonly<Record<string, unknown>>> =>
  (await latches.get(name)).status!;
/** Another writer changes the status. */
const write = async (name: string, fields: object): Promise<unknown> =>
  putStatus(cluster, latches.place(name), fields);

beforeAll(async () => {
  latches = await Subject.make(cluster, kind, 'latches');
  controller = await start();
});

test('what the status said is stored before anything is made of it, and outlives edits and kills', async () => {
  const requests = await requestsFromNowOn(cluster, user);
  await latches.create('web', {});
  await latches.ready('web');
  await says('web', false);
  const order = writes(await requests()).map(
    ({ objectRef }) => `${objectRef!.resource}/${objectRef!.subresource ?? ''}`,
  );
  expect(order.slice(0, 2)).toEqual(['latches/status', 'configmaps/']);

  await latches.edit('web', { open: true });
  await says('web', true);
  await latches.edit('web', { open: false });
  await latches.ready('web');
  await controller.kill();
  controller = await start();
  await controller.reconciled('web');
  await says('web', true);

  await settled(cluster, user);
  const later = await requestsFromNowOn(cluster, user);
  await latches.touch('web');
  await settled(cluster, user);
  expect(writes(await later()).map(summary)).toEqual([]);
});

test('a map of the status can be emptied', async () => {
  await latches.create('noted', { note: 'a' });
  await eventually(async () => {
    expect(await data('noted')).toEqual({ opened: 'false', note: 'a' });
  });
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await latches.edit('noted', { note: '' });
  await latches.ready('noted');
  expect((await status('noted')).notes).toEqual({});
  const refused = (await requests()).filter(({ code = 0 }) => code >= 400);
  expect(refused.map(({ code }) => code)).toEqual([422]);
});

test('fields that others write are not remembered, and those that are lost are worked out again', async () => {
  await latches.create('odd', {});
  await latches.ready('odd');
  await write('odd', { opened: true, notes: { planted: 'yes' } });
  await latches.touch('odd');
  await eventually(async () => {
    expect(await status('odd')).toMatchObject({ opened: false });
  });
  await says('odd', false);
  await latches.edit('odd', { open: true });
  await says('odd', true);
  await latches.edit('odd', {});
  await latches.ready('odd');
  await write('odd', { opened: null, since: null, expired: null });
  await latches.touch('odd', 'again');
  await says('odd', false);
  await latches.ready('odd');
});

test('a status that can not be computed loses nothing of what it said before', async () => {
  await latches.create('faulty', { open: true });
  await says('faulty', true);
  await latches.edit('faulty', { fails: true });
  await latches.condition('faulty', { type: 'Ready', status: 'False', reason: 'StatusFailed' });
  expect(await status('faulty')).toMatchObject({ opened: true });
  await latches.edit('faulty', {});
  await latches.ready('faulty');
  await says('faulty', true);
});

test('time passes without an event, and two operators at once agree', async () => {
  await using second = await start('operator-80');
  await latches.create('brief', { seconds: 3 });
  await says('brief', false);
  await eventually(async () => {
    expect(await data('brief')).toBeUndefined();
    expect(await status('brief')).toMatchObject({ expired: true });
  });
  await latches.edit('brief', { seconds: 600 });
  await says('brief', false);
  const { since } = await status('brief');
  await latches.ready('brief');
  expect((await status('brief')).since).toBe(since);
  expect(await second.stop()).toBe(0);
});

test('a status that says something else each time is held, not written for ever', async () => {
  await latches.create('swing', { swings: true });
  await latches.stalled('swing', 'NeverSettles');
  await settled(cluster, user);
  await latches.edit('swing', {});
  await latches.ready('swing');
});

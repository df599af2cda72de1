import { setInterval as every } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { bundleConfig, configMap, loadBundle, service } from './support/bundle.js';
import { Cluster, configMaps, events } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const user = 'operator-22';
const bundle = await loadBundle();
const cluster = new Cluster(openSandbox(inject('sandbox')));
let bundles: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, bundle);
  bundles = new Subject(cluster, bundle, await cluster.makeNamespace('contested'));
  controller = await startController({
    ...{ cluster, user, kinds: [bundle], config: bundleConfig, namespaces: [bundles.namespace] },
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

async function eventsOf(name: string): Promise<AnyObject[]> {
  const all = await cluster.list<AnyObject & { regarding: ObjectRef }>(events, bundles.namespace);
  return all.filter(({ regarding }) => regarding.kind === 'Bundle' && regarding.name === name);
}

async function isContested(name: string): Promise<boolean> {
  const { status } = await bundles.get(name);
  return status?.conditions?.some(({ reason }) => reason === 'FieldContested') ?? false;
}

async function dataOf(name: string): Promise<unknown> {
  return (await cluster.get(bundles.childPlace(configMaps, name))).data;
}

test('a writer that changes a field of ours again and again is named once, and met with few writes', async () => {
  await bundles.create('fought', { objects: [configMap('fought', { level: 'ours' })] });
  await bundles.condition('fought', { type: 'Ready', status: 'True' });
  const requests = await requestsFromNowOn(cluster, user);

  // Twenty times what a polite controller would do, for four seconds; longer where it is met so slowly.
  let rounds = 0;
  for await (const level of every(200, 'theirs')) {
    await cluster.merge(
      bundles.childPlace(configMaps, 'fought'),
      { data: { level: `${level}-${rounds}` } },
      'rival-controller',
    );
    if (++rounds >= 20 && ((await isContested('fought')) || rounds === 200)) break;
  }

  const contested = await bundles.condition('fought', {
    type: 'Ready',
    status: 'False',
    reason: 'FieldContested',
  });
  expect(contested.message).toContain('rival-controller');
  expect(contested.message).toContain('.data.level');
  const applies = async (): Promise<string[]> =>
    writes(await requests())
      .filter(({ objectRef }) => objectRef?.resource === 'configmaps')
      .map(summary);
  expect((await applies()).length).toBeLessThanOrEqual(6);
  await settled(cluster, user);
  await eventually(async () => {
    const told = (await eventsOf('fought')).filter(({ reason }) => reason === 'FieldContested');
    expect(told).toMatchObject([{ type: 'Warning', note: contested.message }]);
  });

  // What the custom resource says anew isn't kept waiting.
  await bundles.edit('fought', { objects: [configMap('fought', { level: 'ours', other: 'new' })] });
  await eventually(async () => {
    expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
  });
  await cluster.merge(
    bundles.childPlace(configMaps, 'fought'),
    { data: { level: 'theirs' } },
    'rival-controller',
  );
  await bundles.condition('fought', { type: 'Ready', status: 'False', reason: 'FieldContested' });

  // It has stopped, so the field is put right, and the condition clears by itself.
  await eventually(
    async () => {
      expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
    },
    // As long as the sixth correction is followed by a pause, and again as long.
    { deadlineMilliseconds: 45_000 },
  );
  await bundles.condition('fought', { type: 'Ready', status: 'True' });
  expect((await applies()).length).toBeLessThanOrEqual(8);
});

test('changes by people to many objects are put right one by one, and none has to wait', async () => {
  const names = Array.from({ length: 25 }, (_, index) => `peopled-${index}`);
  await bundles.create('peopled', { objects: names.map((name) => configMap(name, { level: 'ours' })) });
  await bundles.condition('peopled', { type: 'Ready', status: 'True' });
  const from = controller.log.length;

  for (const name of names) {
    await cluster.merge(bundles.childPlace(configMaps, name), { data: { level: 'theirs' } });
    await eventually(async () => {
      expect(await dataOf(name)).toEqual({ level: 'ours' });
    });
    // Who has to wait is told so.
    const contested = controller.log.slice(from).filter((line) => line.reason === 'FieldContested');
    expect(contested).toEqual([]);
  }

  await bundles.condition('peopled', { type: 'Ready', status: 'True' });
  expect((await eventsOf('peopled')).filter(({ type }) => type === 'Warning')).toEqual([]);
});

test('two custom resources that want the same child: the second is refused, and the child stays as it is', async () => {
  await bundles.create('first', { objects: [configMap('wanted', { by: 'first' })] });
  await bundles.condition('first', { type: 'Ready', status: 'True' });
  await bundles.create('second', { objects: [configMap('wanted', { by: 'second' })] });

  const stalled = await bundles.condition('second', {
    type: 'Stalled',
    status: 'True',
    reason: 'OwnershipConflict',
  });
  expect(stalled.message).toContain('controlled by Bundle first');
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  const touched = { metadata: { annotations: { 'example.com/touched': 'yes' } } };
  const from = controller.log.length;
  await cluster.merge(bundles.place('first'), touched);
  await cluster.merge(bundles.place('second'), touched);
  await controller.logged((line) => line.msg === 'Reconciled' && line.name === 'second', from);
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
  expect(await dataOf('wanted')).toEqual({ by: 'first' });

  await bundles.edit('first', { objects: [] });
  await bundles.condition('second', { type: 'Ready', status: 'True' });
  expect(await dataOf('wanted')).toEqual({ by: 'second' });
});

test('while one apply of several fails, nothing is pruned, the others are applied, and the status tells which', async () => {
  const [a, b] = [configMap('part-a', { a: '1' }), configMap('part-b', { b: '1' })];
  await bundles.create('parts', { objects: [a, b] });
  await bundles.condition('parts', { type: 'Ready', status: 'True' });

  const refused = service('part-c', [{ port: 80, nodePort: 1 }]);
  await bundles.edit('parts', { objects: [a, refused, configMap('part-d', { d: '1' })] });

  const stalled = await bundles.condition('parts', { type: 'Stalled', status: 'True', reason: 'Invalid' });
  expect(stalled.message).toContain('Service');
  expect(stalled.message).toContain('part-c');
  expect(await dataOf('part-b')).toEqual({ b: '1' });
  expect(await dataOf('part-d')).toEqual({ d: '1' });

  await bundles.edit('parts', { objects: [a, configMap('part-d', { d: '1' })] });
  await bundles.condition('parts', { type: 'Ready', status: 'True' });
  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'part-b'))).toBeUndefined();
  });
});

import { beforeAll, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { deployment, loadBundle } from '../support/bundle.js';
import { deployments, eventually } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled } from '../support/requests.js';
import { entriesOf, Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const [user, observing] = ['operator-96', 'operator-97'];
const statefulSets = resourceType({ apiVersion: 'apps/v1', kind: 'StatefulSet', namespaced: true });
const { kind: bundle, config } = await loadBundle();
const cluster = openCluster();
let bundles: Subject;
let apps: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [bundle, appService], config },
    namespaces: [bundles.namespace, apps.namespace],
  });

beforeAll(async () => {
  [bundles, apps] = await Promise.all([
    Subject.make(cluster, bundle, 'one-of'),
    Subject.make(cluster, appService, 'one-of-apps'),
  ]);
  controller = await start();
});

const RECREATE = { strategy: { type: 'Recreate' } };
const ON_DELETE = { updateStrategy: { type: 'OnDelete' } };

/** A workload without pods. */
function workload(kind: 'Deployment' | 'StatefulSet', fields: object = {}): AnyObject {
  const { spec, ...object } = deployment('web', [{ name: 'web', image: 'example.com/web:1' }]) as AnyObject;
  return { ...object, kind, spec: { ...(spec as object), ...fields } };
}

const strategyOf = async (subject: Subject, name: string): Promise<unknown> =>
  ((await cluster.get(subject.childPlace(deployments, name))).spec as { strategy?: unknown }).strategy;

test.each([
  ['Deployment', {}, RECREATE, deployments],
  ['Deployment', { strategy: { type: 'RollingUpdate' } }, RECREATE, deployments],
  ['StatefulSet', {}, ON_DELETE, statefulSets],
] as const)('a one-of of a child is switched: %s, from %j to %j', async (kind, from, to, type) => {
  const place = bundles.childPlace(type, 'web');
  await bundles.create('web', { objects: [workload(kind, from)] });
  await bundles.ready('web');
  await settled(cluster, user, { namespace: bundles.namespace });
  const before = await cluster.get(place);
  const requests = await requestsFromNowOn(cluster, user, bundles.namespace);

  await bundles.edit('web', { objects: [workload(kind, to)] });
  await bundles.ready('web');

  await bundles.asRendered('web');
  const after = await cluster.get(place);
  expect(after.metadata.uid).toBe(before.metadata.uid);
  expect(after.spec).toMatchObject(to);
  expect(JSON.stringify(after.spec)).not.toContain('rollingUpdate');
  await settled(cluster, user, { namespace: bundles.namespace });
  const sent = (await requests()).filter(({ objectRef }) => objectRef?.resource === type.plural);
  expect(sent.map(({ verb, code }) => `${verb} ${code}`)).toEqual([
    ...['patch 422', 'get 200', 'patch 200', 'patch 200'],
  ]);

  await bundles.edit('web', { objects: [workload(kind, from)] });
  await eventually(async () => {
    expect((await cluster.get(place)).spec).toMatchObject({ ...(before.spec as object) });
  });
  await bundles.delete('web');
  await eventually(async () => {
    expect(await cluster.find(place)).toBeUndefined();
  });
});

test('a switch that another writer undoes is drift, and corrected with the values that came with it', async () => {
  await bundles.create('undone', { objects: [workload('Deployment', RECREATE)] });
  await bundles.ready('undone');
  await settled(cluster, user, { namespace: bundles.namespace });

  const place = bundles.childPlace(deployments, 'web');
  const undone = await cluster.merge(place, { spec: { strategy: { type: null } } }, 'rival');
  expect(undone.spec).toMatchObject({ strategy: { type: 'RollingUpdate', rollingUpdate: {} } });
  await eventually(async () => {
    expect(await strategyOf(bundles, 'web')).toEqual({ type: 'Recreate' });
  });
  await bundles.ready('undone');
  await bundles.delete('undone');
  await eventually(async () => {
    expect(await cluster.find(place)).toBeUndefined();
  });
});

test('an AppService is switched to Recreate, and back to a rolling update', async () => {
  const spec = { size: 0, image: 'example.com/web:1' };
  await apps.create('web', spec);
  await apps.ready('web');
  const rolling = await strategyOf(apps, 'web');

  for (const strategy of [{ type: 'RollingUpdate' }, { rollingUpdate: { maxSurge: 1 } }, undefined]) {
    await apps.edit('web', { ...spec, ...RECREATE });
    await apps.ready('web');
    await apps.asRendered('web');
    expect(await strategyOf(apps, 'web')).toEqual({ type: 'Recreate' });
    await apps.edit('web', { ...spec, ...(strategy && { strategy }) });
    await apps.ready('web');
    await apps.asRendered('web');
    expect(await strategyOf(apps, 'web')).toMatchObject({ type: 'RollingUpdate', ...strategy });
  }
  expect(await strategyOf(apps, 'web')).toEqual(rolling);
  const managers = entriesOf(await cluster.get(apps.childPlace(deployments, 'web')));
  expect(
    managers.filter(({ subresource }) => subresource === undefined).map(({ manager }) => manager),
  ).toEqual(['appservice-controller']);
});

test('values of another field manager stay, and the switch waits until they are released; those of a command go', async () => {
  await bundles.create('held', { objects: [workload('Deployment')] });
  await bundles.ready('held');
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  const { apiVersion, kind } = deployments;
  const metadata = { name: 'web', namespace: bundles.namespace };
  const tune = (spec?: object, manager = 'tuner'): Promise<AnyObject> =>
    cluster.apply(deployments, { apiVersion, kind, metadata, ...(spec && { spec }) }, manager);
  await tune({ strategy: { rollingUpdate } });

  await bundles.edit('held', { objects: [workload('Deployment', RECREATE)] });
  const { message } = await bundles.stalled('held', 'Invalid');
  expect(message).toContain('spec.strategy.rollingUpdate');
  expect(await strategyOf(bundles, 'web')).toEqual({ type: 'RollingUpdate', rollingUpdate });

  await tune();
  await bundles.ready('held');
  expect(await strategyOf(bundles, 'web')).toEqual({ type: 'Recreate' });

  await bundles.edit('held', { objects: [workload('Deployment')] });
  await bundles.ready('held');
  await tune({ strategy: { rollingUpdate } }, 'kubectl-edit');
  await bundles.edit('held', { objects: [workload('Deployment', RECREATE)] });
  await bundles.ready('held');
  expect(await strategyOf(bundles, 'web')).toEqual({ type: 'Recreate' });
  await bundles.delete('held');
});

test('diff and run --observe-only show a switch as what it changes', async () => {
  const cr = (fields: object) => ({
    ...{ apiVersion: 'test.example.com/v1', kind: 'Bundle' },
    metadata: { name: 'shown', namespace: bundles.namespace },
    spec: { objects: [{ ...workload('Deployment', fields), metadata: { name: 'shown' } }] },
  });
  await bundles.create('shown', cr({}).spec);
  await bundles.ready('shown');

  const options = ['-n', bundles.namespace, '--config', config];
  const differ = new Reconstruct('diff', cluster.sandbox.adminKubeconfig, options);
  const { objects } = await differ.diff([cr(RECREATE)]);
  expect(objects.find(({ kind }) => kind === 'Deployment')).toMatchObject({
    action: 'changed',
    fields: [
      { path: '.spec.strategy.type', before: 'RollingUpdate', after: 'Recreate' },
      { path: '.spec.strategy.rollingUpdate', before: { maxSurge: '25%', maxUnavailable: '25%' } },
    ],
  });

  await controller.stop();
  const common = { cluster, user: observing, kinds: [bundle], config, namespaces: [bundles.namespace] };
  const observer = await startController({ ...common, args: ['--observe-only'] });
  await bundles.edit('shown', cr(RECREATE).spec);
  await observer.logged(
    ({ action, child, name }) => action === 'changed' && child === 'Deployment' && name === 'shown',
  );
  expect(await strategyOf(bundles, 'shown')).toMatchObject({ type: 'RollingUpdate' });
  await observer.stop();
});

import { expect, test } from 'vitest';
import type { AnyObject, CustomResource, OwnerReference } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { configMap, loadBundle, loadKind } from '../support/bundle.js';
import { configMaps, deployments, eventually, putStatus, secrets, services } from '../support/cluster.js';
import type { ConfiguredKind } from '../support/bundle.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

interface Operated {
  readonly subject: Subject;
  readonly start: (...args: readonly string[]) => Promise<RunningController>;
}

/** The custom resources of a kind, in a namespace of their own, and a start of its operator. */
async function operated({ kind, config }: ConfiguredKind, user: string): Promise<Operated> {
  const subject = await Subject.make(cluster, kind, 'owned');
  const given = { cluster, user, kinds: [kind], ...(config && { config }) };
  return {
    subject,
    start: (...args) => startController({ ...given, namespaces: [subject.namespace], args }),
  };
}

function ownerOf({ apiVersion, kind, metadata }: CustomResource): OwnerReference {
  const { name, uid = '' } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false };
}

/** Creates an object as another writer, with the reference of an owner that it may give to whatever it may create. */
async function plant(
  { namespace, cluster: server }: Subject,
  type: Parameters<Subject['childPlace']>[0],
  name: string,
  owner: CustomResource,
  content: object,
): Promise<AnyObject> {
  const { apiVersion, kind } = type;
  const metadata = { name, namespace, ownerReferences: [ownerOf(owner)], finalizers: ['example.com/stays'] };
  return server.create(type, { apiVersion, kind, metadata, ...content });
}

test('what has the reference of a custom resource, and was not applied for it, is not deleted; what was is, whatever its annotations', async () => {
  const { subject: bundles, start } = await operated(await loadBundle(), 'operator-88');
  await start();
  const secret = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData: { a: 'b' },
  });
  const objects = [configMap('box', { a: '1' }), configMap('dropped', {}), secret('dropped')];
  await bundles.create('box', { objects });
  await bundles.ready('box');
  const planted = await plant(bundles, configMaps, 'goes-with-it', await bundles.get('box'), {
    data: { of: 'others' },
  });
  await cluster.merge(bundles.childPlace(secrets, 'dropped'), {
    metadata: { annotations: { 'reconstruct.kosmos.io/generated': '' } },
  });

  await bundles.edit('box', { objects: objects.slice(0, 1) });
  await bundles.ready('box');

  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'dropped'))).toBeUndefined();
    expect(await cluster.find(bundles.childPlace(secrets, 'dropped'))).toBeUndefined();
  });
  await settled(cluster, 'operator-88', { namespace: bundles.namespace });
  const { metadata, data } = await cluster.get(bundles.childPlace(configMaps, 'goes-with-it'));
  expect([metadata.uid, metadata.deletionTimestamp, data]).toEqual([
    planted.metadata.uid,
    undefined,
    { of: 'others' },
  ]);
});

test.for([
  { finalizer: 'foregroundDeletion', user: 'operator-94' },
  { finalizer: 'orphan', user: 'operator-95' },
])('a child with the finalizer $finalizer is pruned', async ({ finalizer, user }) => {
  const { subject: bundles, start } = await operated(await loadBundle(), user);
  await start();
  await bundles.create('held', { objects: [configMap('held', { a: '1' }), configMap('kept', {})] });
  await bundles.ready('held');
  await cluster.merge(bundles.childPlace(configMaps, 'held'), { metadata: { finalizers: [finalizer] } });

  await bundles.edit('held', { objects: [configMap('kept', {})] });

  await bundles.ready('held');
  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'held'))).toBeUndefined();
  });
});

test('a planted Deployment that is available says nothing of an AppService whose own has no pod', async () => {
  const { subject: apps, start } = await operated({ kind: appService }, 'operator-89');
  const { namespace } = apps;
  await cluster.sandbox.kubectl(['-n', namespace, 'create', 'quota', 'no-pods', '--hard=pods=0']);
  const controller = await start();
  await apps.create('web', { size: 1, image: 'example.com/web:1' });
  await apps.condition('web', { type: 'Reconciling', status: 'True' });
  const own = await eventually(() => cluster.get(apps.childPlace(deployments, 'web')));
  await plant(apps, deployments, 'a-planted', await apps.get('web'), {
    spec: { ...(own.spec as object), replicas: 0 },
  });
  await cluster.delete(apps.childPlace(deployments, 'a-planted'));
  const conditions = [{ type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable' }];
  await putStatus(cluster, apps.childPlace(deployments, 'a-planted'), {
    ...{ replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, conditions },
  });
  // In a list, it comes first.
  await controller.kill();
  await start();
  await apps.touch('web');
  await settled(cluster, 'operator-89', { namespace });

  const { status } = await apps.get('web');
  expect(status).not.toHaveProperty('readyReplicas', 1);
  expect(status?.conditions).not.toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
});

test('a construct observes what it renders, and nothing that was planted, also after a start', async () => {
  const kind = await loadKind('examples/public-address/reconstruct.config.mjs');
  const { subject: addresses, start } = await operated(kind, 'operator-90');
  const said = async (): Promise<unknown> =>
    (await cluster.get(addresses.childPlace(configMaps, 'web'))).data;
  let controller = await start();
  await addresses.create('web', { app: 'web' });
  await addresses.ready('web');
  await plant(addresses, services, 'a-planted', await addresses.get('web'), {
    spec: { ports: [{ port: 80 }] },
  });
  const balancer = (ip: string): object => ({ loadBalancer: { ingress: [{ ip }] } });
  await cluster.merge(addresses.childPlace(services, 'a-planted'), { spec: { type: 'LoadBalancer' } });
  await putStatus(cluster, addresses.childPlace(services, 'a-planted'), balancer('203.0.113.9'));
  for (const value of ['before a start', 'after a start']) {
    await addresses.touch('web', value);
    await settled(cluster, 'operator-90', { namespace: addresses.namespace });
    expect(await said()).toEqual({ address: 'pending' });
    await controller.kill();
    controller = await start();
  }
  await putStatus(cluster, addresses.childPlace(services, 'web'), balancer('192.0.2.1'));
  await eventually(async () => {
    expect(await said()).toEqual({ address: '192.0.2.1' });
  });
});

test('an edit back to what an operator applied before another one is carried out, where drift is left', async () => {
  const { kind, config } = await loadBundle();
  const { subject: bundles, start } = await operated({ kind, config }, 'operator-91');
  const other = { cluster, user: 'operator-92', kinds: [kind], config, namespaces: [bundles.namespace] };
  await start('--drift', 'warn', '--selector', 'lane=a');
  await startController({ ...other, args: ['--drift', 'warn', '--selector', 'lane=b'] });
  const lane = (value: string): Promise<unknown> =>
    cluster.merge(bundles.place('moved'), { metadata: { labels: { lane: value } } });
  await bundles.create('moved', { objects: [configMap('moved', { color: 'red' })] });
  for (const [to, color] of [
    ['a', 'red'],
    ['b', 'blue'],
    ['a', 'red'],
  ] as const) {
    await lane(to);
    await bundles.edit('moved', { objects: [configMap('moved', { color })] });
    await bundles.ready('moved');
    expect((await cluster.get(bundles.childPlace(configMaps, 'moved'))).data).toEqual({ color });
  }
  const { status } = await bundles.get('moved');
  expect(status?.conditions?.find(({ type }) => type === 'Drifted')).toBeUndefined();
});

test('field managers that are forged on one object cost no write on the others, after a start either', async () => {
  const { subject: bundles, start } = await operated(await loadBundle(), 'operator-93');
  const controller = await start();
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }];
  const names = ['web-a', 'web-b', 'web-c', 'web-d'];
  const service = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { ports },
  });
  for (const name of names) await bundles.create(name, { objects: [service(name)] });
  for (const name of names) await bundles.ready(name);
  await controller.kill();
  const { apiVersion, kind } = services;
  const key = 'k:{"name":"http"}';
  const fieldsV1 = {
    'f:metadata': { 'f:annotations': { 'f:reconstruct.kosmos.io/applied-hash': {} } },
    'f:spec': { 'f:ports': { '.': {}, [key]: { '.': {}, 'f:name': {} } }, 'f:selector': { 'f:x': {} } },
  };
  for (const operation of ['Apply', 'Update']) {
    const name = `a-forged-${operation.toLowerCase()}`;
    const managedFields = [
      {
        manager: 'bundle-controller',
        operation,
        apiVersion,
        fieldsType: 'FieldsV1',
        fieldsV1,
        time: '2026-01-01T00:00:00Z',
      },
    ];
    await cluster.create(services, {
      ...{ apiVersion, kind, spec: { ports } },
      metadata: { name, namespace: bundles.namespace, managedFields } as AnyObject['metadata'],
    });
  }

  const requests = await requestsFromNowOn(cluster, 'operator-93', bundles.namespace);
  await start();
  await settled(cluster, 'operator-93', { namespace: bundles.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
});

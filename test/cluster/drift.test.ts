import type { V1Deployment, V1Service } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/kinds/app-service/spec.js';
import { bundleConfig, deployment, loadBundle, secrets, service } from './support/bundle.js';
import { Cluster, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const user = 'operator-20';
const spec = { size: 0, image: 'example.com/web:1', ports: [{ name: 'http', port: 80 }] };
const bundle = await loadBundle();
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let bundles: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [appService, bundle], config: bundleConfig, namespaces: [apps.namespace] },
  });

beforeAll(async () => {
  await Promise.all([installCrd(cluster, appService), installCrd(cluster, bundle)]);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('drift'));
  bundles = new Subject(cluster, bundle, apps.namespace);
  controller = await start();
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

const kubectl = (...args: readonly string[]) =>
  cluster.sandbox.kubectl(['-n', apps.namespace, ...args]).then(({ stdout }) => stdout);

/** The line that tells how a child of this type was put right. */
const corrected = (child: string, from: number): Promise<unknown> =>
  controller
    .logged((line) => line.action === 'corrected' && line.child === child, from)
    .then(({ managers, fields }) => ({ managers, fields }));

test('what kubectl changes of ours is put right, and it is told who it was and what', async () => {
  await apps.create('edited', spec);
  await apps.ready('edited');
  const drifts: unknown[] = [];
  for (const [child, ...args] of [
    ['Deployment', 'scale', 'deployment/edited', '--replicas=3'],
    ['Deployment', 'set', 'image', 'deployment/edited', 'edited=example.com/other'],
    ['Deployment', 'label', 'deployment/edited', 'app=other', '--overwrite'],
    ['Service', 'patch', 'service/edited', '-p', '{"spec":{"selector":{"a":"b"}}}'],
    [
      'Service',
      'patch',
      'service/edited',
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/metadata/labels"}]',
    ],
  ] as const) {
    const from = controller.log.length;
    await kubectl(...args);
    drifts.push(await corrected(child, from));
    await apps.asRendered('edited');
  }

  expect(drifts).toEqual([
    { managers: ['kubectl'], fields: ['.spec.replicas'] },
    { managers: ['kubectl-set'], fields: ['.spec.template.spec.containers[name="edited"].image'] },
    { managers: ['kubectl-label'], fields: ['.metadata.labels.app'] },
    { managers: ['kubectl-patch'], fields: ['.spec.selector'] },
    { managers: [], fields: ['.metadata.labels'] },
  ]);
  await apps.ready('edited');
});

test('what kubectl adds stays, and costs no write', async () => {
  await apps.create('extended', spec);
  await apps.ready('extended');
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);

  await kubectl('label', 'deployment/extended', 'team=shop');
  await kubectl('annotate', 'service/extended', 'example.com/note=kept');
  await kubectl('set', 'env', 'deployment/extended', 'ADDED=1');
  const sidecar = { name: 'sidecar', image: 'example.com/sidecar' };
  const patch = { spec: { template: { spec: { containers: [sidecar] } } } };
  await kubectl('patch', 'deployment/extended', '-p', JSON.stringify(patch));
  await settled(cluster, user);

  const written = writes(await requests()).filter(({ objectRef }) => objectRef?.subresource !== 'status');
  expect(written.map(summary)).toEqual([]);
  await apps.edit('extended', { ...spec, image: 'example.com/web:2' });
  await apps.asRendered('extended');
  const live = await cluster.get<Wire<V1Deployment>>(apps.childPlace(deployments, 'extended'));
  const containers = live.spec!.template.spec!.containers;
  const [own, added] = ['extended', 'sidecar'].map((name) => containers.find((item) => item.name === name));
  expect(own).toMatchObject({ image: 'example.com/web:2', env: [{ name: 'ADDED', value: '1' }] });
  expect(added).toMatchObject(sidecar);
  expect(live.metadata!.labels).toHaveProperty('team', 'shop');
  const { metadata } = await cluster.get<Wire<V1Service>>(apps.childPlace(services, 'extended'));
  expect(metadata!.annotations).toHaveProperty('example.com/note', 'kept');
});

test('values that the API server writes in another way cost one apply more at most, also after a restart', async () => {
  const container = {
    ...{ name: 'odd', image: 'example.com/odd' },
    resources: { limits: { cpu: '1000m', memory: '1024Mi' } },
    env: [{ name: 'EMPTY', value: '' }],
    ports: [{ containerPort: 80 }],
  };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'odd' }, stringData: { key: 'text' } };
  const objects = [deployment('odd', [container]), service('odd', [{ port: 80 }]), secret];
  const applies = async (from: () => Promise<Parameters<typeof writes>[0]>): Promise<string[]> =>
    writes(await from())
      .filter(({ objectRef }) => objectRef?.name === 'odd' && objectRef.subresource === undefined)
      .map(({ objectRef }) => objectRef!.resource!);
  const first = await requestsFromNowOn(cluster, user);
  await bundles.create('odd', { objects });
  await bundles.condition('odd', { type: 'Ready', status: 'True' });
  await cluster.merge(bundles.place('odd'), { metadata: { annotations: { 'example.com/touched': 'yes' } } });
  await settled(cluster, user);

  const before = await applies(first);
  for (const type of ['deployments', 'services', 'secrets'])
    expect(before.filter((resource) => resource === type).length, type).toBeLessThanOrEqual(2);
  const live = await cluster.get(bundles.childPlace(secrets, 'odd'));
  expect(live.data).toEqual({ key: Buffer.from('text').toString('base64') });

  expect(await controller.stop()).toBe(0);
  const second = await requestsFromNowOn(cluster, user);
  controller = await start();
  await controller.logged((line) => line.msg === 'Reconciled' && line.name === 'odd');
  await cluster.merge(bundles.place('odd'), {
    metadata: { annotations: { 'example.com/touched': 'again' } },
  });
  await settled(cluster, user);

  const after = await applies(second);
  for (const type of ['deployments', 'services', 'secrets'])
    expect(after.filter((resource) => resource === type).length, type).toBeLessThanOrEqual(1);
  // What was rendered is what is there, so nothing that is dropped stays.
  await bundles.edit('odd', { objects: [{ ...secret, stringData: { other: 'text' } }] });
  await eventually(async () => {
    const { data } = await cluster.get(bundles.childPlace(secrets, 'odd'));
    expect(data).toEqual({ other: Buffer.from('text').toString('base64') });
  });
});

test('a Job whose template changes is made anew, since its kind allows it', async () => {
  const job = (image: string): object => ({
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'once' } },
    spec: {
      suspend: true,
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image }] } },
    },
  });
  const place = bundles.childPlace(
    bundle.children.find(({ kind }) => kind === 'Job')!,
    'once',
  );
  await bundles.create('once', { objects: [job('example.com/a:1')] });
  const before = await eventually(() => cluster.get(place));

  const from = controller.log.length;
  await bundles.edit('once', { objects: [job('example.com/a:2')] });

  const after = await eventually(async () => {
    const live = await cluster.get(place);
    expect(live.metadata.uid).not.toBe(before.metadata.uid);
    return live;
  });
  expect(JSON.stringify(after.spec)).toContain('example.com/a:2');
  await controller.logged((line) => line.action === 'recreated' || line.action === 'created', from);
});

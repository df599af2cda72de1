import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { bundleConfig, deployment, loadBundle, secrets, service } from './support/bundle.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Stand } from './support/stream-stand.js';
import { Subject } from './support/subject.js';

const user = 'operator-21';
const bundle = await loadBundle();
const cluster = new Cluster(openSandbox(inject('sandbox')));
let bundles: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [bundle], config: bundleConfig, namespaces: [bundles.namespace] },
  });

beforeAll(async () => {
  await installCrd(cluster, bundle);
  bundles = new Subject(cluster, bundle, await cluster.makeNamespace('restarts'));
  controller = await start();
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

test('values that the API server writes in another way cost one apply more at most, also after a restart', async () => {
  const container = {
    ...{ name: 'odd', image: 'example.com/odd' },
    resources: { limits: { cpu: '1000m', memory: '1024Mi' } },
    ...{ env: [{ name: 'EMPTY', value: '' }], envFrom: [], args: [], securityContext: {} },
    ports: [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }],
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

test('a StreamIngress has no finalizer: deleted while no operator runs, its port is closed by the next start', async () => {
  await using stand = await Stand.make({
    ...{ cluster, user: 'operator-33', namespaces: ['shop'], targets: { default: {} } },
  });
  const [shop, proxy] = [stand.namespace('shop'), stand.proxy('default')];
  await proxy.makeService();
  await stand.makeUpstream(shop);
  await stand.start();
  const stream = await proxy.ask(shop, 'orphan', { listen: 9700 });
  await stream.isReady();
  expect((await cluster.get(stream.place)).metadata).not.toHaveProperty('finalizers');
  await stand.controller.kill();
  await cluster.delete(proxy.tcp);
  await stream.delete();
  expect(await cluster.find(stream.place)).toBeUndefined();
  const ours = 'si-9700-tcp 9700/TCP -> 9700';
  expect(await proxy.ports()).toContain(ours);

  await stand.start();

  await eventually(async () => {
    expect(JSON.stringify(await cluster.get(proxy.service))).not.toContain('streamingress-controller');
  });
  expect(await proxy.ports()).not.toContain(ours);
  expect(await proxy.entries()).toBeUndefined();
});

import { beforeAll, expect, test } from 'vitest';
import { deployment, loadBundle, service } from '../support/bundle.js';
import { eventually, secrets } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, writes } from '../support/requests.js';
import { makeUpstream, ours, Stand } from '../support/streams.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-21';
const { kind: bundle, config } = await loadBundle();
const cluster = openCluster();
let bundles: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [bundle], config, namespaces: [bundles.namespace] },
  });

beforeAll(async () => {
  bundles = await Subject.make(cluster, bundle, 'restarts');
  controller = await start();
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
  await bundles.ready('odd');
  await bundles.touch('odd');
  await settled(cluster, user);

  const before = await applies(first);
  for (const type of ['deployments', 'services', 'secrets'])
    expect(before.filter((resource) => resource === type).length, type).toBeLessThanOrEqual(2);
  const live = await cluster.get(bundles.childPlace(secrets, 'odd'));
  expect(live.data).toEqual({ key: Buffer.from('text').toString('base64') });

  expect(await controller.stop()).toBe(0);
  const second = await requestsFromNowOn(cluster, user);
  controller = await start();
  await controller.reconciled('odd');
  await bundles.touch('odd', 'again');
  await settled(cluster, user);

  const after = await applies(second);
  for (const type of ['deployments', 'services', 'secrets'])
    expect(after.filter((resource) => resource === type).length, type).toBeLessThanOrEqual(1);
  // What is dropped goes.
  await bundles.edit('odd', { objects: [{ ...secret, stringData: { other: 'text' } }] });
  await eventually(async () => {
    const { data } = await cluster.get(bundles.childPlace(secrets, 'odd'));
    expect(data).toEqual({ other: Buffer.from('text').toString('base64') });
  });
});

test('a StreamIngress has no finalizer: deleted while no operator runs, its port is closed by the next start', async () => {
  await using stand = await Stand.make(cluster, 'operator-33', { default: {} });
  const { namespace } = stand;
  const proxy = stand.proxy('default');
  await proxy.makeService();
  await makeUpstream(cluster, namespace);
  await stand.start();
  const stream = await proxy.ask(namespace, 'orphan', { listen: 9700 });
  await stream.isReady();
  expect((await cluster.get(stream.place)).metadata).not.toHaveProperty('finalizers');
  await stand.controller.kill();
  await cluster.delete(proxy.tcp);
  await stream.delete();
  expect(await cluster.find(stream.place)).toBeUndefined();
  expect(await proxy.ports()).toContain(ours(9700));

  await stand.start();

  await eventually(async () => {
    expect(JSON.stringify(await cluster.get(proxy.service))).not.toContain('streamingress-controller');
  });
  expect(await proxy.ports()).not.toContain(ours(9700));
  expect(await proxy.entries()).toBeUndefined();
});

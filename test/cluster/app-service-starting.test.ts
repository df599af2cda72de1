import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { historyOf } from './support/history.js';
import { preparing, running, secondsAgo } from './support/kubelet.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';
import type { LiveResource } from './support/subject.js';

const user = 'operator-29';
/** A pod of this image is left to the test once it is scheduled. */
const image = 'sandbox.invalid/never-ready';
const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const claims = resourceType({ apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('starting'));
  controller = await startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace] });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** The one pod of an AppService, once it is on a node. */
async function scheduledPod(name: string): Promise<string> {
  return eventually(async () => {
    const found = await cluster.list<AnyObject & { spec: { nodeName?: string } }>(
      pods,
      apps.namespace,
      `kosmos.io/appservice=${name}`,
    );
    expect(found).toHaveLength(1);
    expect(found[0]!.spec.nodeName).toBeDefined();
    return found[0]!.metadata.name;
  });
}

/** Says of a pod what its kubelet would. */
async function report(pod: string, status: object): Promise<void> {
  const path = `/api/v1/namespaces/${apps.namespace}/pods/${pod}/status`;
  const contentType = 'application/strategic-merge-patch+json';
  const answer = await cluster.send('PATCH', path, { body: { status }, contentType });
  expect(answer.status, String(answer.body.message)).toBe(200);
}

describe('a pod that its node can not prepare', () => {
  test('for want of what is mounted is told after ten seconds, with all that has to be there, until it runs', async () => {
    // GIVEN
    const name = 'unmounted';
    await apps.create(name, {
      ...{ size: 1, image },
      files: [
        { path: '/etc/settings', configMap: { name: 'settings' } },
        { path: '/etc/tls', secret: { name: 'tls' } },
        { path: '/etc/extra', secret: { name: 'extra', optional: true } },
        { path: '/var/run/token', token: { audience: 'vault' } },
        { path: '/tmp', emptyDir: {} },
      ],
    });
    const pod = await scheduledPod(name);
    await apps.condition(name, { type: 'Ready', status: 'Unknown', reason: 'RollingOut' });

    // WHEN: the last news of the pod is six seconds old, so that nothing but the time tells.
    await report(pod, preparing(name, image, secondsAgo(6)));

    // THEN
    const told = await apps.condition(name, {
      type: 'Ready',
      status: 'Unknown',
      reason: 'WaitingForVolumes',
    });
    await apps.condition(name, { type: 'Reconciling', status: 'True', reason: 'WaitingForVolumes' });
    await apps.condition(name, { type: 'Stalled', status: 'False' });
    expect(told.message).toContain('ConfigMap "settings", Secret "tls", ServiceAccount "default"');
    expect(told.message).toContain(
      `kubectl describe pods --namespace ${apps.namespace} --selector kosmos.io/appservice=${name}`,
    );
    const { stdout } = await cluster.sandbox.kubectl([
      ...['describe', 'pods', '--namespace', apps.namespace, '--selector', `kosmos.io/appservice=${name}`],
    ]);
    expect(stdout).toContain(`Name:             ${pod}`);

    // WHEN
    await report(pod, running(name, image, secondsAgo(0)));

    // THEN
    await apps.ready(name);
  });

  test('and mounts nothing is told after ten seconds too, and costs nothing from then on', async () => {
    const name = 'without-sandbox';
    await apps.create(name, { size: 1, image });
    const pod = await scheduledPod(name);
    await report(pod, preparing(name, image, secondsAgo(6)));
    await apps.condition(name, { type: 'Ready', status: 'Unknown', reason: 'WaitingForSandbox' });
    await settled(cluster, user);
    const requests = await requestsFromNowOn(cluster, user);
    const from = controller.log.length;

    await report(pod, { startTime: secondsAgo(1) });
    await cluster.merge(apps.place(name), { metadata: { annotations: { 'example.com/touched': 'yes' } } });

    await controller.logged((line) => line.msg === 'Reconciled' && line.name === name, from);
    await settled(cluster, user);
    expect(writes(await requests()).map(summary)).toEqual([]);
  });
});

test('what was just seen is nothing but Pending, then RollingOut, before it is Available', async () => {
  const name = 'seen';
  const { metadata } = await apps.create(name, { size: 1, image: 'example.com/web:1' });
  await apps.ready(name);

  // A watch of a second is short.
  const all = await eventually(async () => {
    const states = await historyOf<LiveResource>(cluster, apps.place(name), metadata.resourceVersion!);
    const conditions = states.at(-1)?.status?.conditions ?? [];
    expect(conditions.map(({ type, status }) => `${type} ${status}`)).toContain('Ready True');
    return states;
  });

  const told = all.map(({ status }) =>
    ['Ready', 'Reconciling', 'Stalled'].map((wanted) => {
      const condition = status?.conditions?.find(({ type }) => type === wanted);
      return `${condition?.status} ${condition?.reason}`;
    }),
  );
  // Each may be passed over: a status tells what is, and not what was. `readiness.test.ts` holds on to Pending.
  const way = ['Unknown Pending', 'Unknown RollingOut', 'True Available'];
  const ready = [...new Set(told.map(([said]) => said!))];
  expect(ready).toEqual(way.filter((said) => ready.includes(said)));
  expect(ready.at(-1)).toBe('True Available');
});

test('a claim that is missing leaves the pod without a node, and is named until it is there', async () => {
  const name = 'claimless';
  const files = [{ path: '/data', persistentVolumeClaim: { claimName: 'data' } }];
  await apps.create(name, { size: 1, image: 'example.com/web:1', files });

  const told = await apps.condition(name, { type: 'Ready', status: 'False', reason: 'Unschedulable' });
  expect(told.message).toContain('no node takes the pod: persistentvolumeclaim "data" not found');

  await cluster.create(claims, {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    metadata: { name: 'data', namespace: apps.namespace },
    spec: {
      ...{ accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: 'elsewhere' },
      resources: { requests: { storage: '1Gi' } },
    },
  });

  await eventually(async () => {
    const { message } = await apps.condition(name, { type: 'Ready', reason: 'Unschedulable' });
    expect(message).not.toContain('not found');
  });
});

test('a service account that is missing is named', async () => {
  await apps.create('accountless', { size: 1, image: 'example.com/web:1', serviceAccountName: 'missing' });

  const told = await apps.condition('accountless', {
    type: 'Ready',
    status: 'False',
    reason: 'ReplicaFailure',
  });
  expect(told.message).toContain('serviceaccount "missing" not found');
});

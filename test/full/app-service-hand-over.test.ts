import type { V1Deployment } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/kinds/common.js';
import type { ManagedFieldsEntry } from '../../src/engine/managed-fields.js';
import { replicasManagers, scaleAsAutoscaler } from './support/autoscaler.js';
import { Cluster, deployments } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { changesOf, Recording } from './support/recording.js';
import { Subject } from './support/subject.js';

type Deployment = AnyObject & Wire<Pick<V1Deployment, 'spec' | 'status'>>;

const user = 'operator-16';
const autoscalers = resourceType({ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' });
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace] });

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('autoscaled'));
  controller = await start();
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** Every field that says something of the pods or of how they are replaced. */
const full = {
  image: 'example.com/web:1',
  ports: [{ port: 80, targetPort: 8080 }],
  resources: { requests: { cpu: '100m' } },
  envs: [{ name: 'MODE', value: 'fast' }],
  probes: { readiness: { tcpSocket: { port: 8080 } } },
  files: [{ path: '/cache', emptyDir: {} }],
  securityProfile: 'Restricted',
  strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  terminationGracePeriodSeconds: 5,
  topologySpread: {},
  disruption: {},
};
/** Without a metric that the sandbox could serve, the autoscaler stays within its bounds and decides nothing else. */
const wide = { autoscaling: { minReplicas: 1, maxReplicas: 20, cpu: 50 } };

const deploymentOf = (name: string): Promise<Deployment> =>
  cluster.get<Deployment>(apps.childPlace(deployments, name));

async function running(name: string, size: number): Promise<Recording<Deployment>> {
  await apps.create(name, { ...full, size });
  await apps.ready(name);
  return Recording.start<Deployment>(cluster, apps.childPlace(deployments, name));
}

/** Waits until the present spec is rendered, and its replicas are by the word of these managers. */
async function handedTo(name: string, ...managers: readonly string[]): Promise<void> {
  await apps.asRendered(name);
  await eventually(async () => {
    expect(replicasManagers(await deploymentOf(name))).toEqual(managers);
  });
}

/** Scales, and waits for the pods: Ready is the custom resource with as many as the autoscaler may leave it, too. */
async function scaled(name: string, replicas: number): Promise<void> {
  await scaleAsAutoscaler(cluster, { namespace: apps.namespace, name }, replicas);
  await eventually(async () => {
    const { status } = await deploymentOf(name);
    expect(status).toMatchObject({ availableReplicas: replicas });
  });
}

/**
 * The values that `spec.replicas` had one after another in every event. Pods follow it, so their number may not
 * fall below the least of them either.
 */
async function replicasIn(recording: Recording<Deployment>): Promise<(number | undefined)[]> {
  const states = await recording.states();
  const wanted = changesOf(states.map(({ spec }) => spec?.replicas));
  const fewest = Math.min(...wanted.map((replicas) => replicas ?? 0));
  const available = states.map(({ status }) => status?.availableReplicas ?? 0);
  expect(Math.min(...available)).toBeGreaterThanOrEqual(fewest);
  return wanted;
}

test('switched on, replicas stay as they are until the autoscaler changes them', async () => {
  await using recording = await running('on', 4);

  await apps.edit('on', { ...full, ...wide, size: 4 });
  await handedTo('on', 'appservice-replicas');
  expect(await cluster.find(apps.childPlace(autoscalers, 'on'))).toBeDefined();
  await apps.ready('on');
  await scaled('on', 6);
  await apps.ready('on');

  expect(replicasManagers(await deploymentOf('on'))).toEqual(['kube-controller-manager']);
  expect(await replicasIn(recording)).toEqual([4, 6]);
});

test('switched on with another size in the same edit, replicas stay as they are', async () => {
  await using recording = await running('resized', 4);

  await apps.edit('resized', { ...full, ...wide, size: 1 });
  await handedTo('resized', 'appservice-replicas');
  await apps.ready('resized');

  expect(await replicasIn(recording)).toEqual([4]);
});

test('switched off, replicas return to the size at once', async () => {
  await apps.create('off', { ...full, ...wide, size: 2 });
  await apps.ready('off');
  await scaled('off', 7);
  await apps.ready('off');
  await using recording = await Recording.start<Deployment>(cluster, apps.childPlace(deployments, 'off'));

  await apps.edit('off', { ...full, size: 2 });
  await handedTo('off', 'appservice-controller');
  await apps.ready('off');

  expect(await cluster.find(apps.childPlace(autoscalers, 'off'))).toBeUndefined();
  expect(await replicasIn(recording)).toEqual([7, 2]);
});

test('on, scaled in by the autoscaler, and off again: only these two have changed the replicas', async () => {
  await using recording = await running('there-and-back', 5);

  await apps.edit('there-and-back', { ...full, ...wide, size: 5 });
  await handedTo('there-and-back', 'appservice-replicas');
  await scaled('there-and-back', 2);
  await apps.ready('there-and-back');
  await apps.edit('there-and-back', { ...full, size: 5 });
  await handedTo('there-and-back', 'appservice-controller');
  await apps.ready('there-and-back');

  expect(await replicasIn(recording)).toEqual([5, 2, 5]);
});

/** Who owns which fields but the status, which says nothing of how it got there. */
async function ownersOf(name: string): Promise<unknown[]> {
  const { metadata } = await deploymentOf(name);
  const owner = metadata.ownerReferences![0]!.uid;
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields
    .filter(({ subresource }) => subresource !== 'status')
    .map(({ time, ...entry }) => JSON.stringify(entry).replaceAll(name, '<name>').replace(owner, '<uid>'))
    .sort();
}

test.each([
  { how: 'unused', scaledTo: undefined },
  { how: 'after it has scaled to the size that is set then', scaledTo: 3 },
])('switched on and off again $how, every field has the owners that it had', async ({ how, scaledTo }) => {
  const name = `traceless-${how.length}`;
  const size = scaledTo ?? 2;
  await apps.create(`${name}-twin`, { ...full, size });
  await apps.create(name, { ...full, size: 2 });
  await apps.ready(name);
  await apps.edit(name, { ...full, ...wide, size: 2 });
  await handedTo(name, 'appservice-replicas');
  if (scaledTo !== undefined) await scaled(name, scaledTo);
  await apps.ready(name);

  await apps.edit(name, { ...full, size });
  await handedTo(name, 'appservice-controller');
  for (const each of [name, `${name}-twin`]) await apps.ready(each);

  expect(await ownersOf(name)).toEqual(await ownersOf(`${name}-twin`));
});

test('scaled in between the edit and the moment when the controller sees it, replicas stay as scaled', async () => {
  await using recording = await running('overtaken', 5);
  controller.signal('SIGSTOP');
  try {
    await apps.edit('overtaken', { ...full, ...wide, size: 5 });
    await scaled('overtaken', 3);
  } finally {
    controller.signal('SIGCONT');
  }
  await handedTo('overtaken', 'kube-controller-manager');
  await apps.ready('overtaken');

  expect(await replicasIn(recording)).toEqual([5, 3]);
});

test.each([{ size: 1 }, { size: 8 }])(
  'a size that becomes $size while autoscaling is on counts once it is off',
  async ({ size }) => {
    const name = `size-${size}`;
    await using recording = await running(name, 3);
    await apps.edit(name, { ...full, ...wide, size: 3 });
    await handedTo(name, 'appservice-replicas');

    await apps.edit(name, { ...full, ...wide, size });
    await apps.ready(name);
    await apps.edit(name, { ...full, ...wide, size: 0 });
    await apps.ready(name);
    expect(await replicasIn(recording)).toEqual([3]);
    await apps.edit(name, { ...full, size });
    await handedTo(name, 'appservice-controller');
    await apps.ready(name);

    expect(await replicasIn(recording)).toEqual([3, size]);
  },
);

test('the autoscaler of the cluster keeps its bounds, and is not fought', async () => {
  await using recording = await running('bound', 2);
  const between = (minReplicas: number, maxReplicas: number) => ({
    autoscaling: { minReplicas, maxReplicas, cpu: 50 },
  });

  await apps.edit('bound', { ...full, ...between(4, 9), size: 2 });
  await handedTo('bound', 'kube-controller-manager');
  await apps.edit('bound', { ...full, ...between(1, 3), size: 2 });
  await eventually(async () => {
    expect((await deploymentOf('bound')).spec?.replicas).toBe(3);
  });
  await apps.ready('bound');
  await apps.edit('bound', { ...full, size: 5 });
  await handedTo('bound', 'appservice-controller');
  await apps.ready('bound');

  const seen = await replicasIn(recording);
  expect(seen.slice(0, 4)).toEqual([2, 4, 3, 5]);
  // Until it is deleted, which comes last, the autoscaler may insist on its bounds once more.
  expect(seen.slice(4).filter((replicas) => replicas !== 3 && replicas !== 5)).toEqual([]);
  expect(seen.at(-1)).toBe(5);
});

test('switched on and off again and again without a pause, replicas never move', async () => {
  await using recording = await running('flapping', 4);

  for (let round = 0; round < 10; round++) {
    await apps.edit('flapping', { ...full, ...wide, size: 4 });
    await apps.edit('flapping', { ...full, size: 4 });
  }
  await apps.asRendered('flapping');
  await apps.ready('flapping');
  expect(await cluster.find(apps.childPlace(autoscalers, 'flapping'))).toBeUndefined();
  for (let round = 0; round < 10; round++) {
    await apps.edit('flapping', { ...full, size: 4 });
    await apps.edit('flapping', { ...full, ...wide, size: 4 });
  }
  await handedTo('flapping', 'appservice-replicas');
  await apps.ready('flapping');

  expect(await cluster.find(apps.childPlace(autoscalers, 'flapping'))).toBeDefined();
  expect(await replicasIn(recording)).toEqual([4]);
});

test('switched on while the controller is away, scaled, and off while it is away: replicas go to the size', async () => {
  await using recording = await running('meanwhile', 4);

  await controller.kill();
  await apps.edit('meanwhile', { ...full, ...wide, size: 4 });
  controller = await start();
  await handedTo('meanwhile', 'appservice-replicas');
  await scaled('meanwhile', 3);
  await controller.kill();
  await apps.edit('meanwhile', { ...full, size: 6 });
  controller = await start();
  await handedTo('meanwhile', 'appservice-controller');
  await apps.ready('meanwhile');

  expect(await replicasIn(recording)).toEqual([4, 3, 6]);
});

import type { V1Deployment } from '@kubernetes/client-node';
import { beforeAll, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { autoscalers, collection, deployments, eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { changesOf, Recording } from '../support/requests.js';
import { entriesOf, replicasManagers, Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

type Deployment = AnyObject & Wire<Pick<V1Deployment, 'spec' | 'status'>>;

const cluster = openCluster();
let apps: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({ cluster, user: 'operator-16', kinds: [appService], namespaces: [apps.namespace] });

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'autoscaled');
  controller = await start();
});

/** Every field that concerns the pods or how they are replaced. */
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
const between = (minReplicas: number, maxReplicas: number) => ({
  autoscaling: { minReplicas, maxReplicas, cpu: 50 },
});
/** Without a metric that the sandbox could serve, the autoscaler stays within its bounds and decides nothing else. */
const wide = between(1, 20);

const deploymentOf = (name: string): Promise<Deployment> =>
  cluster.get<Deployment>(apps.childPlace(deployments, name));

async function running(name: string, size: number): Promise<Recording<Deployment>> {
  await apps.create(name, { ...full, size });
  await apps.ready(name);
  return Recording.start<Deployment>(cluster, apps.childPlace(deployments, name));
}

/** Edits, and waits until that is rendered, the replicas have this manager, and the status is Ready. */
async function editedTo(name: string, spec: object, manager: string): Promise<void> {
  await apps.edit(name, { ...full, ...spec });
  await apps.asRendered(name);
  await eventually(async () => {
    expect(replicasManagers(await deploymentOf(name))).toEqual([manager]);
  });
  await apps.ready(name);
}

/** Scales as the autoscalers' controller does, by its account and field manager, and waits for the pods. */
async function scaled(name: string, replicas: number): Promise<void> {
  const path = `${collection(deployments, apps.namespace)}/${name}/scale`;
  const impersonate = 'system:serviceaccount:kube-system:horizontal-pod-autoscaler';
  // The Deployment's own controller writes its status meanwhile.
  await eventually(async () => {
    const { body } = await cluster.send('GET', path, { impersonate });
    const query = { fieldManager: 'kube-controller-manager' };
    const scale = { ...body, spec: { replicas } };
    const answer = await cluster.send('PUT', path, { body: scale, query, impersonate });
    expect([answer.status, answer.body.message]).toEqual([200, undefined]);
  });
  await eventually(async () => {
    expect((await deploymentOf(name)).status).toMatchObject({ availableReplicas: replicas });
  });
}

/** Returns the values of `spec.replicas` one after another. Pods follow it, so they are never fewer than the least of them. */
async function replicasIn(recording: Recording<Deployment>): Promise<(number | undefined)[]> {
  const states = await recording.states();
  const wanted = changesOf(states.map(({ spec }) => spec?.replicas));
  const fewest = Math.min(...wanted.map((replicas) => replicas ?? 0));
  const available = states.map(({ status }) => status?.availableReplicas ?? 0);
  expect(Math.min(...available)).toBeGreaterThanOrEqual(fewest);
  return wanted;
}

/** Returns the owners of each field but the status, which says nothing of how it got there. */
async function ownersOf(name: string): Promise<string[]> {
  const deployment = await deploymentOf(name);
  const owner = deployment.metadata.ownerReferences![0]!.uid;
  const withoutTime = (key: string, value: unknown): unknown => (key === 'time' ? undefined : value);
  return entriesOf(deployment)
    .filter(({ subresource }) => subresource !== 'status')
    .map((entry) => JSON.stringify(entry, withoutTime).replaceAll(name, '<name>').replace(owner, '<uid>'))
    .sort();
}

test('switched on, replicas stay as they are until the autoscaler changes them; off again, every field has the owners that it had', async () => {
  await apps.create('traceless-twin', { ...full, size: 6 });
  await using recording = await running('traceless', 4);

  await editedTo('traceless', { ...wide, size: 4 }, 'appservice-replicas');
  expect(await cluster.find(apps.childPlace(autoscalers, 'traceless'))).toBeDefined();
  await scaled('traceless', 6);
  await apps.ready('traceless');

  expect(replicasManagers(await deploymentOf('traceless'))).toEqual(['kube-controller-manager']);
  expect(await replicasIn(recording)).toEqual([4, 6]);

  await editedTo('traceless', { size: 6 }, 'appservice-controller');
  await apps.ready('traceless-twin');
  expect(await ownersOf('traceless')).toEqual(await ownersOf('traceless-twin'));
  expect(await replicasIn(recording)).toEqual([4, 6]);
});

test('another size counts once autoscaling is off, and replicas return to it at once', async () => {
  await using recording = await running('resized', 4);

  await editedTo('resized', { ...wide, size: 1 }, 'appservice-replicas');
  await apps.edit('resized', { ...full, ...wide, size: 0 });
  await apps.ready('resized');
  expect(await replicasIn(recording)).toEqual([4]);
  await scaled('resized', 2);
  await editedTo('resized', { size: 5 }, 'appservice-controller');

  expect(await cluster.find(apps.childPlace(autoscalers, 'resized'))).toBeUndefined();
  expect(await replicasIn(recording)).toEqual([4, 2, 5]);
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
  await editedTo('overtaken', { ...wide, size: 5 }, 'kube-controller-manager');

  expect(await replicasIn(recording)).toEqual([5, 3]);
});

test('the autoscaler of the cluster keeps its bounds, and is not fought', async () => {
  await using recording = await running('bound', 2);

  await editedTo('bound', { ...between(4, 9), size: 2 }, 'kube-controller-manager');
  await apps.edit('bound', { ...full, ...between(1, 3), size: 2 });
  await eventually(async () => {
    expect((await deploymentOf('bound')).spec?.replicas).toBe(3);
  });
  await apps.ready('bound');
  await editedTo('bound', { size: 5 }, 'appservice-controller');

  const seen = await replicasIn(recording);
  expect(seen.slice(0, 4)).toEqual([2, 4, 3, 5]);
  // Until it is deleted, which comes last, the autoscaler may insist on its bounds once more.
  expect(seen.slice(4).filter((replicas) => replicas !== 3 && replicas !== 5)).toEqual([]);
  expect(seen.at(-1)).toBe(5);
});

test('switched on and off again and again without a pause, replicas never move', async () => {
  await using recording = await running('flapping', 4);

  for (let round = 0; round < 20; round++)
    await apps.edit('flapping', { ...full, ...(round % 2 === 0 && wide), size: 4 });
  await editedTo('flapping', { size: 4 }, 'appservice-controller');
  expect(await cluster.find(apps.childPlace(autoscalers, 'flapping'))).toBeUndefined();
  await editedTo('flapping', { ...wide, size: 4 }, 'appservice-replicas');

  expect(await cluster.find(apps.childPlace(autoscalers, 'flapping'))).toBeDefined();
  expect(await replicasIn(recording)).toEqual([4]);
});

test('switched on while the controller is away, scaled, and off while it is away: replicas go to the size', async () => {
  await using recording = await running('meanwhile', 4);

  await controller.kill();
  await apps.edit('meanwhile', { ...full, ...wide, size: 4 });
  controller = await start();
  await editedTo('meanwhile', { ...wide, size: 4 }, 'appservice-replicas');
  await scaled('meanwhile', 3);
  await controller.kill();
  await apps.edit('meanwhile', { ...full, size: 6 });
  controller = await start();
  await editedTo('meanwhile', { size: 6 }, 'appservice-controller');

  expect(await replicasIn(recording)).toEqual([4, 3, 6]);
});

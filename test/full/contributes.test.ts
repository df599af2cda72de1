import { afterEach, beforeAll, expect, test } from 'vitest';
import { DRIFT_ANNOTATION, GIVE_UP_ANNOTATION, SHARED_HASH_PREFIX } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, deployments, eventually, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Scenario } from '../support/stages.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const sleeping = await loadKind('examples/nap/reconstruct.config.mjs');
const USER = 'operator-102';
const REASON = 'sleep.example.com/reason';

let naps: Subject;
const running: RunningController[] = [];

async function operate(): Promise<RunningController> {
  const { kind, config } = sleeping;
  const namespaces = [naps.namespace];
  const controller = await startController({ cluster, user: USER, kinds: [kind], config, namespaces });
  running.push(controller);
  return controller;
}

async function deploy(name: string, replicas: number, of = naps): Promise<void> {
  const labels = { app: name };
  await cluster.create(deployments, {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: of.namespace } },
    spec: {
      ...{ replicas, selector: { matchLabels: labels } },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] } },
    },
  });
}

type Deployment = AnyObject & { readonly spec: { readonly replicas: number } };
const live = async (name: string, of = naps): Promise<Deployment> =>
  cluster.get<Deployment>(of.childPlace(deployments, name));
const hasReplicas = async (name: string, replicas: number, of = naps): Promise<Deployment> =>
  eventually(async () => {
    const deployment = await live(name, of);
    expect(deployment.spec.replicas, name).toBe(replicas);
    return deployment;
  });
const isGone = async (name: string, of = naps): Promise<void> =>
  eventually(async () => {
    expect(await cluster.find(of.place(name))).toBeUndefined();
  });
/** Nothing of ours is on it. */
function isClean({ metadata }: AnyObject): void {
  const { annotations = {}, managedFields } = metadata as AnyObject['metadata'] & {
    managedFields?: readonly { readonly manager: string }[];
  };
  expect(Object.keys(annotations).filter((name) => /example\.com|reconstruct/.test(name))).toEqual([]);
  expect(managedFields?.filter(({ manager }) => /^(nap|switch)-/.test(manager))).toEqual([]);
  expect(metadata.labels).toBeUndefined();
  expect(metadata.ownerReferences).toBeUndefined();
}

beforeAll(async () => {
  naps = await Subject.make(cluster, sleeping.kind, 'naps');
});

afterEach(async () => {
  for (const controller of running.splice(0)) await controller.kill();
});

test('a field of another writer is taken, kept, and given back with the value from before', async () => {
  await operate();
  await deploy('web', 3);
  await naps.create('night', { deployment: 'web', reason: 'night' });
  await naps.ready('night');
  const asleep = await hasReplicas('web', 0);
  expect(asleep.metadata.annotations?.[REASON]).toBe('night');
  expect(asleep.metadata.labels).toBeUndefined();

  await settled(cluster, USER);
  const requests = await requestsFromNowOn(cluster, USER);
  await naps.touch('night');
  await settled(cluster, USER);
  expect(writes(await requests()).map(summary)).toEqual([]);

  // Its other fields are those of others.
  await cluster.merge(naps.childPlace(deployments, 'web'), { spec: { minReadySeconds: 5 } });
  await naps.edit('night', { deployment: 'web', reason: 'night', awake: true });
  expect((await hasReplicas('web', 3)).metadata.annotations?.[REASON]).toBe('night');
  await naps.edit('night', { deployment: 'web', reason: 'night' });
  await hasReplicas('web', 0);
  await naps.delete('night');
  await isGone('night');
  const awake = await live('web');
  expect(awake.spec).toMatchObject({ replicas: 3, minReadySeconds: 5 });
  isClean(awake);
});

test('what others set meanwhile is what is given back; where they own it too, it stays', async () => {
  await operate();
  await deploy('edited', 3);
  await deploy('agreed', 3);
  for (const name of ['edited', 'agreed']) {
    await naps.create(name, { deployment: name });
    await naps.ready(name);
  }
  await cluster.merge(naps.childPlace(deployments, 'edited'), { spec: { replicas: 7 } });
  await eventually(async () => {
    const { metadata } = await hasReplicas('edited', 0);
    expect(JSON.stringify(metadata.annotations)).toContain('[7]');
  });
  const { apiVersion, kind } = deployments;
  const metadata = { name: 'agreed', namespace: naps.namespace };
  await cluster.apply(deployments, { apiVersion, kind, metadata, spec: { replicas: 0 } }, 'gitops');
  for (const name of ['edited', 'agreed']) {
    await naps.delete(name);
    await isGone(name);
  }
  await hasReplicas('edited', 7);
  await hasReplicas('agreed', 0);
});

test("drift that is to be left is left, and said; else a field that isn't taken is refused", async () => {
  await operate();
  await deploy('drifting', 3);
  await naps.create('drifting', { deployment: 'drifting', reason: 'night' });
  await naps.ready('drifting');
  await cluster.merge(naps.place('drifting'), { metadata: { annotations: { [DRIFT_ANNOTATION]: 'warn' } } });
  await settled(cluster, USER);
  const place = naps.childPlace(deployments, 'drifting');
  await cluster.merge(place, { metadata: { annotations: { [REASON]: 'day' } } });
  await naps.condition('drifting', { type: 'Drifted', status: 'True' });
  await cluster.merge(naps.place('drifting'), { metadata: { annotations: { [DRIFT_ANNOTATION]: null } } });
  await naps.stalled('drifting', 'FieldConflict');
  await cluster.merge(place, { metadata: { annotations: { [REASON]: null } } });
  await naps.ready('drifting');
});

test('what an earlier custom resource of the name has left is given up; a copied record is no conflict', async () => {
  await operate();
  await deploy('left', 3);
  await naps.create('left', { deployment: 'left', reason: 'night' });
  await naps.ready('left');
  // It goes without giving anything back.
  await cluster.merge(naps.place('left'), { metadata: { annotations: { [GIVE_UP_ANNOTATION]: 'true' } } });
  await naps.delete('left');
  await isGone('left');
  const { annotations = {} } = (await hasReplicas('left', 0)).metadata;
  await naps.create('left', { deployment: 'left', reason: 'day' });
  await naps.ready('left');
  const [own, ...others] = Object.entries((await live('left')).metadata.annotations ?? {}).filter(([name]) =>
    name.startsWith(SHARED_HASH_PREFIX),
  );
  expect(others).toEqual([]);
  expect(own![1]).toContain('[3]');
  expect(annotations).not.toHaveProperty([own![0]]);

  await naps.edit('left', { deployment: 'left', reason: 'evening' });
  await naps.ready('left');
  await cluster.merge(naps.childPlace(deployments, 'left'), {
    metadata: { annotations: { [own![0]]: own![1] } },
  });
  await eventually(async () => {
    expect((await live('left')).metadata.annotations?.[own![0]]).not.toBe(own![1]);
  });
  await naps.ready('left');
  await naps.delete('left');
  await isGone('left');
  isClean(await hasReplicas('left', 3));
});

test('two that want the same hold it together, and the last of them gives it back', async () => {
  await operate();
  await deploy('both', 3);
  for (const name of ['one', 'two']) {
    await naps.create(name, { deployment: 'both' });
    await naps.ready(name);
  }
  await naps.delete('one');
  await isGone('one');
  await settled(cluster, USER);
  await hasReplicas('both', 0);
  await naps.delete('two');
  await isGone('two');
  isClean(await hasReplicas('both', 3));
});

test('a target that is missing is waited for; another nap, or an autoscaler, is not fought', async () => {
  await operate();
  await naps.create('first', { deployment: 'late' });
  await naps.stalled('first', 'TargetMissing');
  await deploy('late', 2);
  await naps.ready('first');
  await hasReplicas('late', 0);

  await deploy('scaled', 2);
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 4 } };
  await cluster.send('PATCH', `/apis/apps/v1/namespaces/${naps.namespace}/deployments/scaled/scale`, {
    ...{ contentType: 'application/merge-patch+json', query: { fieldManager: 'kube-controller-manager' } },
    body: scale,
  });
  await naps.create('scaled', { deployment: 'scaled' });
  const { message } = await naps.stalled('scaled', 'FieldConflict');
  expect(message).toContain('.spec.replicas is held by kube-controller-manager');
  await hasReplicas('scaled', 4);
  // It goes on by itself once that lets go.
  await cluster.merge(naps.childPlace(deployments, 'scaled'), { spec: { replicas: 5 } });
  await naps.ready('scaled');
  await hasReplicas('scaled', 0);
  await naps.delete('scaled');
  await isGone('scaled');
  await hasReplicas('scaled', 5);
});

test('killed at any write of a nap or of its end, it ends as it should with the next start', async () => {
  await using scenario = await Scenario.start({ purpose: 'nap-kills', kind: sleeping });
  const { subject, proxy } = scenario;
  let write = 0;
  for (let isKilled = true; isKilled; write++) {
    const name = `web${write}`;
    await deploy(name, 3, subject);
    let seen = 0;
    let killed: Promise<unknown> | undefined;
    const nth = proxy.on(
      ({ method, resource }) =>
        method !== 'GET' && method !== 'POST' && resource !== 'leases' && seen++ === write,
      (_exchange, next) => {
        next();
        killed ??= scenario.controller.kill();
      },
    );
    isKilled = false;
    const restart = async (): Promise<void> => {
      if (!killed || isKilled) return;
      await killed;
      isKilled = true;
      await scenario.startController();
    };
    await subject.create(name, { deployment: name, reason: 'night' });
    await eventually(async () => {
      const isAsleep = (await live(name, subject)).spec.replicas === 0;
      expect(killed !== undefined || isAsleep).toBe(true);
    });
    await restart();
    await hasReplicas(name, 0, subject);
    await subject.delete(name);
    await eventually(async () => {
      const isEnded = (await cluster.find(subject.place(name))) === undefined;
      expect((killed !== undefined && !isKilled) || isEnded).toBe(true);
    });
    await restart();
    nth.remove();
    await isGone(name, subject);
    isClean(await hasReplicas(name, 3, subject));
  }
  expect(write).toBeGreaterThan(4);
});

test('a map that is owned as a whole is taken, and given back as it was; of one that others own in part, nothing', async () => {
  const { kind, config } = await loadKind('test/support/kinds/switch.config.mjs');
  const switches = await Subject.make(cluster, kind, 'switches');
  const { namespace } = switches;
  running.push(
    await startController({ cluster, user: 'operator-115', kinds: [kind], config, namespaces: [namespace] }),
  );
  const metadata = { name: 'web', namespace };
  await cluster.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { mode: 'a' } });
  const blue = { app: 'web', color: 'blue' };
  await cluster.create(services, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata },
    spec: { selector: blue, ports: [{ port: 80 }] },
  });
  const policies = resourceType({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' });
  await cluster.create(policies, {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata },
    spec: { podSelector: { matchLabels: blue, matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
  });
  const selects = async (selector: object, peers: object): Promise<void> =>
    eventually(async () => {
      const { spec } = await cluster.get<AnyObject & { readonly spec: object }>(
        switches.childPlace(services, 'web'),
      );
      expect(spec).toMatchObject({ ports: [{ port: 80 }] });
      expect((spec as { readonly selector: object }).selector).toEqual(selector);
      const policy = await cluster.get<AnyObject & { readonly spec: { readonly podSelector: object } }>(
        switches.childPlace(policies, 'web'),
      );
      expect(policy.spec.podSelector).toEqual(peers);
    });
  const peers = { lane: 'x' };
  const green = { app: 'web', release: 'green' };
  await switches.create('web', { service: 'web', selector: green, peers });
  await switches.ready('web');
  await selects(green, { matchLabels: peers });
  await settled(cluster, 'operator-115');
  const requests = await requestsFromNowOn(cluster, 'operator-115');
  await switches.touch('web');
  await settled(cluster, 'operator-115');
  expect(writes(await requests()).map(summary)).toEqual([]);

  // Another writer's is what is given back.
  const red = { app: 'web', color: 'red' };
  const place = switches.childPlace(services, 'web');
  await cluster.merge(place, { spec: { selector: { ...red, release: null } } });
  await eventually(async () => {
    const { annotations } = (await cluster.get(place)).metadata;
    expect(Object.values(annotations ?? {}).join()).toContain(JSON.stringify(red));
  });
  await selects(green, { matchLabels: peers });

  const former = { matchLabels: blue, matchExpressions: [{ key: 'a', operator: 'Exists' }] };
  await switches.edit('web', { service: 'web', data: { mode: 'b' } });
  expect((await switches.stalled('web', 'Invalid')).message).toContain('.data is a map or a list');
  await selects(red, former);
  await switches.edit('web', { service: 'web', selector: blue, peers });
  await switches.ready('web');
  await switches.delete('web');
  await eventually(async () => {
    expect(await cluster.find(switches.place('web'))).toBeUndefined();
  });
  await selects(red, former);
  expect((await cluster.get(switches.childPlace(configMaps, 'web'))).data).toEqual({ mode: 'a' });
  for (const type of [services, policies, configMaps])
    isClean(await cluster.get(switches.childPlace(type, 'web')));
});

import { afterEach, beforeAll, expect, test } from 'vitest';
import { loadControllers } from '../../src/cli/config.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { events, eventually, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const config = 'examples/service-per-pod/reconstruct.config.mjs';
const { controllers } = await loadControllers({ config, builtIn: [] });
const statefulSets = resourceType({ apiVersion: 'apps/v1', kind: 'StatefulSet' });
const USER = 'operator-103';
const PORTS = 'pods.example.com/ports';

let namespace: string;
const running: RunningController[] = [];

async function operate(): Promise<RunningController> {
  const controller = await startController({
    ...{ cluster, user: USER, kinds: [], controllers, config, namespaces: [namespace] },
  });
  running.push(controller);
  return controller;
}

async function make(
  name: string,
  replicas = 2,
  annotations: Readonly<Record<string, string>> = { [PORTS]: '80' },
): Promise<void> {
  const labels = { app: name };
  await cluster.create(statefulSets, {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace, annotations } },
    spec: {
      ...{ serviceName: name, replicas, selector: { matchLabels: labels } },
      template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] } },
    },
  });
}

const place = (name: string) => ({ type: statefulSets, namespace, name });
const has = async (prefix: string, count: number): Promise<AnyObject[]> =>
  eventually(async () => {
    const all = await cluster.list(services, namespace);
    const found = all.filter(({ metadata: { name } }) => name.startsWith(prefix));
    expect(found.map(({ metadata: { name } }) => name)).toHaveLength(count);
    return found;
  });

beforeAll(async () => {
  namespace = await cluster.makeNamespace('decorated');
});

afterEach(async () => {
  for (const controller of running.splice(0)) await controller.kill();
});

test('an object of others that is chosen has children, which follow it, and go with it or with the choice', async () => {
  await operate();
  await make('db');
  await make('plain', 2, {});
  const [first] = await has('db-', 2);
  const [owner] = first!.metadata.ownerReferences!;
  expect(owner).toMatchObject({
    kind: 'StatefulSet',
    name: 'db',
    controller: true,
    blockOwnerDeletion: false,
  });
  await settled(cluster, USER);
  const requests = await requestsFromNowOn(cluster, USER);
  await cluster.merge(place('db'), { metadata: { labels: { touched: 'yes' } } });
  await settled(cluster, USER);
  expect(writes(await requests()).map(summary)).toEqual([]);

  await cluster.merge(place('db'), { spec: { replicas: 3 } });
  await has('db-', 3);
  await cluster.delete({ type: services, namespace, name: 'db-1' });
  await has('db-', 3);
  await cluster.merge(place('db'), { metadata: { annotations: { [PORTS]: null } } });
  await has('db-', 0);
  await cluster.merge(place('db'), { metadata: { annotations: { [PORTS]: '81' } } });
  await has('db-', 3);
  const live = await cluster.get(place('db'));
  const { managedFields } = live.metadata as unknown as { managedFields: readonly { manager: string }[] };
  expect(managedFields.filter(({ manager }) => manager.startsWith('service-per-pod'))).toEqual([]);
  await cluster.delete(place('db'));
  await has('db-', 0);
  await has('plain-', 0);
});

test('what has changed while no operator ran is made up for, and what fails is an event of the object', async () => {
  const first = await operate();
  for (const name of ['left', 'fewer']) await make(name);
  await has('left-', 2);
  await has('fewer-', 2);
  await first.kill();
  await cluster.merge(place('left'), { metadata: { annotations: { [PORTS]: null } } });
  await cluster.merge(place('fewer'), { spec: { replicas: 1 } });
  // Of others, under a name that it would have.
  const spec = { ports: [{ port: 80 }] };
  await cluster.create(services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'taken-0', namespace },
    spec,
  });
  await make('taken', 1);
  await operate();
  await has('left-', 0);
  await has('fewer-', 1);
  await eventually(async () => {
    const all = await cluster.list<AnyObject & { regarding: { name: string }; reason: string }>(
      events,
      namespace,
    );
    const reasons = all.filter(({ regarding }) => regarding.name === 'taken').map(({ reason }) => reason);
    expect(reasons).toContain('OwnershipConflict');
  });
  expect(
    (await cluster.get({ type: services, namespace, name: 'taken-0' })).metadata.ownerReferences,
  ).toBeUndefined();

  // Of another controller of the same object.
  const { uid = '' } = (await cluster.get(place('taken'))).metadata;
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'taken', uid, controller: true };
  await cluster.merge(
    { type: services, namespace, name: 'taken-0' },
    { metadata: { ownerReferences: [owner] } },
  );
  await cluster.merge(place('taken'), { metadata: { annotations: { [PORTS]: '81' } } });
  await eventually(async () => {
    const all = await cluster.list<AnyObject & { note: string }>(events, namespace);
    expect(all.map(({ note }) => note).join()).toContain('made by another controller for StatefulSet taken');
  });
  await cluster.merge(place('taken'), { metadata: { annotations: { [PORTS]: null } } });
  await settled(cluster, USER);
  const { spec: kept } = await cluster.get<AnyObject & { spec: { ports: readonly { port: number }[] } }>({
    ...{ type: services, namespace, name: 'taken-0' },
  });
  expect(kept.ports[0]!.port).toBe(80);
});

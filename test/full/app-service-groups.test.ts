import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { openSandbox } from '../../sandbox/client.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { appServiceOfExample } from '../../src/kinds/app-service/example-group.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { asked } from './support/asked.js';
import { Cluster, collection, configMaps, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const kinds = [appService, appServiceOfExample];

beforeAll(async () => {
  await Promise.all(kinds.map((kind) => installCrd(cluster, kind)));
  const namespace = await cluster.makeNamespace('groups-collected');
  await Promise.all(kinds.map((kind) => isCollected(new Subject(cluster, kind, namespace))));
});
afterAll(async () => {
  await cluster.close();
});

/** Waits until the garbage collector follows a kind, of which it hears up to half a minute after the API server. */
async function isCollected(subject: Subject): Promise<void> {
  const { apiVersion, kind, metadata } = await subject.create('probe', {
    size: 0,
    image: 'example.com/web:1',
  });
  const place = { type: configMaps, namespace: subject.namespace, name: groupOf(subject) };
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: {
      ...{ name: place.name, namespace: place.namespace },
      ownerReferences: [{ apiVersion, kind, name: 'probe', uid: metadata.uid! }],
    },
  });
  await subject.delete('probe');
  await eventually(
    async () => {
      expect(await cluster.find(place)).toBeUndefined();
    },
    { deadlineMilliseconds: 120_000 },
  );
}

/** What one renders differs from what the other renders in every child. */
const spec = {
  ...{ size: 1, image: 'example.com/web:1', ports: [{ port: 80 }], disruption: {} },
  ...{ resources: { requests: { cpu: '100m' } }, autoscaling: { maxReplicas: 3, cpu: 50 } },
};
const otherSpec = { ...spec, size: 2, image: 'example.com/web:2', ports: [{ port: 81 }] };

const groupOf = ({ kind }: Subject): string => kind.crd.spec.group;

/** All objects that either of the two could have made. */
async function objectsOf(subject: Subject, name: string): Promise<AnyObject[]> {
  const all = await Promise.all(subject.kind.children.map((type) => subject.objects(type)));
  return all.flat().filter(({ metadata }) => metadata.name === name);
}

async function meetsConflict(subject: Subject, name: string, first: Subject): Promise<void> {
  const stalled = { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' } as const;
  const { message } = await subject.condition(name, stalled);
  await subject.condition(name, { type: 'Ready', status: 'False', reason: 'OwnershipConflict' });
  expect(message).toContain(`Deployment ${subject.namespace}/${name}`);
  expect(message).toContain(`AppService ${name} of ${groupOf(first)}`);
}

/** Of the writes, those that aren't about events and the status of one's custom resources. */
function writesBesideStatus(entries: readonly AuditEntry[], { kind }: Subject): AuditEntry[] {
  return writes(entries).filter(
    ({ objectRef }) =>
      objectRef?.resource !== 'events' &&
      !(objectRef?.resource === kind.type.plural && objectRef.subresource === 'status'),
  );
}

async function selects(subject: Subject, name: string): Promise<void> {
  const label = `${groupOf(subject)}/appservice`;
  expect(await cluster.get(subject.childPlace(deployments, name))).toMatchObject({
    metadata: { labels: { [label]: name } },
    spec: {
      selector: { matchLabels: { [label]: name } },
      template: { metadata: { labels: { [label]: name } } },
    },
  });
  const service = await cluster.get<AnyObject & { spec: object }>(subject.childPlace(services, name));
  expect(service.spec).toMatchObject({ selector: { [label]: name } });
  const selectors = [service.spec, (await cluster.get(subject.childPlace(deployments, name))).spec];
  expect(selectors.map((found) => Object.keys((found as { selector: object }).selector))).toEqual([
    [label],
    ['matchLabels'],
  ]);
  expect((await subject.get(name)).status).toMatchObject({ selector: `${label}=${name}` });
}

describe.each([
  { which: 'by one controller', users: ['operator-19'] },
  { which: 'by a controller each', users: ['operator-23', 'operator-24'] },
])('two groups, served $which:', ({ users }) => {
  let namespace: string;
  let controllers: RunningController[];
  let subjects: readonly [Subject, Subject];

  beforeAll(async () => {
    namespace = await cluster.makeNamespace('groups');
    const [kosmos, example] = kinds.map((kind) => new Subject(cluster, kind, namespace));
    subjects = [kosmos!, example!];
    const portions = users.length === 1 ? [kinds] : kinds.map((kind) => [kind]);
    controllers = await Promise.all(
      portions.map((portion, index) =>
        startController({ cluster, user: users[index]!, kinds: portion, namespaces: [namespace] }),
      ),
    );
  });
  afterAll(async () => {
    for (const controller of controllers) await controller.kill();
  });
  beforeEach(async () => {
    for (const user of users) await settled(cluster, user);
  });

  test.each([
    { order: 'kosmos.io first', firstIndex: 0, name: 'kosmos-first' },
    { order: 'app.example.com first', firstIndex: 1, name: 'example-first' },
  ])('the second of one name stands back and takes over once the first is gone ($order)', async (row) => {
    // GIVEN the first, which is settled
    const { name, firstIndex } = row;
    const [first, second] = [subjects[firstIndex]!, subjects[1 - firstIndex]!];
    await first.create(name, spec);
    await first.ready(name);
    await first.asRendered(name);
    await selects(first, name);
    for (const user of users) await settled(cluster, user);
    const before = await objectsOf(first, name);
    expect(before.map(({ kind }) => kind)).toHaveLength(4);
    const requests = await Promise.all(users.map((user) => requestsFromNowOn(cluster, user)));

    // WHEN the second comes, and is edited
    await second.create(name, otherSpec);
    await meetsConflict(second, name, first);
    await second.edit(name, { ...otherSpec, size: 3 });
    await meetsConflict(second, name, first);
    for (const user of users) await settled(cluster, user);

    // THEN nothing but its status was written
    const sent = (await Promise.all(requests.map((since) => since()))).flat();
    expect(writesBesideStatus(sent, second)).toEqual([]);
    const statuses = writes(sent).filter(({ objectRef }) => objectRef?.subresource === 'status');
    expect(new Set(statuses.map(({ objectRef }) => objectRef?.apiGroup))).toEqual(new Set([groupOf(second)]));
    expect((await objectsOf(first, name)).map(asked)).toEqual(before.map(asked));

    // AND the first goes on as ever
    await first.edit(name, { ...spec, image: 'example.com/web:3' });
    await first.ready(name);
    await first.asRendered(name);
    await meetsConflict(second, name, first);

    // WHEN the first goes, THEN the second has objects of its own
    await first.delete(name);
    await second.ready(name);
    await second.asRendered(name);
    await selects(second, name);
    const uids = new Set(before.map(({ metadata }) => metadata.uid));
    const after = await objectsOf(second, name);
    expect(after).toHaveLength(4);
    expect(after.filter(({ metadata }) => uids.has(metadata.uid))).toEqual([]);

    // AND the first, which comes back, is the second now
    await first.create(name, spec);
    await meetsConflict(first, name, second);
    await second.delete(name);
    await first.ready(name);
    await first.asRendered(name);
  });

  test('created at once, one of each pair has all objects and the other none, until it goes', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `pair-${index}`);
    await Promise.all(
      names.flatMap((name) => [subjects[0].create(name, spec), subjects[1].create(name, otherSpec)]),
    );

    for (const name of names) {
      const winner = await eventually(async () => {
        const objects = await objectsOf(subjects[0], name);
        expect(objects).toHaveLength(4);
        const owners = new Set(objects.map((object) => controllerOf(object)?.apiVersion));
        expect([...owners], name).toHaveLength(1);
        return subjects.find(({ kind }) => owners.has(kind.type.apiVersion))!;
      });
      const loser = subjects.find((subject) => subject !== winner)!;
      await winner.ready(name);
      await winner.asRendered(name);
      await meetsConflict(loser, name, winner);

      await winner.delete(name);
      await loser.ready(name);
      await loser.asRendered(name);
    }
  });

  test('one that is made as v1alpha1 is the same AppService', async () => {
    const [, example] = subjects;
    const apiVersion = 'app.example.com/v1alpha1';
    const { status } = await cluster.send(
      'POST',
      collection({ ...example.kind.type, apiVersion }, namespace),
      { body: { apiVersion, kind: 'AppService', metadata: { name: 'old' }, spec } },
    );
    expect(status).toBe(201);

    await example.ready('old');
    await example.asRendered('old');
    await selects(example, 'old');
  });
});

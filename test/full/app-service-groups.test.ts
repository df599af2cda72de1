import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { appServiceOfExample } from '../../src/kinds/app-service/kind.js';
import { appService, appServiceIn } from '../../src/kinds/app-service/kind.js';
import { collection, configMaps, eventually } from '../support/cluster.js';
import { packed, startController } from '../support/operator.js';
import { requestsFromNowOn, settled, writes } from '../support/requests.js';
import { asked, Subject } from '../support/subject.js';
import { folderWith } from '../synth/fixtures.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const kinds = [appService, appServiceOfExample];

beforeAll(async () => {
  await Promise.all(kinds.map(async (kind) => isCollected(await Subject.make(cluster, kind, 'collected'))));
});

/** Waits until the garbage collector follows a kind, of which it hears up to half a minute after the API server. */
async function isCollected(subject: Subject): Promise<void> {
  const { apiVersion, kind, metadata } = await subject.create('probe', spec);
  const owner = { apiVersion, kind, name: 'probe', uid: metadata.uid! };
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { name: 'probe', namespace: subject.namespace, ownerReferences: [owner] },
  });
  await subject.delete('probe');
  const isGone = async (): Promise<void> => {
    expect(await cluster.find(subject.childPlace(configMaps, 'probe'))).toBeUndefined();
  };
  await eventually(isGone, { deadlineMilliseconds: 120_000 });
}

/** Specs that differ in every child. */
const spec = {
  ...{ size: 1, image: 'example.com/web:1', ports: [{ port: 80 }], disruption: {} },
  ...{ resources: { requests: { cpu: '100m' } }, autoscaling: { maxReplicas: 3, cpu: 50 } },
};
const otherSpec = { ...spec, size: 2, image: 'example.com/web:2', ports: [{ port: 81 }] };

const groupOf = ({ kind }: Subject): string => kind.crd.spec.group;

/** Returns all objects that either of the two could have made. */
async function objectsOf(subject: Subject, name: string): Promise<AnyObject[]> {
  const all = await Promise.all(subject.kind.children.map((type) => subject.objects(type)));
  return all.flat().filter(({ metadata }) => metadata.name === name);
}

async function meetsConflict(subject: Subject, name: string, first: Subject): Promise<void> {
  const { message } = await subject.stalled(name, 'OwnershipConflict');
  await subject.condition(name, { type: 'Ready', status: 'False', reason: 'OwnershipConflict' });
  expect(message).toContain(`Deployment ${subject.namespace}/${name}`);
  expect(message).toContain(`AppService ${name} of ${groupOf(first)}`);
}

async function isServed(subject: Subject, name: string): Promise<void> {
  await subject.ready(name);
  await subject.asRendered(name);
}

describe.each([
  { which: 'by one controller', users: ['operator-19'] },
  { which: 'by a controller each', users: ['operator-23', 'operator-24'] },
])('two groups, served $which:', ({ users }) => {
  let kosmos: Subject;
  let example: Subject;

  beforeAll(async () => {
    const namespace = await cluster.makeNamespace('groups');
    [kosmos, example] = kinds.map((kind) => new Subject(cluster, kind, namespace)) as [Subject, Subject];
    const portions = users.length === 1 ? [kinds] : kinds.map((kind) => [kind]);
    const start = (portion: typeof kinds, index: number) =>
      startController({ cluster, user: users[index]!, kinds: portion, namespaces: [namespace] });
    await Promise.all(portions.map(start));
  });
  const allSettled = async (): Promise<void> => {
    for (const user of users) await settled(cluster, user);
  };

  test('the second of one name stands back and takes over once the first is gone', async () => {
    const name = 'web';
    await kosmos.create(name, spec);
    await isServed(kosmos, name);
    await allSettled();
    const before = await objectsOf(kosmos, name);
    expect(before).toHaveLength(4);
    const requests = await Promise.all(users.map((user) => requestsFromNowOn(cluster, user)));

    await example.create(name, otherSpec);
    await meetsConflict(example, name, kosmos);
    await example.edit(name, { ...otherSpec, size: 3 });
    await meetsConflict(example, name, kosmos);
    await allSettled();

    const sent = writes((await Promise.all(requests.map((since) => since()))).flat());
    const others = sent.filter(({ objectRef }) => objectRef?.resource !== 'events');
    expect(
      new Set(others.map(({ objectRef }) => `${objectRef?.subresource} ${objectRef?.apiGroup}`)),
    ).toEqual(new Set([`status ${groupOf(example)}`]));
    expect((await objectsOf(kosmos, name)).map(asked)).toEqual(before.map(asked));

    await kosmos.edit(name, { ...spec, image: 'example.com/web:3' });
    await isServed(kosmos, name);
    await meetsConflict(example, name, kosmos);

    await kosmos.delete(name);
    await isServed(example, name);
    const uids = new Set(before.map(({ metadata }) => metadata.uid));
    const after = await objectsOf(example, name);
    expect(after).toHaveLength(4);
    expect(after.filter(({ metadata }) => uids.has(metadata.uid))).toEqual([]);

    await kosmos.create(name, spec);
    await meetsConflict(kosmos, name, example);
    await example.delete(name);
    await isServed(kosmos, name);
  });

  test('of two created at once, one has all objects and the other none, until it goes', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `pair-${index}`);
    await Promise.all(names.flatMap((name) => [kosmos.create(name, spec), example.create(name, otherSpec)]));

    for (const name of names) {
      const apiVersion = await eventually(async () => {
        const objects = await objectsOf(kosmos, name);
        expect(objects).toHaveLength(4);
        const owners = new Set(objects.map((object) => controllerOf(object)?.apiVersion));
        expect([...owners], name).toHaveLength(1);
        return [...owners][0];
      });
      const isFirst = kosmos.kind.type.apiVersion === apiVersion;
      const [winner, loser] = isFirst ? [kosmos, example] : [example, kosmos];
      await isServed(winner, name);
      await meetsConflict(loser, name, winner);

      await winner.delete(name);
      await isServed(loser, name);
    }
  });

  test('one that is created as v1alpha1 is the same AppService', async () => {
    const apiVersion = 'app.example.com/v1alpha1';
    const path = collection({ ...example.kind.type, apiVersion }, example.namespace);
    const body = { apiVersion, kind: 'AppService', metadata: { name: 'old' }, spec };
    expect((await cluster.send('POST', path, { body })).status).toBe(201);

    await isServed(example, 'old');
    expect((await example.get('old')).status).toMatchObject({
      selector: 'app.example.com/appservice=old',
    });
  });
});

test('an AppService under a group of one’s own is served by its label, and its drift corrected', async () => {
  const subject = await Subject.make(cluster, appServiceIn('apps.example.net'), 'own-group');
  const { namespace, kind } = subject;
  const own = `import { appServiceIn } from '${join(packed, 'lib/kinds/index.js')}';
    export default { kinds: [appServiceIn('apps.example.net')] };`;
  const config = join(folderWith({ 'own.config.mjs': own }), 'own.config.mjs');
  await startController({ cluster, user: 'operator-98', kinds: [kind], namespaces: [namespace], config });

  await subject.create('web', spec);
  await isServed(subject, 'web');
  expect((await subject.get('web')).status).toMatchObject({ selector: 'apps.example.net/appservice=web' });
  const objects = await objectsOf(subject, 'web');
  expect(objects.map((object) => controllerOf(object)?.apiVersion)).toEqual(
    Array.from({ length: 4 }, () => 'apps.example.net/v1'),
  );

  const [deployment] = kind.children;
  await cluster.delete(subject.childPlace(deployment!, 'web'));
  await isServed(subject, 'web');
});

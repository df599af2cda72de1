import { expect, test } from 'vitest';
import { loadKinds } from '../../src/cli/config.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import { GIVE_UP_ANNOTATION, ROTATE_ANNOTATION } from '../../src/contract/names.js';
import { rulesFor } from '../../src/install/rules.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { Operator } from '../../src/testing/operator.js';
import type { KillPoint, Wire } from '../../src/testing/wire.js';
import { loadKind } from '../support/bundle.js';
import {
  accountKubeconfig,
  deployments,
  eventually,
  grant,
  inBatches,
  installCrd,
  jobs,
  namespaceType,
  pods,
  putStatus,
  secrets,
  services,
} from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { namesOf, Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const ingresses = resourceType({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' });
const claims = resourceType({ apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
const image = 'example.com/app:1';

const gone = async (place: Place): Promise<void> =>
  eventually(async () => {
    expect(await cluster.find(place)).toBeUndefined();
  });

/** Checks that nothing is written for a custom resource that is reconciled. */
async function isSteady(subject: Subject, name: string, user: string): Promise<void> {
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await subject.touch(name, String(Date.now()));
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
}

test('a preview expires without an event, and its namespace goes; prolonged, it comes back', async () => {
  const user = 'operator-81';
  const { kind, config } = await loadKind('examples/preview/reconstruct.config.mjs');
  const previews = await Subject.make(cluster, kind, 'previews');
  await using controller = await startController({ cluster, user, kinds: [kind], config });
  const app: Place = { type: deployments, namespace: 'preview-pr-1', name: 'app' };
  const made = await previews.create('pr-1', { image });
  await previews.ready('pr-1');
  await cluster.get(app);

  const age = Date.now() - Date.parse(String(made.metadata.creationTimestamp));
  await previews.edit('pr-1', { image, ttlSeconds: Math.ceil(age / 1_000) + 2 });
  await previews.ready('pr-1');
  await previews.condition('pr-1', { type: 'Ready', status: 'True', reason: 'Expired' });
  await gone({ type: namespaceType, name: 'preview-pr-1' });
  await isSteady(previews, 'pr-1', user);

  await previews.edit('pr-1', { image, ttlSeconds: 3_600 });
  await previews.condition('pr-1', { type: 'Ready', status: 'True', reason: 'Available' });
  await cluster.get(app);
  await isSteady(previews, 'pr-1', user);
  await previews.delete('pr-1');
  await gone({ type: namespaceType, name: 'preview-pr-1' });
  expect(await controller.stop()).toBe(0);
});

test('the objects of a web application are in the namespace of its choice, move, and go with it', async () => {
  const { kind, config } = await loadKind('examples/web-app/reconstruct.config.mjs');
  const apps = await Subject.make(cluster, kind, 'apps');
  const [first, second] = [await cluster.makeNamespace('shared'), await cluster.makeNamespace('moved')];
  await using controller = await startController({ cluster, user: 'operator-82', kinds: [kind], config });
  const found = async (namespace: string): Promise<string[]> => {
    const lists = [deployments, services, ingresses].map((type) => cluster.list(type, namespace));
    return (await Promise.all(lists)).flat().map(({ metadata }) => metadata.name);
  };
  const elsewhere: unknown = expect.stringMatching(`^${apps.namespace}-shop-`);
  const status = async (): Promise<unknown> => (await apps.get('shop')).status;

  await apps.create('shop', { image, namespace: first, ingress: { enabled: true } });
  await apps.ready('shop');
  expect(await found(first)).toEqual([elsewhere, elsewhere, elsewhere]);
  expect(await found(apps.namespace)).toEqual([]);
  const [name = ''] = await found(first);
  const loadBalancer = { ingress: [{ hostname: 'lb.example.com' }] };
  await putStatus(cluster, { type: ingresses, namespace: first, name }, { loadBalancer });
  await eventually(async () => {
    expect(await status()).toMatchObject({ availableReplicas: 1, url: 'lb.example.com' });
  });

  await apps.edit('shop', { image, namespace: second });
  await eventually(async () => {
    expect(await found(first)).toEqual([]);
  });
  await apps.ready('shop');
  expect(await found(second)).toEqual([elsewhere, elsewhere]);
  expect(await status()).not.toHaveProperty('url');
  await isSteady(apps, 'shop', 'operator-82');
  await apps.delete('shop');
  await eventually(async () => {
    expect(await found(second)).toEqual([]);
  });
  expect(await controller.stop()).toBe(0);
});

/** Returns the values of a Secret as text. */
async function textsIn(place: Place): Promise<Readonly<Record<string, string>>> {
  const { data } = await cluster.get<{ data: Readonly<Record<string, string>> }>(place);
  const decoded = Object.entries(data).map(([key, text]) => [key, atob(text)]);
  return Object.fromEntries(decoded) as Readonly<Record<string, string>>;
}

/** What the published types leave out. */
const wireOf = (operator: Operator): Wire => (operator as unknown as { readonly wire: Wire }).wire;

const postgres = await loadKind('examples/postgres-cluster/reconstruct.config.mjs');

/** Returns the roles of the Pods of instances, by their names. */
async function rolesIn(namespace: string): Promise<Readonly<Record<string, unknown>>> {
  const instances = (await cluster.list(pods, namespace)).filter(({ metadata }) => metadata.labels?.role);
  return Object.fromEntries(instances.map(({ metadata }) => [metadata.name, metadata.labels?.role]));
}

async function areRoles(namespace: string, roles: Readonly<Record<string, string>>): Promise<void> {
  await eventually(async () => {
    expect(await rolesIn(namespace)).toEqual(roles);
  });
}

/** Records the Jobs that a user creates from now on, in order. */
async function createdJobs(user: string, namespace: string): Promise<() => Promise<unknown[]>> {
  const requests = await requestsFromNowOn(cluster, user, namespace);
  return async () =>
    (await requests())
      .filter(({ objectRef, code }) => objectRef?.resource === 'jobs' && code === 201)
      .map(({ objectRef }) => objectRef?.name);
}

test('a cluster of PostgreSQL joins its instances, fails over, replaces lost ones, and shrinks around its primary', async () => {
  const { kind, config } = postgres;
  const user = 'operator-83';
  const clusters = await Subject.make(cluster, kind, 'postgres');
  const { namespace } = clusters;
  await using controller = await startController({
    ...{ cluster, user, kinds: [kind], config, namespaces: [namespace] },
  });
  const created = await createdJobs(user, namespace);
  const status = async (): Promise<Readonly<Record<string, unknown>>> => (await clusters.get('pg')).status!;
  const isPrimary = async (name: string): Promise<void> =>
    eventually(async () => {
      expect((await status()).currentPrimary).toBe(name);
    });

  await clusters.create('pg', { instances: 3, failoverDelay: 3 });
  await clusters.ready('pg');
  await areRoles(namespace, { 'pg-1': 'primary', 'pg-2': 'replica', 'pg-3': 'replica' });
  await eventually(async () => {
    expect(await cluster.list(jobs, namespace)).toEqual([]);
  });
  expect(await created()).toEqual(['pg-1-init', 'pg-2-join', 'pg-3-join']);
  const { password, uri, pgpass } = await textsIn(clusters.childPlace(secrets, 'pg-cluster-generated'));
  expect(uri).toBe(`postgresql://app:${password}@pg-rw:5432/app`);
  expect(pgpass).toBe(`pg-rw:5432:app:app:${password}`);
  await isSteady(clusters, 'pg', user);

  const failing = Date.now();
  await putStatus(cluster, clusters.childPlace(pods, 'pg-1'), {
    conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }],
  });
  await isPrimary('pg-2');
  expect(Date.now() - failing).toBeGreaterThanOrEqual(3_000);
  await areRoles(namespace, { 'pg-1': 'replica', 'pg-2': 'primary', 'pg-3': 'replica' });
  await cluster.delete(clusters.childPlace(pods, 'pg-1'));
  await clusters.ready('pg');

  // What the status forgets is read from the Pods.
  await putStatus(cluster, clusters.place('pg'), { currentPrimary: null, latestGeneratedNode: null });
  await clusters.touch('pg', 'forgotten');
  await eventually(async () => {
    expect(await status()).toMatchObject({ currentPrimary: 'pg-2', latestGeneratedNode: 3 });
  });
  await cluster.delete(clusters.childPlace(claims, 'pg-3'));
  await areRoles(namespace, { 'pg-1': 'replica', 'pg-2': 'primary', 'pg-4': 'replica' });
  await clusters.ready('pg');

  await clusters.edit('pg', { instances: 2, failoverDelay: 3, imageName: 'example.com/postgres:18' });
  await clusters.ready('pg');
  await areRoles(namespace, { 'pg-1': 'replica', 'pg-2': 'primary' });
  const images = (
    await cluster.list<AnyObject & { spec: { containers: { image: string }[] } }>(pods, namespace)
  )
    .filter(({ metadata }) => metadata.labels?.role)
    .map(({ spec }) => spec.containers[0]?.image);
  expect(images).toEqual(['example.com/postgres:18', 'example.com/postgres:18']);
  await clusters.edit('pg', { instances: 1 });
  await areRoles(namespace, { 'pg-2': 'primary' });
  await clusters.ready('pg');
  expect(await created()).toEqual(['pg-1-init', 'pg-2-join', 'pg-3-join', 'pg-4-join']);
  expect(namesOf(await cluster.list(claims, namespace))).toEqual(['pg-2']);
  await isSteady(clusters, 'pg', user);
  expect(await controller.stop()).toBe(0);
});

test(
  'its data is initialized once, whatever write the operator is killed at',
  { timeout: 300_000 },
  async () => {
    const { kind } = postgres;
    const user = 'operator-101';
    await Subject.make(cluster, kind, 'killed');
    await grant(cluster, { user, rules: rulesFor([kind]) });
    const kubeconfig = await accountKubeconfig(cluster, user);

    /** Makes one whose operator is killed, unless it is done before. Returns how many writes the first operator sent. */
    const live = async (point?: KillPoint): Promise<number> => {
      const clusters = new Subject(cluster, kind, await cluster.makeNamespace('killed'));
      const { namespace } = clusters;
      const created = await createdJobs(user, namespace);
      const props = { kubeconfig, kinds: [kind], namespaces: [namespace] };
      using first = await Operator.start(props);
      const wire = wireOf(first);
      wire.killAt(point);
      await clusters.create('pg', { instances: 2 });
      await eventually(async () => {
        if (wire.diedAt !== undefined) return;
        const { status } = await clusters.get('pg');
        expect(status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'True' });
      });
      using second = await Operator.start(props);
      await clusters.ready('pg');
      await areRoles(namespace, { 'pg-1': 'primary', 'pg-2': 'replica' });
      await second.quiet(1_000);
      expect(await created(), wire.diedAt).toEqual(['pg-1-init', 'pg-2-join']);
      // The sandbox binds 64 claims at a time.
      await clusters.delete('pg');
      return wire.writes.length;
    };

    const count = await live();
    expect(count).toBeGreaterThan(15);
    const points = Array.from({ length: count }, (_, index) => index + 1).flatMap((write) =>
      (['before', 'after'] as const).map((when): KillPoint => ({ write, when })),
    );
    await inBatches(points, live, 6);
  },
);

test('a cluster of RabbitMQ has a user, grows in nodes and in storage, shrinks in neither, and goes as a whole', async () => {
  const { kind, config } = await loadKind('examples/rabbitmq/reconstruct.config.mjs');
  const user = 'operator-110';
  const rabbits = await Subject.make(cluster, kind, 'rabbits');
  const { namespace } = rabbits;
  const storageClassName = `${namespace}-grows`;
  await cluster.create(
    resourceType({ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', namespaced: false }),
    {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: storageClassName } },
      ...{ provisioner: 'example.com/none', allowVolumeExpansion: true },
    },
  );
  for (let index = 0; index < 4; index++)
    await cluster.create(resourceType({ apiVersion: 'v1', kind: 'PersistentVolume', namespaced: false }), {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `${storageClassName}-${index}` } },
      spec: {
        ...{ storageClassName, accessModes: ['ReadWriteOnce'], capacity: { storage: '5Gi' } },
        hostPath: { path: '/never-mounted' },
      },
    });
  await using controller = await startController({
    ...{ cluster, user, kinds: [kind], config, namespaces: [namespace] },
    // Those that it gives to the Pods.
    rights: (installed) => [
      ...installed,
      { apiGroups: [''], resources: ['endpoints'], verbs: ['get'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
    ],
  });
  const created = await createdJobs(user, namespace);
  const isWhole = async (): Promise<void> => {
    await rabbits.ready('mq');
    for (const type of ['AllReplicasReady', 'ClusterAvailable'])
      await rabbits.condition('mq', { type, status: 'True' });
  };
  const sizes = async (): Promise<unknown> =>
    (await cluster.list<AnyObject & { spec: { resources: { requests: object } } }>(claims, namespace))
      .map(({ metadata, spec }) => [metadata.name, spec.resources.requests])
      .sort();
  const sized = (count: number, storage: string): unknown =>
    Array.from({ length: count }, (_, index) => [`persistence-mq-server-${index}`, { storage }]);
  const spec = (replicas: number, storageGi: number, rabbitmq = {}): object => ({
    ...{ replicas, rabbitmq, persistence: { storageClassName, storageGi } },
  });

  await rabbits.create('mq', spec(3, 1));
  await isWhole();
  expect(await sizes()).toEqual(sized(3, '1Gi'));
  expect((await rabbits.get('mq')).status).toMatchObject({
    binding: { name: 'mq-default-user' },
    defaultUser: { secretReference: { name: 'mq-default-user', namespace } },
  });
  const { cookie, username, password, ...texts } = await textsIn(
    rabbits.childPlace(secrets, 'mq-default-user'),
  );
  expect(cookie).toHaveLength(24);
  const host = `mq.${namespace}.svc`;
  expect(texts).toEqual({
    ...{ provider: 'rabbitmq', type: 'rabbitmq', host, port: '5672' },
    'default_user.conf': `default_user = ${username}\ndefault_pass = ${password}`,
    connection_string: `amqp://${username}:${password}@${host}:5672/`,
  });
  await isSteady(rabbits, 'mq', user);

  for (const less of [spec(2, 1), spec(3, 0)])
    await expect(rabbits.edit('mq', less)).rejects.toThrow(/scale down is unsupported|shrinking/);
  await rabbits.edit('mq', spec(4, 2, { additionalConfig: 'log.console.level = debug' }));
  await isWhole();
  expect(await sizes()).toEqual(sized(4, '2Gi'));
  const names = await created();
  expect(new Set(names).size).toBe(2);
  expect(names).toEqual([expect.stringMatching('^mq-rebalance-'), expect.stringMatching('^mq-rebalance-')]);
  await isSteady(rabbits, 'mq', user);

  await rabbits.delete('mq');
  await eventually(async () => {
    for (const type of [...kind.children, secrets])
      expect(await cluster.list(type, namespace, 'messaging.example.com/rabbitmqcluster')).toEqual([]);
  });
  expect(await controller.stop()).toBe(0);
});

test('a login waits for its database, has texts of its choice and another password, and is dropped before it goes', async () => {
  const config = 'examples/database-role/reconstruct.config.mjs';
  const kinds = (await loadKinds({ config, builtIn: [] })) as OwnedKind[];
  const user = 'operator-111';
  const [ofRoles, ofDatabases] = kinds as [OwnedKind, OwnedKind];
  const roles = await Subject.make(cluster, ofRoles, 'logins');
  const { namespace } = roles;
  await installCrd(cluster, ofDatabases);
  const databases = new Subject(cluster, ofDatabases, namespace);
  await using controller = await startController({ cluster, user, kinds, config, namespaces: [namespace] });
  const created = await createdJobs(user, namespace);
  const secret = roles.childPlace(secrets, 'api-role-generated');
  const spec = {
    database: 'shop',
    name: 'api',
    secretTemplate: { DSN: 'user={{.Role}} password={{.Password}}' },
  };
  const dsn = async (): Promise<string> => {
    const { password, ...texts } = await textsIn(secret);
    const { role } = (await roles.get('api')).status as { role?: string };
    expect(texts).toEqual({
      ...{ host: 'postgres.example.com', database: 'shop', role, DSN: `user=${role} password=${password}` },
      uri: `postgresql://${role}:${password}@postgres.example.com/shop`,
      jdbc: 'jdbc:postgresql://postgres.example.com/shop',
    });
    return texts.DSN!;
  };
  /** Waits until another Job is there, and returns its SQL. */
  const nextSql = async (): Promise<string> => {
    const name = String((await created()).at(-1));
    const { spec } = await cluster.get({ type: jobs, namespace, name });
    return JSON.stringify(spec);
  };

  await roles.create('api', spec);
  await roles.condition('api', { type: 'Ready', reason: 'Waiting' });
  expect(await created()).toEqual([]);
  await databases.create('shop', { dropOnDelete: true });
  await databases.ready('shop');
  await roles.ready('api');
  expect(await created()).toEqual([expect.stringMatching('^shop-'), expect.stringMatching('^api-')]);
  expect(await nextSql()).toMatch(/CREATE ROLE .*GRANT \\"shop-owner/);
  const before = await dsn();
  await isSteady(roles, 'api', user);

  await cluster.merge(roles.place('api'), { metadata: { annotations: { [ROTATE_ANNOTATION]: '2' } } });
  await eventually(async () => {
    expect(await dsn()).not.toBe(before);
    expect(await created()).toHaveLength(3);
  });
  await roles.ready('api');
  await roles.edit('api', { ...spec, privileges: 'READ' });
  await eventually(async () => {
    expect(await created()).toHaveLength(4);
  });
  expect(await nextSql()).toMatch(/GRANT \\"shop-reader/);
  await roles.ready('api');

  // The server can't be reached.
  const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });
  await cluster.create(quotas, {
    ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'no-pods', namespace } },
    spec: { hard: { pods: '0' } },
  });
  await roles.delete('api');
  await eventually(async () => {
    expect(await created()).toHaveLength(5);
  });
  const drop = String((await created()).at(-1));
  expect(await nextSql()).toMatch(/REASSIGN OWNED .*DROP ROLE IF EXISTS/);
  await roles.condition('api', { type: 'Ready', status: 'False', reason: 'Deleting' });
  const failed = ['FailureTarget', 'Failed'].map((type) => ({
    ...{ type, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
  }));
  await putStatus(cluster, { type: jobs, namespace, name: drop }, { failed: 1, conditions: failed });
  const stalled = await eventually(async () => {
    const { conditions } = (await roles.get('api')).status!;
    const condition = conditions?.find(({ type }) => type === 'Stalled');
    expect(condition).toMatchObject({ status: 'True' });
    return condition!;
  });
  expect(stalled.message).toContain(`${GIVE_UP_ANNOTATION}=true`);
  await cluster.delete({ type: quotas, namespace, name: 'no-pods' });
  await cluster.delete({ type: jobs, namespace, name: drop });
  await gone(roles.place('api'));
  expect(await created()).toHaveLength(6);
  await gone(secret);

  await databases.delete('shop');
  await gone(databases.place('shop'));
  expect(await created()).toHaveLength(7);
  await eventually(async () => {
    expect(await cluster.list(jobs, namespace)).toEqual([]);
  });
  expect(await controller.stop()).toBe(0);
});

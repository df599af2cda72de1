import { expect, test } from 'vitest';
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
  const { data } = await cluster.get<{ data: Readonly<Record<string, string>> }>(
    clusters.childPlace(secrets, 'pg-cluster-generated'),
  );
  const [password, uri, pgpass] = ['password', 'uri', 'pgpass'].map((key) => atob(data[key]!));
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

import { afterEach, beforeAll, expect, test } from 'vitest';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, deployments, events, eventually, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled } from '../support/requests.js';
import { buildsOfShop, Webs } from '../support/shops.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

/*
 * A user who may write all in one namespace, which an operator of several namespaces watches too, and who knows what there is in the
 * others, UIDs included.
 */
const cluster = openCluster();
const sleeping = await loadKind('examples/nap/reconstruct.config.mjs');
const grafting = await loadKind('test/support/kinds/graft.config.mjs');
const parting = await loadKind('test/support/kinds/parting.config.mjs');
const RECORD = 'reconstruct.kosmos.io/applied-hash';

let mallory: string;
let running: RunningController | undefined;

/** An operator of a kind in the namespace of a subject, and in that of the adversary. */
async function operate(user: string, { kind, config }: typeof sleeping, of: Subject): Promise<void> {
  const namespaces = [of.namespace, mallory];
  running = await startController({ cluster, user, kinds: [kind], config, namespaces });
}

const labels = { app: 'web' };
const deployment = (name: string, namespace: string, replicas: number): AnyObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace } },
  spec: {
    ...{ replicas, selector: { matchLabels: labels } },
    template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'example.com/web:1' }] } },
  },
});

const isGone = async (of: Subject, name: string): Promise<void> =>
  eventually(async () => {
    expect(await cluster.find(of.place(name))).toBeUndefined();
  });

const typeOf = ({ type }: OwnedKind): string => groupKind(type);

beforeAll(async () => {
  mallory = await cluster.makeNamespace('mallory');
});

afterEach(async () => {
  await running?.kill();
  running = undefined;
});

test('a record of fields that is forged in another namespace holds no custom resource', async () => {
  const naps = await Subject.make(cluster, sleeping.kind, 'naps-robbed');
  await operate('operator-108', sleeping, naps);
  await cluster.create(deployments, deployment('web', naps.namespace, 3));
  const { metadata } = await naps.create('night', { deployment: 'web' });
  await naps.ready('night');
  const uid = metadata.uid!;
  const bait = deployment('bait', mallory, 1);
  const record = `x ${uid} ${typeOf(sleeping.kind)} ${naps.namespace}/night former {".spec.replicas":["x"]}`;
  await cluster.apply(
    deployments,
    {
      ...bait,
      metadata: { ...bait.metadata, annotations: { [`applied-hash.reconstruct.kosmos.io/${uid}`]: record } },
    },
    `nap-controller:${uid}`,
  );
  await naps.touch('night');
  await naps.delete('night');
  await isGone(naps, 'night');
});

test('the only key of a map that is taken is given back', async () => {
  const grafts = await Subject.make(cluster, grafting.kind, 'grafts');
  await operate('operator-114', grafting, grafts);
  const { apiVersion, kind } = configMaps;
  const valueOf = async (): Promise<unknown> =>
    (await cluster.get<{ readonly data?: unknown }>(grafts.childPlace(configMaps, 'only'))).data;
  const metadata = { name: 'only', namespace: grafts.namespace };
  await cluster.create(configMaps, { ...{ apiVersion, kind, metadata, data: { value: 'before' } } });
  await grafts.create('only', { name: 'only', value: 'now' });
  await grafts.ready('only');
  expect(await valueOf()).toEqual({ value: 'now' });
  await grafts.delete('only');
  await isGone(grafts, 'only');
  expect(await valueOf()).toEqual({ value: 'before' });
  await cluster.merge(grafts.childPlace(configMaps, 'only'), { immutable: true });
  await grafts.create('only', { name: 'only', value: 'now' });
  const { message } = await grafts.stalled('only', 'ImmutableField');
  expect(message).not.toContain('delete the object');
});

test("one field of several that can't be given back stays, and the others go on", async () => {
  const grafts = await Subject.make(cluster, grafting.kind, 'grafts-parts');
  await operate('operator-114', grafting, grafts);
  const { apiVersion, kind } = configMaps;
  const metadata = { name: 'some', namespace: grafts.namespace };
  await cluster.create(configMaps, { apiVersion, kind, metadata, data: { value: 'a', second: 'b' } });
  await grafts.create('some', { name: 'some', value: 'x', second: 'y' });
  await grafts.ready('some');
  await cluster.merge(grafts.childPlace(configMaps, 'some'), { immutable: true });
  await grafts.edit('some', { name: 'some', value: 'x' });
  await eventually(async () => {
    expect((await grafts.events('some')).map(({ reason }) => reason)).toContain('NotGivenBack');
  });
  await grafts.ready('some');
  const { data } = await cluster.get<{ readonly data?: unknown }>(grafts.childPlace(configMaps, 'some'));
  expect(data).toEqual({ value: 'x', second: 'y' });
  await grafts.delete('some');
  await isGone(grafts, 'some');
});

test("what is planted in reach, and can't be given back, holds no custom resource", async () => {
  const grafts = await Subject.make(cluster, grafting.kind, 'grafts-robbed');
  await operate('operator-114', grafting, grafts);
  const { apiVersion, kind } = configMaps;
  await cluster.create(configMaps, {
    ...{ apiVersion, kind, metadata: { name: 'own', namespace: grafts.namespace }, data: { value: 'a' } },
  });
  const { metadata } = await grafts.create('own', { name: 'own', value: 'b' });
  await grafts.ready('own');
  const uid = metadata.uid!;
  const manager = `graft-controller:${uid}`;
  const plant = async (name: string, spec: object, former = ''): Promise<void> => {
    const record = `x ${uid} ${typeOf(grafting.kind)} ${grafts.namespace}/own${former}`;
    const annotations = { [`applied-hash.reconstruct.kosmos.io/${uid}`]: record };
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: mallory, annotations },
    };
    await cluster.apply(services, { ...service, spec }, manager);
  };
  const others = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'valued', namespace: mallory } };
  await cluster.create(services, { ...others, spec: { ports: [{ port: 80 }] } });
  await plant('valued', { sessionAffinity: 'None' }, ' former {".spec.sessionAffinity":["x"]}');
  // Without the ports, which this manager alone has set, it would be no Service.
  await plant('alone', { ports: [{ port: 80 }] });
  await eventually(async () => {
    const planted = await cluster.list(services, mallory);
    expect(JSON.stringify(planted.map(({ metadata }) => metadata))).not.toContain(uid);
  });
  await grafts.ready('own');
  await eventually(async () => {
    expect((await grafts.events('own')).map(({ reason }) => reason)).toContain('NotGivenBack');
  });
  await grafts.delete('own');
  await isGone(grafts, 'own');
});

test('what is planted in another namespace, with a record or an owner reference, holds no deletion', async () => {
  const partings = await Subject.make(cluster, parting.kind, 'partings-robbed');
  await operate('operator-105', parting, partings);
  const { apiVersion, kind } = parting.kind.type;
  const { metadata } = await partings.create('web', {});
  await partings.ready('web');
  const uid = metadata.uid!;
  const annotations = { [RECORD]: `x ${uid} ${typeOf(parting.kind)} ${partings.namespace}/web` };
  const ownerReferences = [{ apiVersion, kind, name: 'web', uid, controller: true }];
  const planted = (name: string, more: object): AnyObject => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { namespace: mallory, name, finalizers: ['example.com/never'], ...more },
  });
  await cluster.apply(configMaps, planted('recorded', { annotations }), `parting-controller:${uid}`);
  await cluster.apply(configMaps, planted('referring', { ownerReferences }), 'parting-controller');
  await partings.touch('web');
  await partings.delete('web');
  await isGone(partings, 'web');
  for (const name of ['recorded', 'referring'])
    await cluster.merge({ type: configMaps, namespace: mallory, name }, { metadata: { finalizers: null } });
});

test('a forged record sends no event to another namespace', async () => {
  const partings = await Subject.make(cluster, parting.kind, 'partings-told');
  await operate('operator-105', parting, partings);
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: {
      ...{ namespace: mallory, name: 'forged' },
      annotations: {
        [RECORD]: `x 00000000-0000-0000-0000-000000000000 ${typeOf(parting.kind)} ${partings.namespace}/made-up`,
      },
    },
  });
  const own = new Subject(cluster, parting.kind, mallory);
  await own.create('forged', {});
  await own.stalled('forged', 'OwnershipConflict');
  await eventually(async () => {
    expect((await own.events('forged')).length).toBeGreaterThan(0);
  });
  expect(await cluster.list(events, partings.namespace)).toEqual([]);
});

test('what is set of an object with many writers is given back, and nothing is set whose record would be lost', async () => {
  const naps = await Subject.make(cluster, sleeping.kind, 'naps-many');
  await operate('operator-108', sleeping, naps);
  const place = naps.childPlace(deployments, 'web');
  const live = async (): Promise<AnyObject & { readonly spec: { readonly replicas: number } }> =>
    cluster.get(place);
  const created = deployment('web', naps.namespace, 3);
  await cluster.create(deployments, created);
  for (let writer = 0; writer < 60; writer++) {
    const annotations = { [`example.com/writer-${writer}`]: 'yes' };
    const { apiVersion, kind, metadata } = created;
    const written = { apiVersion, kind, metadata: { ...metadata, annotations } };
    await cluster.apply(deployments, written, `writer-${writer}`);
  }
  const name = 'applied-hash.reconstruct.kosmos.io/0';
  const fill = async (text: string | null): Promise<unknown> =>
    cluster.merge(place, { metadata: { annotations: { [name]: text } } });
  await fill('x'.repeat(19_800));
  await naps.create('night', { deployment: 'web' });
  await naps.stalled('night', 'ContributionTooLarge');
  expect((await live()).spec.replicas).toBe(3);
  await fill(null);
  await naps.ready('night');
  expect((await live()).spec.replicas).toBe(0);
  await naps.delete('night');
  await isGone(naps, 'night');
  const after = await live();
  expect(JSON.stringify(after.metadata)).not.toMatch(/nap-controller|reconstruct\.kosmos/);
  expect(after.spec.replicas).toBe(3);
});

test('records of fields that are forged many times over cost few reads', async () => {
  const naps = new Subject(cluster, sleeping.kind, mallory);
  const others = await Subject.make(cluster, sleeping.kind, 'naps-flooded');
  await operate('operator-108', sleeping, others);
  await cluster.create(deployments, deployment('own', mallory, 1));
  await naps.create('own', { deployment: 'own' });
  await naps.ready('own');
  const annotations: Record<string, string> = {};
  for (let index = 0; index < 130; index++)
    annotations[`applied-hash.reconstruct.kosmos.io/${index}`] =
      `x ${index} ${typeOf(sleeping.kind)} ${mallory}/own`;
  for (let index = 0; index < 20; index++) {
    const bait = deployment(`flood-${index}`, mallory, 0);
    await cluster.create(deployments, { ...bait, metadata: { ...bait.metadata, annotations } });
  }
  await settled(cluster, 'operator-108');
  const requests = await requestsFromNowOn(cluster, 'operator-108');
  await naps.touch('own');
  await naps.delete('own');
  await isGone(naps, 'own');
  const reads = (await requests()).filter(({ verb }) => verb === 'get');
  expect(reads.length).toBeLessThan(100);
});

test('one that is never ready takes no place in a rollout from those that were', async () => {
  const [one, two] = await buildsOfShop();
  const shops = await Subject.make(cluster, one.kind, 'shops-starved');
  const names = Array.from({ length: 4 }, (_, index) => `shop-${index}`);
  const user = 'operator-113';
  const start = async ({ config }: typeof one, ...args: string[]): Promise<RunningController> =>
    startController({
      ...{ cluster, user, kinds: [one.kind], config, namespaces: [shops.namespace, mallory] },
      ...{ electionNamespace: user, args },
    });
  running = await start(one, '--on-upgrade', 'apply');
  for (const name of names) await shops.create(name, { size: 1 });
  for (const name of names) await shops.ready(name);
  expect(await running.stop()).toBe(0);
  await using webs = await Webs.watch(cluster, shops.namespace, names.length);
  await new Subject(cluster, one.kind, mallory).create('never', { size: 1, fragile: true });
  running = await start(two, '--on-upgrade', '1');
  await eventually(
    () => {
      expect(webs.ofNext()).toEqual(names);
    },
    { deadlineMilliseconds: 90_000 },
  );
});

test('records that name custom resources which none can have stop nothing', async () => {
  const partings = await Subject.make(cluster, parting.kind, 'partings-odd');
  await operate('operator-105', parting, partings);
  const odd = ['..', 'a/b', '%2e%2e', 'x'.repeat(300), 'a\nb', 'a\u0000b', 'a?b', '', '__proto__'];
  for (const [index, name] of odd.entries()) {
    const uid = `odd-${index}`;
    const annotations = { [RECORD]: `x ${uid} ${typeOf(parting.kind)} ${mallory}/${name}` };
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: mallory, name: uid, annotations },
    };
    await cluster.apply(configMaps, object, `parting-controller:${uid}`);
  }
  await eventually(async () => {
    const left = (await cluster.list(configMaps, mallory)).map(({ metadata }) => metadata.name);
    // Where the API server refuses the name, it isn't known that there is no owner.
    expect(left.filter((name) => name.startsWith('odd'))).toEqual(['odd-0', 'odd-1', 'odd-2']);
  });
  await partings.create('web', {});
  await partings.ready('web');
  await partings.delete('web');
  await isGone(partings, 'web');
});

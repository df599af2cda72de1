import { afterEach, beforeAll, expect, test } from 'vitest';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { GIVE_UP_ANNOTATION, PAUSED_ANNOTATION } from '../../src/contract/names.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, jobs } from '../support/cluster.js';
import { Jobs } from '../support/jobs.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Scenario } from '../support/stages.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const parting = await loadKind('test/support/kinds/parting.config.mjs');
const former = await loadKind('test/support/kinds/parting-former.config.mjs');
const { kind } = parting;
const FINALIZER = 'reconstruct.kosmos.io/parting';
const USER = 'operator-84';
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

let partings: Subject;
let cleanups: Jobs;
const running: RunningController[] = [];

async function operate({ kind, config } = parting): Promise<RunningController> {
  const props = { cluster, user: USER, kinds: [kind], config, namespaces: [partings.namespace] };
  const controller = await startController(props);
  running.push(controller);
  return controller;
}

const child = async (name: string, type = configMaps): Promise<AnyObject | undefined> =>
  cluster.find(partings.childPlace(type, name));
const isGone = async (name: string, of = partings): Promise<void> =>
  eventually(async () => {
    expect(await cluster.find(of.place(name))).toBeUndefined();
  });
const finalizers = async (name: string): Promise<unknown> => (await partings.get(name)).metadata.finalizers;
const deleting = async (name: string, wanted: object): Promise<string> =>
  (await partings.condition(name, { type: 'Ready', status: 'False', ...wanted })).message;
const annotate = async (
  name: string,
  annotations: Readonly<Record<string, string | null>>,
): Promise<unknown> => cluster.merge(partings.place(name), { metadata: { annotations } });
/** Nothing of it is left. */
const isClean = async (name: string, of = partings): Promise<void> => {
  await isGone(name, of);
  await eventually(async () => {
    for (const type of [configMaps, jobs])
      for (const one of [name, `${name}-goodbye`])
        expect(await cluster.find(of.childPlace(type, one)), `${type.kind} ${one}`).toBeUndefined();
  });
};

beforeAll(async () => {
  partings = await Subject.make(cluster, kind, 'partings');
  cleanups = new Jobs(cluster, partings.namespace);
});

afterEach(async () => {
  for (const controller of running.splice(0)) await controller.kill();
});

test('the finalizer comes before the first child; what is rendered on deletion is done before it goes', async () => {
  await operate();
  const requests = await requestsFromNowOn(cluster, USER);
  await partings.create('web', { last: 'job' });
  await partings.ready('web');
  const order = writes(await requests()).map(({ objectRef }) => objectRef!.resource!);
  expect(order.slice(0, 2)).toEqual(['partings', 'configmaps']);
  expect(await finalizers('web')).toEqual([FINALIZER]);

  await settled(cluster, USER);
  const later = await requestsFromNowOn(cluster, USER);
  await partings.touch('web');
  await settled(cluster, USER);
  expect(writes(await later()).map(summary)).toEqual([]);

  const before = (await child('web'))?.metadata;
  await partings.delete('web');
  expect(await deleting('web', { reason: 'Deleting' })).toMatch(/Deletion waits: .*web-goodbye has yet to/);
  const cleanup = await child('web-goodbye', jobs);
  expect(controllerOf(cleanup!)).toBeUndefined();
  expect((await child('web'))?.metadata.uid).toBe(before?.uid);
  await cleanups.finish('web-goodbye');
  await isClean('web');
});

test('deletion in the foreground collects neither the cleanup nor what it needs, once that is made again', async () => {
  await operate();
  await partings.create('front', { last: 'job' });
  await partings.ready('front');
  await partings.delete('front', { propagationPolicy: 'Foreground' });
  await eventually(async () => {
    expect(await child('front-goodbye', jobs)).toBeDefined();
    const config = await child('front');
    expect(config && controllerOf(config)).toBeUndefined();
    expect(config?.metadata.deletionTimestamp).toBeUndefined();
    expect(config).toBeDefined();
  });
  await settled(cluster, USER);
  const { uid } = (await child('front-goodbye', jobs))!.metadata;
  await cleanups.finish('front-goodbye');
  expect(uid).toBeDefined();
  await isClean('front');
});

test('a cleanup that fails stalls, and can be given up; a pause keeps the custom resource, but not from that', async () => {
  await operate();
  for (const name of ['failed', 'paused']) {
    await partings.create(name, { last: 'job' });
    await partings.ready(name);
    await partings.delete(name);
    await eventually(async () => {
      expect(await child(`${name}-goodbye`, jobs)).toBeDefined();
    });
  }
  await annotate('paused', { [PAUSED_ANNOTATION]: 'true' });
  await cleanups.finish('failed-goodbye', { as: 'Failed' });
  await eventually(async () => {
    const stalled = (await partings.get('failed')).status?.conditions?.find(({ type }) => type === 'Stalled');
    expect(stalled).toMatchObject({ status: 'True' });
    expect(stalled?.message).toContain(`${GIVE_UP_ANNOTATION}=true`);
  });
  await settled(cluster, USER);
  expect((await partings.events('failed')).filter(({ type }) => type === 'Warning')).toHaveLength(1);

  await cleanups.finish('paused-goodbye');
  await eventually(async () => {
    const { conditions } = (await partings.get('paused')).status!;
    expect(conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'Paused' });
  });
  await settled(cluster, USER);
  expect(await finalizers('paused')).toContain(FINALIZER);
  for (const name of ['failed', 'paused']) {
    await annotate(name, { [GIVE_UP_ANNOTATION]: 'true' });
    await isClean(name);
  }
});

test('a kind that stops asking takes its finalizers off, and nothing stays of what was left to do', async () => {
  const first = await operate();
  for (const name of ['stays', 'goes', 'again']) {
    await partings.create(name, { last: 'job' });
    await partings.ready(name);
  }
  await partings.delete('goes');
  await eventually(async () => {
    expect(await child('goes-goodbye', jobs)).toBeDefined();
  });
  await first.kill();
  await partings.delete('again');
  await operate(former);
  await isClean('goes');
  await isClean('again');
  await eventually(async () => {
    expect(await finalizers('stays')).toBeUndefined();
  });
  await partings.create('again', {});
  await partings.ready('again');
  expect(await finalizers('again')).toBeUndefined();
  for (const name of ['again', 'stays']) {
    await partings.delete(name);
    await isClean(name);
  }
});

test('what the garbage collector is to release stays, and the work begins behind that', async () => {
  await operate();
  const names = Array.from({ length: 8 }, (_, index) => `orphaning-${index}`);
  for (const name of names) await partings.create(name, { last: 'words' });
  for (const name of names) await partings.ready(name);
  const before = await Promise.all(names.map((name) => child(name)));
  const requests = await requestsFromNowOn(cluster, USER);
  await Promise.all(names.map((name) => partings.delete(name, { propagationPolicy: 'Orphan' })));
  for (const name of names) await isGone(name);
  for (const config of before) {
    const { name, uid } = config!.metadata;
    expect((await child(name))?.metadata, name).toMatchObject({ uid });
  }
  // It is collected once its custom resource has gone.
  await eventually(async () => {
    expect(await child(`${names[0]}-goodbye`)).toBeUndefined();
  });
  const said = writes(await requests()).filter(({ objectRef }) => objectRef!.name === `${names[0]}-goodbye`);
  expect(said.map(({ verb }) => verb)).toEqual(['patch', 'delete']);
});

test('a namesake that follows at once has all of its own', async () => {
  await operate();
  await partings.create('twice', { last: 'words' });
  await partings.ready('twice');
  await partings.delete('twice');
  await isGone('twice');
  await partings.create('twice', { last: 'words' });
  await partings.ready('twice');
  await settled(cluster, USER);
  expect(await child('twice-goodbye')).toBeUndefined();
  await partings.delete('twice');
  await isClean('twice');
});

test('in a namespace that is being deleted nothing can be made, and nothing is waited for', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'parting-namespace', kind: parting });
  const { subject, namespace } = scenario;
  // Rights in all namespaces, for those in one of them go with it.
  await scenario.startController({ clusterWide: true, args: ['--watch-namespace', namespace] });
  await scenario.createReady({ last: 'job' }, 'web');
  await cluster.delete({ type: namespaces, name: namespace });
  await isGone('web', subject);
  await eventually(async () => {
    expect(await cluster.find({ type: namespaces, name: namespace })).toBeUndefined();
  });
});

test('killed at any write of a deletion, it ends with the next start, and nothing is left', async () => {
  await using scenario = await Scenario.start({ purpose: 'parting-kills', kind: parting });
  const { subject, proxy } = scenario;
  let write = 0;
  for (let isKilled = true; isKilled; write++) {
    const name = `web${write}`;
    await scenario.createReady({ last: 'words' }, name);
    await scenario.settled();
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
    await subject.delete(name);
    await eventually(async () => {
      expect(killed !== undefined || (await cluster.find(subject.place(name))) === undefined).toBe(true);
    });
    await killed;
    nth.remove();
    isKilled = killed !== undefined;
    if (isKilled) await scenario.startController();
    await isClean(name, subject);
  }
  expect(write).toBeGreaterThan(3);
});

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { replicasManagers } from './support/autoscaler.js';
import { Cluster, deployments } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { changesOf, Recording } from './support/recording.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { Subject } from './support/subject.js';

const user = 'operator-26';
const config = join(repoFolder(), 'test/full/kinds/stage.config.mjs');
const { stage } = (await import(pathToFileURL(config).href)) as {
  readonly stage: OwnedKind;
};
const cluster = new Cluster(openSandbox(inject('sandbox')));
let stages: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({ cluster, user, kinds: [stage], config, namespaces: [stages.namespace] });

beforeAll(async () => {
  await installCrd(cluster, stage);
  stages = new Subject(cluster, stage, await cluster.makeNamespace('hand-over'));
  controller = await start();
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

interface Deployment extends AnyObject {
  readonly spec: { readonly replicas: number };
}

async function deployment(name: string): Promise<Deployment> {
  return cluster.get<Deployment>(stages.childPlace(deployments, name));
}

const owners = async (name: string): Promise<string[]> => replicasManagers(await deployment(name));

test('a field is handed over without ever having another value, and taken back', async () => {
  await stages.create('web', { size: 4 });
  await stages.ready('web');
  await using recording = await Recording.start<Deployment>(cluster, stages.childPlace(deployments, 'web'));
  const requests = await requestsFromNowOn(cluster, user);

  await stages.edit('web', { size: 1, yielded: true });
  await eventually(async () => {
    expect(await owners('web')).toEqual(['stage-replicas']);
  });
  await stages.ready('web');
  await cluster.merge(stages.childPlace(deployments, 'web'), { spec: { replicas: 6 } }, 'autoscaler');
  await stages.edit('web', { size: 6, yielded: true });
  await eventually(async () => {
    expect((await stages.get('web')).status?.observedGeneration).toBe(3);
  });
  expect(await owners('web')).toEqual(['autoscaler']);
  const seen = (await recording.states()).map(({ spec }) => spec.replicas);
  expect(seen.length).toBeGreaterThanOrEqual(3);
  expect(changesOf(seen)).toEqual([4, 6]);

  await stages.edit('web', { size: 5 });
  await eventually(async () => {
    expect((await deployment('web')).spec.replicas).toBe(5);
    expect(await owners('web')).toEqual(['stage-controller']);
  });
  // The hand-over, the apply that lets go, and the one that takes back.
  await eventually(async () => {
    const applies = writes(await requests()).filter(({ objectRef }) => objectRef?.resource === 'deployments');
    expect(applies.map(summary)).toHaveLength(3);
  });
});

test('handed over, taken back and handed over again, it keeps its value, and a restart writes nothing', async () => {
  const place = stages.childPlace(deployments, 'swings');
  const yieldedTo = async (yielded: boolean, ...managers: readonly string[]): Promise<void> => {
    await stages.edit('swings', { size: 4, ...(yielded && { yielded }) });
    await stages.ready('swings');
    expect((await owners('swings')).sort()).toEqual(managers);
  };
  await stages.create('swings', { size: 4 });
  await stages.ready('swings');
  await using recording = await Recording.start<Deployment>(cluster, place);

  await yieldedTo(true, 'stage-replicas');
  await yieldedTo(false, 'stage-controller');
  await yieldedTo(true, 'stage-replicas');
  expect(await controller.stop()).toBe(0);
  const requests = await requestsFromNowOn(cluster, user);
  controller = await start();
  await controller.logged(({ msg, name }) => msg === 'Reconciled' && name === 'swings');

  const about = writes(await requests()).filter(({ objectRef }) => objectRef?.name === 'swings');
  expect(about.map(summary)).toEqual([]);
  expect(changesOf((await recording.states()).map(({ spec }) => spec.replicas))).toEqual([4]);
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { choosePorts } from '../../sandbox/ports.js';
import { loadKinds } from '../../src/cli/config.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { definitionType, resourceType } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, installCrd } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-14';
const spec = { schedule: '0 0 29 2 *', image: 'example.com/task:1', script: 'true\n' };
const cronJobs = resourceType({ apiVersion: 'batch/v1', kind: 'CronJob' });
const patience = { deadlineMilliseconds: 90_000 };
const cluster = openCluster();
let folder: string;
let config: string;
let kind: OwnedKind;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crd-lifecycle-'));
  config = join(folder, 'reconstruct.config.mjs');
  await writeFile(config, await ownConfig());
  [kind] = (await loadKinds({ config, builtIn: [], kinds: ['lifecycletask'] })) as [OwnedKind];
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** The example's kind under a name that no other test installs, with a former child that isn't installed. */
async function ownConfig(): Promise<string> {
  const { crd } = (await loadKind('examples/scheduled-task/reconstruct.config.mjs')).kind;
  const names = { kind: 'LifecycleTask', listKind: 'LifecycleTaskList', plural: 'lifecycletasks' };
  const own = {
    ...crd,
    metadata: { name: 'lifecycletasks.lifecycle.example.com' },
    spec: { ...crd.spec, group: 'lifecycle.example.com', names: { ...names, singular: 'lifecycletask' } },
  };
  const at = (path: string): string => JSON.stringify(pathToFileURL(join(repoFolder(), path)).href);
  return `
import { defineKind } from ${at('lib/index.js')};
import { ScheduledTask } from ${at('examples/scheduled-task/scheduled-task.mjs')};
const task = defineKind({
  crd: ${JSON.stringify(own)},
  construct: ScheduledTask,
  children: [{ apiVersion: 'batch/v1', kind: 'CronJob' }, { apiVersion: 'v1', kind: 'ConfigMap' }],
  formerChildren: [{ apiVersion: 'former.example.com/v1', kind: 'Former' }],
});
export default { kinds: [task] };
`;
}

/** Removes the CRD, and with it the custom resources; resolves when the API server serves them no more. */
async function removeCrd(): Promise<void> {
  await cluster.delete({ type: definitionType, namespace: '', name: kind.crd.metadata.name });
  const path = `/apis/${kind.type.apiVersion}/${kind.type.plural}`;
  // What isn't served is answered in plain text.
  await eventually(async () => {
    expect((await cluster.send('GET', path)).body.message).toBe('404 page not found\n');
  });
}

type Properties = Readonly<Record<string, object>>;

/** Gives the CRD another schema of the spec; objects are read by it from then on. */
async function changeSchema(change: (properties: Properties) => Properties): Promise<void> {
  const crd = structuredClone(kind.crd) as unknown as {
    spec: {
      versions: [{ schema: { openAPIV3Schema: { properties: { spec: { properties: Properties } } } } }];
    };
  };
  const { spec } = crd.spec.versions[0].schema.openAPIV3Schema.properties;
  spec.properties = change(spec.properties);
  await cluster.apply(definitionType, crd as unknown as AnyObject, 'test');
}

test('a kind that is installed late, changed in its schema, removed and installed again is followed all along', async () => {
  const namespace = await cluster.makeNamespace('crd-lifecycle');
  const tasks = new Subject(cluster, kind, namespace);
  const bystander = { type: configMaps, namespace, name: 'bystander' };
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'bystander' } },
  });
  const health = `127.0.0.1:${(await choosePorts()).apiServer}`;
  const readyz = async (): Promise<string> => (await fetch(`http://${health}/readyz?verbose`)).text();
  await using controller = await startController({
    ...{ cluster, user, kinds: [kind], config, awaitStart: false },
    args: ['--health-bind-address', health],
  });

  // The kind itself is required; a former child's kind needn't exist.
  await eventually(async () => {
    expect(await readyz()).toContain(
      `[-]caches failed: lifecycletasks.lifecycle.example.com: Watch lifecycletasks: 404 page not found\n`,
    );
  });

  await installCrd(cluster, kind);
  await controller.logged(({ msg }) => msg === 'controller started');
  expect((await fetch(`http://${health}/readyz?verbose`)).status).toBe(200);
  await tasks.create('first', spec);
  await tasks.ready('first');
  await tasks.asRendered('first');

  // Without an edit of the custom resource: its version stays as it is.
  const { metadata } = await tasks.get('first');
  await changeSchema((all) => ({ ...all, suspend: { type: 'boolean', default: true } }));
  await eventually(async () => {
    expect(await cluster.get(tasks.childPlace(cronJobs, 'first'))).toMatchObject({ spec: { suspend: true } });
  }, patience);
  await changeSchema(({ script, ...rest }) => rest);
  await eventually(async () => {
    expect(await cluster.find(tasks.childPlace(configMaps, 'first'))).toBeUndefined();
    expect(await cluster.get(tasks.childPlace(cronJobs, 'first'))).toMatchObject({
      spec: { suspend: false },
    });
  }, patience);
  expect((await tasks.get('first')).metadata.generation).toBe(metadata.generation);

  const requests = await requestsFromNowOn(cluster, user);
  await removeCrd();
  await controller.logged(({ msg }) => msg === 'the kind has been removed, and its objects with it');
  expect((await fetch(`http://${health}/readyz?verbose`)).status).toBe(200);

  await installCrd(cluster, kind);
  await tasks.create('second', spec);
  await tasks.ready('second');
  await tasks.asRendered('second');

  expect(await cluster.find(bystander)).toBeDefined();
  expect((await requests()).filter(({ verb }) => verb === 'delete')).toEqual([]);
  expect(controller.strayOutput).toEqual([]);
  expect(await controller.stop()).toBe(0);
});

import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { choosePorts } from '../../sandbox/ports.js';
import { alertGroups } from '../../src/install/chart.js';
import { bundleConfig, configMap, loadBundle } from './support/bundle.js';
import { Cluster, configMaps } from './support/cluster.js';
import { askedFor } from './support/collected.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { Subject } from './support/subject.js';

const user = 'operator-75';
const bundle = await loadBundle();
const cluster = new Cluster(openSandbox(inject('sandbox')));
let bundles: Subject;
let controller: RunningController;
let address: string;

beforeAll(async () => {
  await installCrd(cluster, bundle);
  bundles = new Subject(cluster, bundle, await cluster.makeNamespace('signals'));
  address = `127.0.0.1:${(await choosePorts()).apiServer}`;
  controller = await startController({
    ...{ cluster, user, kinds: [bundle], config: bundleConfig, namespaces: [bundles.namespace] },
    args: ['--metrics-bind-address', address],
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** Waits until the operator tells what these alerts look at as wanted. */
async function seen(wanted: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const alerts = alertGroups('')
    .flatMap(({ rules }) => rules)
    .filter(({ alert }) => Object.hasOwn(wanted, alert));
  await eventually(async () => {
    const scraped = await (await fetch(`http://${address}/metrics`)).text();
    const told = alerts.map(({ alert, expr }) => [alert, askedFor(expr, scraped)] as const);
    expect(Object.fromEntries(told)).toEqual(wanted);
  });
}

/** Somebody else changes a field of ours once, and it is put right. */
async function fight(name: string, round: number): Promise<void> {
  const place = bundles.childPlace(configMaps, name);
  await cluster.merge(place, { data: { level: `theirs-${round}` } }, 'rival-controller');
  await eventually(async () => {
    expect((await cluster.get(place)).data).toEqual({ level: 'ours' });
  });
}

test('a contested field, a foreign object and drift are seen by the alerts for them, and by no others', async () => {
  await bundles.create('fought', { objects: [configMap('fought', { level: 'ours' })] });
  await bundles.ready('fought');
  const quiet = { ReconstructFieldContested: [], ReconstructOwnershipConflict: [], ReconstructDrift: [] };
  await seen(quiet);

  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { by: 'somebody' } },
    metadata: { name: 'foreign', namespace: bundles.namespace },
  });
  for (const name of ['refused', 'refused-too'])
    await bundles.create(name, { objects: [configMap('foreign', { by: name })] });
  for (const name of ['refused', 'refused-too'])
    await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
  // Last, since a fight counts as over ten seconds after the last correction. The first five are free.
  for (let round = 0; round < 5; round++) await fight('fought', round);

  await seen({
    ReconstructFieldContested: [1],
    ReconstructOwnershipConflict: [2],
    // The fifth correction is told as a fight.
    ReconstructDrift: [4],
    ReconstructResourceNotReady: [],
    ReconstructResourceUnseen: [],
  });

  // What is mended is seen no longer.
  await cluster.delete(bundles.childPlace(configMaps, 'foreign'));
  await seen({ ReconstructOwnershipConflict: [1] });
});

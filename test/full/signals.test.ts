import { beforeAll, expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import { alertGroups } from '../../src/install/chart.js';
import { configMap, loadBundle } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { askedFor } from '../support/collected.js';
import { startController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-75';
const { kind: bundle, config } = await loadBundle();
const cluster = openCluster();
let bundles: Subject;
let address: string;

beforeAll(async () => {
  bundles = await Subject.make(cluster, bundle, 'signals');
  address = `127.0.0.1:${(await choosePorts()).apiServer}`;
  await startController({
    ...{ cluster, user, kinds: [bundle], config, namespaces: [bundles.namespace] },
    args: ['--metrics-bind-address', address],
  });
});

/** Waits until the operator's metrics for these alerts are as wanted. */
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

/** Changes a field of ours once as another writer, and waits for the correction. */
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

  // What is over is seen no longer.
  await cluster.delete(bundles.childPlace(configMaps, 'foreign'));
  await seen({ ReconstructOwnershipConflict: [1] });
});

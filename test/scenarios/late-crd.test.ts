import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { configMaps } from '../full/support/cluster.js';
import { installCrd } from '../full/support/crds.js';
import { eventually } from '../full/support/eventually.js';
import { lateParcel } from './support/kinds.js';
import { Scenario, writesIn } from './support/scenario.js';

const definitions = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});
const spec = { parts: [{ name: 'a', data: { value: '1' } }] };
const patience = { deadlineMilliseconds: 120_000, intervalMilliseconds: 500 };
const quietMilliseconds = 20_000;

test('a CRD that comes after the start, goes, and comes again is followed', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'late-crd', kind: lateParcel, installed: false });
  const { subject, cluster } = scenario;
  // Admission looks for new kinds at its leisure.
  const install = (): Promise<void> => eventually(() => installCrd(cluster, lateParcel.kind), patience);
  await scenario.startController({ awaitStart: false });
  const waiting = await scenario.controller.logged((line) => line.resource === 'parcels');
  expect(waiting.hint).toContain('CRD');

  await install();
  await subject.create('first', spec);
  await eventually(() => subject.ready('first'), patience);

  const name = lateParcel.kind.crd.metadata.name;
  await cluster.send('DELETE', `/apis/${definitions.apiVersion}/customresourcedefinitions/${name}`);
  await eventually(async () => {
    const { status } = await cluster.send('GET', `/apis/${lateParcel.kind.type.apiVersion}/parcels`);
    expect(status).toBe(404);
  }, patience);
  const requests = scenario.requestsFromNowOn();
  // A time without the kind: it must not be asked for in a loop.
  await delay(quietMilliseconds);
  expect(requests().filter(({ resource }) => resource === 'parcels').length).toBeLessThanOrEqual(20);
  expect(writesIn(requests()).length).toBeLessThanOrEqual(5);

  await install();
  await subject.create('second', spec);
  await eventually(() => subject.ready('second'), patience);
  await eventually(() => cluster.get(subject.childPlace(configMaps, 'second-a')), patience);
  await scenario.endsWell(patience);
});

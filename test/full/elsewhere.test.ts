import { afterEach, beforeAll, expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import type { AnyObject } from '../../src/contract/object.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { ControllerProps, RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const { kind, config } = await loadKind('test/support/kinds/elsewhere.config.mjs');
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const roles = resourceType({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', namespaced: false },
});
const SHARED = 'elsewhere-shared';

const running: RunningController[] = [];
let tenants: Subject;
let others: Subject;

/** An operator of some namespaces, with the rights that an installation gives it. */
async function operate(
  user: string,
  watched: readonly string[] = [],
  rights?: ControllerProps['rights'],
): Promise<RunningController> {
  const controller = await startController({
    ...{ cluster, user, kinds: [kind], config, ...(rights && { rights }) },
    ...(watched.length > 0 && { namespaces: watched }),
  });
  running.push(controller);
  return controller;
}

async function makeNamespace(name: string): Promise<void> {
  await cluster.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

const there = (name: string, namespace = SHARED): Place => ({ type: configMaps, namespace, name });
const find = async (place: Place): Promise<AnyObject | undefined> => cluster.find(place);
const gone = async (place: Place): Promise<void> =>
  eventually(async () => {
    expect(await find(place)).toBeUndefined();
  });
const says = async (place: Place, value: string): Promise<void> =>
  eventually(async () => {
    expect((await find(place))?.data).toEqual({ value });
  });

beforeAll(async () => {
  tenants = await Subject.make(cluster, kind, 'tenants');
  others = await Subject.make(cluster, kind, 'others');
  await makeNamespace(SHARED);
  await makeNamespace('elsewhere-later');
});

afterEach(async () => {
  for (const controller of running.splice(0)) await controller.kill();
});

test('children elsewhere are made, corrected, pruned, and deleted with their custom resource', async () => {
  const user = 'operator-70';
  await operate(user);
  await tenants.create('web', { shared: 'web', role: 'elsewhere-web' });
  await tenants.ready('web');
  const made = await cluster.get(there('web'));
  const role: Place = { type: roles, name: 'elsewhere-web' };
  for (const object of [made, await cluster.get(role)])
    expect(object.metadata.ownerReferences).toBeUndefined();

  await cluster.merge(there('web'), { data: { value: 'changed' } });
  await says(there('web'), 'a');
  // Not even the record has to be there.
  await cluster.merge(there('web'), { metadata: { annotations: null }, data: { value: 'changed' } });
  await says(there('web'), 'a');
  await cluster.delete(there('web'));
  await says(there('web'), 'a');

  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await tenants.touch('web');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);

  await tenants.edit('web', { shared: 'other', role: 'elsewhere-web', value: 'b' });
  await says(there('other'), 'b');
  await gone(there('web'));
  await tenants.delete('web');
  await gone(there('other'));
  await gone(role);
});

test('what was left while no operator ran is collected after a start, and only that', async () => {
  const first = await operate('operator-71');
  for (const name of ['left', 'stays', 'again']) {
    await tenants.create(name, { shared: name });
    await tenants.ready(name);
  }
  await first.kill();
  await tenants.delete('left');
  await tenants.delete('again');
  await tenants.create('again', {});
  // With a record that is forged, of an owner that there never was, but not applied by the operator.
  const record = {
    'reconstruct.kosmos.io/applied-hash': `x nobody Tenant.test.example.com ${tenants.namespace}/nobody`,
  };
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap' },
    metadata: { namespace: SHARED, name: 'planted', annotations: record },
  });
  const second = await operate('operator-71');
  await gone(there('left'));
  await gone(there('again'));
  await second.reconciled('stays');
  await settled(cluster, 'operator-71');
  expect(await find(there('stays'))).toBeDefined();
  expect(await find(there('planted'))).toBeDefined();
});

test('of two that want one name the second is refused without the namespace of the first, and comes when it goes', async () => {
  await operate('operator-72');
  await tenants.create('first', { shared: 'contested', value: 'first' });
  await tenants.ready('first');
  await others.create('second', { shared: 'contested', value: 'second' });
  const { message } = await others.stalled('second', 'OwnershipConflict');
  expect(message).toContain(
    `ConfigMap ${SHARED}/contested exists already and belongs to another custom resource`,
  );
  expect(message).not.toContain(tenants.namespace);
  await says(there('contested'), 'first');
  // Both learn of it.
  await eventually(async () => {
    const notes = (await tenants.events('first')).map(({ reason, note }) => `${reason}: ${note}`);
    const note = `Another Tenant asks for ConfigMap ${SHARED}/contested, which belongs to this one`;
    expect(notes).toContain(`OwnershipConflict: ${note}`);
  });
  await tenants.delete('first');
  await others.ready('second');
  await says(there('contested'), 'second');
});

test('an operator keeps what another one, of other namespaces, has made in the same place', async () => {
  await operate('operator-74', [tenants.namespace]);
  await operate('operator-75', [others.namespace]);
  await tenants.create('mine', { shared: 'mine' });
  await others.create('yours', { shared: 'yours' });
  await tenants.ready('mine');
  await others.ready('yours');
  await others.create('thief', { shared: 'mine' });
  await others.stalled('thief', 'OwnershipConflict');
  await tenants.delete('mine');
  await others.ready('thief');
  for (const user of ['operator-74', 'operator-75']) await settled(cluster, user);
  expect(await find(there('yours'))).toBeDefined();
});

test('a namespace that is not there yet stalls nothing for ever', async () => {
  const late = 'elsewhere-later';
  await cluster.delete({ type: namespaces, name: late });
  await gone({ type: namespaces, name: late });
  // A Role can't be in a namespace that isn't there.
  await operate('operator-73', [], (rules) => rules.map(({ namespaces: _, ...rule }) => rule));
  await tenants.create('early', { shared: 'early', namespace: late });
  const { message } = await tenants.condition('early', { type: 'Ready', status: 'False' });
  expect(message).toContain(late);
  await makeNamespace(late);
  await tenants.touch('early');
  await tenants.ready('early');
});

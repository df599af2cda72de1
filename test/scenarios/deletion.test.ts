import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { groupOf } from '../../src/contract/object.js';
import { collection, deny, deployments, eventually, services } from '../support/cluster.js';
import { writesTo } from '../support/faults.js';
import { Scenario, small, writesIn } from '../support/stages.js';

const quietMilliseconds = 10_000;
const collectable = { deadlineMilliseconds: 120_000, intervalMilliseconds: 250 };

test.concurrent.for(['deployments', 'services', 'appservices'])(
  'a custom resource that is deleted while a write is under way stays deleted, and leaves nothing: %s',
  async (resource) => {
    await using scenario = await Scenario.start({ purpose: `in-flight-${resource}` });
    const { subject, cluster } = scenario;
    const requests = scenario.requestsFromNowOn();
    const gate = await scenario.held(writesTo(resource, 'doomed'), () => subject.create('doomed', small));

    await subject.delete('doomed');
    gate.open();
    // It may make a child of an owner that is gone, for the garbage collector to find.
    await eventually(() => {
      const held = requests().find(writesTo(resource, 'doomed'));
      expect(held?.status).toBeGreaterThan(0);
    });

    await eventually(async () => {
      for (const type of [scenario.kind.kind.type, deployments, services])
        expect(await cluster.find(subject.childPlace(type, 'doomed')), type.kind).toBeUndefined();
    }, collectable);
    // Nothing comes back.
    await delay(quietMilliseconds);
    for (const type of [scenario.kind.kind.type, deployments, services])
      expect(await cluster.find(subject.childPlace(type, 'doomed')), type.kind).toBeUndefined();
    await scenario.endsWell();
  },
);

test.concurrent('a namespace that is being deleted causes no storm of errors', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'terminating' });
  const { subject, cluster } = scenario;
  const count = 10;
  // Rights in all namespaces, for those in one of them go with it.
  await scenario.startController({
    clusterWide: true,
    args: ['--watch-namespace', scenario.namespace],
  });
  await scenario.createReady(small, ...Array.from({ length: count }, (_, index) => `web-${index}`));
  // A policy of others keeps one, which outlives its children; these can't be created again.
  const { namespace, path } = {
    namespace: scenario.namespace,
    path: collection(subject.kind.type, scenario.namespace),
  };
  const allow = await deny(cluster, {
    ...{
      namespace,
      group: groupOf(subject.kind.type.apiVersion),
      resource: 'appservices',
      operation: 'DELETE',
    },
    expression: "oldObject.metadata.name != 'web-0'",
    message: 'web-0 stays',
    probe: () => cluster.send('DELETE', `${path}/web-0`, { query: { dryRun: 'All' } }),
  });
  const requests = scenario.requestsFromNowOn();

  await cluster.send('DELETE', `/api/v1/namespaces/${scenario.namespace}`);
  for (const type of [deployments, services])
    await eventually(async () => {
      expect((await cluster.list(type, scenario.namespace)).length).toBe(0);
    }, collectable);
  await delay(quietMilliseconds);
  await allow();
  await eventually(async () => {
    expect((await cluster.send('GET', `/api/v1/namespaces/${scenario.namespace}`)).status).toBe(404);
  }, collectable);

  const meanwhile = requests().filter(({ method }) => method !== 'GET');
  const refused = meanwhile.filter(({ status = 0 }) => status >= 400);
  // Children may go before their owner, and each is missed once before it is known why.
  console.info(`${meanwhile.length} writes, ${refused.length} of them refused`);
  expect(meanwhile.length, writesIn(meanwhile).slice(0, 40).join('\n')).toBeLessThanOrEqual(8 * count);
  expect(refused.length).toBeLessThanOrEqual(5 * count);
  const after = scenario.requestsFromNowOn();
  // A time in which nothing may happen.
  await delay(quietMilliseconds);
  expect(writesIn(after())).toEqual([]);
  await scenario.endsWell();
});

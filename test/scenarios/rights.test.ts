import { expect, test } from 'vitest';
import { rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually, grant, services } from '../support/cluster.js';
import { watches } from '../support/faults.js';
import { Scenario, small } from '../support/stages.js';

const edited = { ...small, ports: [{ port: 81 }] };

test('a right that is revoked is reported, stops nothing else, and heals when it is granted again', async () => {
  await using scenario = await Scenario.start({ purpose: 'rights' });
  const { subject, cluster, proxy, user } = scenario;
  await scenario.createReady(small, 'web', 'bereft');
  await scenario.settled();
  const namespaces = [scenario.namespace];
  const all = rulesFor([appService], { namespaces });

  await grant(cluster, {
    ...{ user, namespaces },
    rules: all.filter(({ resources }) => !resources.includes('services')),
  });
  // Rights are asked for when a watch begins.
  await eventually(async () => {
    await forbidden(scenario);
  });
  expect(proxy.cut(watches('services'))).toBe(1);
  const requests = scenario.requestsFromNowOn();
  await subject.edit('web', edited);
  await cluster.delete(subject.childPlace(services, 'bereft'));
  await subject.create('worker', { size: 0, image: 'example.com/worker:1' });

  const told = await subject.condition('web', { type: 'Ready', status: 'False', reason: 'Forbidden' });
  expect(told.message).toContain('services');
  await subject.ready('worker');
  await scenario.controller.logged((line) => line.resource === 'services' && line.level === 'warn');
  expect(requests().filter(({ status }) => status === 403).length).toBeLessThanOrEqual(30);

  await grant(cluster, { user, namespaces, rules: all });
  await eventually(() => cluster.get(subject.childPlace(services, 'bereft')), {
    deadlineMilliseconds: 180_000,
  });
  await scenario.endsWell({ deadlineMilliseconds: 180_000 });
  for (const name of ['web', 'bereft', 'worker']) await subject.ready(name);
});

/** The grant has been taken back everywhere in the API server. */
async function forbidden({ cluster, namespace, user }: Scenario): Promise<void> {
  const { status } = await cluster.send('GET', `/api/v1/namespaces/${namespace}/services`, {
    impersonate: user,
  });
  expect(status).toBe(403);
}

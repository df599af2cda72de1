import { beforeAll, expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { deployments, services } from '../support/cluster.js';
import { anyRoute, startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, summary } from '../support/requests.js';
import { namesOf, Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-32';
const cluster = openCluster();
let apps: Subject;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], args: anyRoute },
  });

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'resilience');
});

test('SIGTERM in the middle of its work lets a controller finish what it has begun, and exit with 0', async () => {
  const controller = await start();
  const names = Array.from({ length: 50 }, (_, index) => `web-${index}`);
  const requests = await requestsFromNowOn(cluster, user);
  const spec = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }] };
  const created = Promise.all(names.map((name) => apps.create(name, spec)));
  await apps.hasSome(services, 'web-', 5);

  expect(await controller.stop()).toBe(0);
  await created;

  expect(controller.log.slice(-1)).toMatchObject([{ level: 'info', msg: 'stopped' }]);
  expect(controller.log).toContainEqual(
    expect.objectContaining({ msg: 'stopping: finishing what is in flight' }),
  );
  expect(controller.strayOutput).toEqual([]);
  // Each that got a Deployment has its Service and its status too.
  for (const { metadata } of await cluster.list(deployments, apps.namespace))
    expect(await cluster.find(apps.childPlace(services, metadata.name)), metadata.name).toBeDefined();
  // 504 is the record of a request whose client has gone.
  const refused = (await requests()).filter(({ code = 0 }) => code >= 400 && code !== 504);
  expect(refused.map(summary)).toEqual([]);

  await start();
  for (const name of names) await apps.asRendered(name);
  for (const name of names) await apps.ready(name);
  for (const type of [deployments, services])
    expect(namesOf(await cluster.list(type, apps.namespace))).toEqual([...names].sort());
});

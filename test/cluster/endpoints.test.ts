import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { choosePorts } from '../../sandbox/ports.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));

beforeAll(() => installCrd(cluster, appService));
afterAll(() => cluster.close());

test('the controller is ready once it follows everything, and names what it does not follow until then', async () => {
  const namespace = await cluster.makeNamespace('endpoints');
  const ports = await choosePorts();
  const health = `127.0.0.1:${ports.apiServer}`;
  const metrics = `127.0.0.1:${ports.scheduler}`;
  await using controller = await startController({
    cluster,
    user: 'operator-11',
    kinds: [appService],
    namespaces: [namespace],
    // The right to read Services is missing.
    rules: [
      { apiGroups: ['kosmos.io'], resources: ['appservices'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch'] },
    ],
    args: ['--health-bind-address', health, '--metrics-bind-address', metrics],
    awaitStart: false,
  });

  await eventually(async () => {
    const ready = await fetch(`http://${health}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.text()).toMatch(
      /^services in endpoints\S*: Watch services: 403 .* cannot watch .*\n$/,
    );
  });
  expect((await fetch(`http://${health}/healthz`)).status).toBe(200);
  expect(await (await fetch(`http://${metrics}/metrics`)).text()).toMatch(
    /^rest_client_requests_total\{code="403",method="GET",host="127.0.0.1:\d+"\} \d+$/m,
  );
  expect(await controller.stop()).toBe(0);
});

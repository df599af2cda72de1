import { beforeAll, expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually, installCrd } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

beforeAll(() => installCrd(cluster, appService));

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
    rights: () => [
      { apiGroups: ['kosmos.io'], resources: ['appservices'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list', 'watch'] },
    ],
    args: ['--health-bind-address', health, '--metrics-bind-address', metrics],
    awaitStart: false,
  });

  await eventually(async () => {
    const ready = await fetch(`http://${health}/readyz?verbose`);
    expect(ready.status).toBe(503);
    expect(await ready.text()).toMatch(
      /^\[-\]caches failed: services in endpoints\S*: Watch services: 403 .* cannot watch .*$/m,
    );
  });
  const terse = await (await fetch(`http://${health}/readyz`)).text();
  expect(terse).not.toContain('services');
  expect((await fetch(`http://${health}/readyz?exclude=caches`)).status).toBe(200);
  expect((await fetch(`http://${health}/healthz`)).status).toBe(200);
  expect(await (await fetch(`http://${health}/healthz?verbose`)).text()).toBe(
    '[+]ping ok\n[+]leader ok\n[+]watches ok\nhealthz check passed\n',
  );
  const scraped = await (await fetch(`http://${metrics}/metrics`)).text();
  expect(scraped).toMatch(
    /^rest_client_requests_total\{code="403",method="GET",host="127.0.0.1:\d+"\} \d+$/m,
  );
  expect(scraped).toMatch(/^process_cpu_seconds_total \d/m);
  expect(scraped).toMatch(/^reconstruct_event_loop_lag_seconds\{quantile="p99"\} \d/m);
  expect(await controller.stop()).toBe(0);
});

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import { resourceType } from '../../src/contract/resource.js';
import { installManifests } from '../../src/install/manifests.js';
import { installedRules } from '../../src/install/rules.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { accountToken, eventually, installCrd } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn } from '../support/requests.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const user = 'operator-57';
const kinds = [jobWatcher];
const secureMetrics = {};
let url: string;

/** Scrapes, as Prometheus does that doesn't verify a self-signed certificate. */
async function scrape(
  token?: string,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const request = get(url, { headers, rejectUnauthorized: false, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

/** Binds the ClusterRole that is installed for scrapers. */
async function allow(account: string): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  const objects = installManifests({ namespace: user, image: 'a:1', kinds, replicas: 1, secureMetrics });
  const reader = objects.find(({ metadata }) => metadata.name.endsWith(':metrics-reader'))!;
  const role = resourceType({ apiVersion, kind: 'ClusterRole', namespaced: false });
  await cluster.apply(role, reader, 'test');
  const binding = resourceType({ apiVersion, kind: 'ClusterRoleBinding', namespaced: false });
  await cluster.apply(
    binding,
    {
      ...{ apiVersion, kind: 'ClusterRoleBinding', metadata: { name: `scraper-${account}` } },
      roleRef: { apiGroup, kind: 'ClusterRole', name: reader.metadata.name },
      subjects: [{ kind: 'ServiceAccount', name: 'reconstruct', namespace: account }],
    },
    'test',
  );
}

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  const address = `127.0.0.1:${(await choosePorts()).apiServer}`;
  url = `https://${address}/metrics`;
  const namespaces = [await cluster.makeNamespace('secure-metrics')];
  await startController({
    ...{ cluster, user, kinds, namespaces },
    args: ['--metrics-bind-address', address, '--metrics-secure'],
    // As with Roles for all the rest.
    rights: () => installedRules(kinds, { namespace: user, watchNamespaces: namespaces, secureMetrics }),
  });
});

test('with --metrics-secure the API server decides who reads metrics, and is asked only when they are', async () => {
  const [allowed, other] = await Promise.all(
    ['scraper-a', 'scraper-b'].map((name) => accountToken(cluster, name)),
  );
  await allow('scraper-a');
  const requests = await requestsFromNowOn(cluster, user);

  await eventually(async () => {
    const { status, body } = await scrape(allowed);
    expect(status).toBe(200);
    expect(body).toContain('\nreconstruct_');
  });
  expect(await scrape(other)).toEqual({ status: 403, body: 'Forbidden\n' });
  for (const wrong of [undefined, 'none', `${allowed}x`])
    expect(await scrape(wrong)).toEqual({ status: 401, body: 'Unauthorized\n' });
  const reviews = async (): Promise<number> =>
    (await requests()).filter(({ objectRef }) => objectRef?.resource === 'tokenreviews').length;
  const asked = await reviews();
  for (let each = 0; each < 5; each++) expect((await scrape(allowed)).status).toBe(200);
  expect((await scrape(other)).status).toBe(403);
  expect(await reviews()).toBe(asked);

  // A refusal doesn't hold for long.
  await allow('scraper-b');
  await eventually(
    async () => {
      expect((await scrape(other)).status).toBe(200);
    },
    { deadlineMilliseconds: 60_000 },
  );
});

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { makeProxy, slices } from './support/chart-proxy.js';
import { Cluster, configMaps, deployments, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { actions, Differ } from './support/diff.js';
import { eventually } from './support/eventually.js';
import { Jobs } from './support/jobs.js';
import { installReferenceGrants, referenceGrants } from './support/reference-grant-crd.js';

const user = 'operator-62';
const cluster = new Cluster(openSandbox(inject('sandbox')));
const PROXY = 'ingress-nginx-controller';
/** How the namespaces of the StreamIngress examples are called here. */
const names = new Map<string, string>();
let folder: string;
let watchers: string;
let controller: RunningController;
let differ: Differ;

beforeAll(async () => {
  for (const kind of [jobWatcher, streamIngress]) await installCrd(cluster, kind);
  await installReferenceGrants(cluster);
  for (const name of ['shop', 'infra', 'ingress-nginx'])
    names.set(name, await cluster.makeNamespace(`diff-${name}`));
  watchers = await cluster.makeNamespace('diff-watchers');
  await makeSurroundings();

  folder = await mkdtemp(join(tmpdir(), 'diff-examples-'));
  const file = join(folder, 'policy.yaml');
  const { streamingress } = (await example('streamingress/admin/policy.yaml')) as unknown as {
    readonly streamingress: object;
  };
  await writeFile(file, stringify({ streamingress }));
  const namespaces = [named('shop'), named('infra'), watchers];
  const kinds = [jobWatcher, streamIngress];
  controller = await startController({ cluster, user, kinds, namespaces, args: ['--policy', file] });
  differ = new Differ(cluster.sandbox.adminKubeconfig, [
    ...['--policy', file, '--operator-namespace', 'ops', '--watch-namespace', namespaces.join()],
  ]);
});
afterAll(async () => {
  await controller.kill();
  await rm(folder, { recursive: true });
  await cluster.close();
});

function named(namespace: string): string {
  return names.get(namespace)!;
}

/** With the namespaces of this test. */
async function example(file: string): Promise<AnyObject> {
  const text = await readFile(join(repoFolder(), 'examples', file), 'utf8');
  const renamed = [...names, ['default', watchers] as const].reduce(
    (changed, [from, to]) => changed.replaceAll(new RegExp(`(?<![-\\w])${from}(?![-\\w])`, 'g'), to),
    text,
  );
  return parse(renamed) as AnyObject;
}

/** What the StreamIngresses lead to, and an ingress-nginx that reads what they write. */
async function makeSurroundings(): Promise<void> {
  const proxies = named('ingress-nginx');
  await makeProxy(cluster, proxies, PROXY);
  const args = ['tcp', 'udp'].map((name) => `--${name}-services-configmap=${proxies}/${name}-services`);
  const labels = { app: 'nginx' };
  await cluster.create(deployments, {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: proxies, name: PROXY } },
    spec: {
      ...{ replicas: 0, selector: { matchLabels: labels } },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'controller', image: 'example.com/nginx:1', args }] },
      },
    },
  });
  await makeUpstream('shop', 'db', { name: 'sql', port: 5432 });
  await makeUpstream('shop', 'mail', { name: 'smtp', port: 25 });
  await makeUpstream('shop', 'dns', { name: 'dns-udp', port: 53, protocol: 'UDP' });
  await makeUpstream('infra', 'broker', { name: 'mqtt', port: 1883 });
  await cluster.create(referenceGrants, await example('streamingress/admin/reference-grant.yaml'));
}

async function makeUpstream(where: string, name: string, port: object): Promise<void> {
  const metadata = { namespace: named(where), name };
  await cluster.create(services, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [port] } });
  await cluster.create(slices, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
    ports: [port],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
  });
}

test('the examples of StreamIngress differ in nothing once they are settled', async () => {
  const files = ['tcp', 'udp', 'other-namespace', 'outside', 'proxy-protocol'];
  const streams = await Promise.all(files.map((name) => example(`streamingress/${name}.yaml`)));
  expect((await differ.of(streams)).code).toBe(1);

  for (const stream of streams) await cluster.create(streamIngress.type, stream);

  const nothing = { code: 0, stdout: '', stderr: '' };
  await eventually(async () => {
    expect(await differ.of(streams)).toEqual(nothing);
  });
  const place = (name: string) => ({ type: configMaps, namespace: named('ingress-nginx'), name });
  const { data: tcp } = await cluster.get(place('tcp-services'));
  expect(Object.keys(tcp as object)).toEqual(['9000', '9001', '9002', '9003']);
  expect(await cluster.get(place('udp-services'))).toMatchObject({
    data: { 5353: `${named('shop')}/dns:dns-udp` },
  });
});

test('the examples of JobWatcher differ in nothing once they are settled', async () => {
  const jobs = new Jobs(cluster, watchers);
  const files = ['tutorial', 'reports', 'dry-run'];
  const given = await Promise.all(files.map((name) => example(`jobwatcher/${name}.yaml`)));
  await jobs.finished('pi-1');
  await jobs.finished('other-1');

  for (const { metadata, ...rest } of given)
    await cluster.create(jobWatcher.type, { ...rest, metadata: { ...metadata, namespace: watchers } });
  await jobs.left('', ['other-1']);

  const inside = ['-n', watchers];
  await eventually(async () => {
    const found = await differ.json(given, ...inside);
    expect(found).toMatchObject({ code: 0, differs: false });
    expect(actions(found)).toEqual(given.map(({ metadata }) => `unchanged JobWatcher ${metadata.name}`));
  });

  // It changes what the others may do, so it comes last.
  const suspended = await example('jobwatcher/suspended.yaml');
  expect((await differ.json([suspended], ...inside)).code).toBe(1);
  const metadata = { ...suspended.metadata, namespace: watchers };
  await cluster.create(jobWatcher.type, { ...suspended, metadata });
  await eventually(async () => {
    expect(await differ.json([suspended], ...inside)).toMatchObject({ code: 0, differs: false });
  });
});

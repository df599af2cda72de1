import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { rulesFor } from '../../src/install/rules.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import { Cluster, configMaps, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';

const user = 'operator-33';
const INGRESS = 'ingress-nginx';
const cluster = new Cluster(openSandbox(inject('sandbox')));
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
let shop: string;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [kind], namespaces: [shop] },
    rules: rulesFor([kind], { namespaces: [shop] }),
  });

beforeAll(async () => {
  await installCrd(cluster, kind);
  await cluster.apply(
    namespaces,
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: INGRESS } },
    'test',
  );
  shop = await cluster.makeNamespace('stream-ingress');
  await makeProxy();
  await makeDatabase();
  controller = await start();
});

afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** The Service of ingress-nginx, as its chart makes it. */
async function makeProxy(): Promise<void> {
  const ports = [
    { name: 'http', port: 80, targetPort: 'http' },
    { name: 'https', port: 443, targetPort: 'https' },
  ];
  await cluster.apply(
    services,
    {
      ...{ apiVersion: 'v1', kind: 'Service', spec: { selector: { app: 'nginx' }, ports } },
      metadata: { namespace: INGRESS, name: 'ingress-nginx-controller' },
    },
    'helm',
  );
}

async function makeDatabase(): Promise<void> {
  const metadata = { namespace: shop, name: 'db' };
  await cluster.create(services, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata },
    spec: { ports: [{ name: 'sql', port: 5432 }] },
  });
  await cluster.create(slices, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'db' } },
    ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
  });
}

async function ask(name: string, spec: object): Promise<void> {
  const { apiVersion, kind: of } = kind.type;
  const upstream = { service: 'db', port: 5432 };
  await cluster.create(kind.type, {
    ...{ apiVersion, kind: of, metadata: { namespace: shop, name }, spec: { upstream, ...spec } },
  });
  onTestFinished(() => cluster.delete({ type: kind.type, namespace: shop, name }, { mayBeMissing: true }));
}

async function ready(name: string): Promise<string> {
  const { status } = await cluster.get<{
    status: { conditions?: { type: string; reason: string; status: string }[] };
  }>({
    ...{ type: kind.type, namespace: shop, name },
  });
  const found = status.conditions?.find(({ type }) => type === 'Ready');
  return `${found?.status ?? ''} ${found?.reason ?? ''}`;
}

const proxy = { type: services, namespace: INGRESS, name: 'ingress-nginx-controller' };
const tcp = { type: configMaps, namespace: INGRESS, name: 'tcp-services' };

async function ports(): Promise<string[]> {
  const { spec } = await cluster.get<{
    spec: { ports: { name: string; port: number; targetPort: unknown }[] };
  }>(proxy);
  return spec.ports.map(({ name, port, targetPort }) => `${name} ${port} ${String(targetPort)}`).sort();
}

async function entries(): Promise<Readonly<Record<string, string>>> {
  return (await cluster.find<{ data?: Record<string, string> }>(tcp))?.data ?? {};
}

const chart = ['http 80 http', 'https 443 https'];

test('the tutorial: a StreamIngress opens a port, a second one on it is refused, and promoted once the first is gone', async () => {
  await ask('first', { listen: 9000 });
  await eventually(async () => {
    expect(await entries()).toEqual({ 9000: `${shop}/db:5432` });
    expect(await ports()).toEqual([...chart, 'si-9000-tcp 9000 9000']);
    expect(await ready('first')).toBe('True Programmed');
  });

  await ask('second', { listen: 9000, upstream: { service: 'db', port: 'sql' } });
  await eventually(async () => {
    expect(await ready('second')).toBe('False PortConflict');
  });
  expect(await ready('first')).toBe('True Programmed');

  await cluster.delete({ type: kind.type, namespace: shop, name: 'first' });
  await eventually(async () => {
    expect(await entries()).toEqual({ 9000: `${shop}/db:sql` });
    expect(await ready('second')).toBe('True Programmed');
  });

  await cluster.delete({ type: kind.type, namespace: shop, name: 'second' });
  await eventually(async () => {
    expect(await entries()).toEqual({});
    expect(await ports()).toEqual(chart);
  });
});

test('what is settled costs no request, also after a restart, and while somebody else holds a port', async () => {
  await cluster.apply(
    configMaps,
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: INGRESS, name: 'tcp-services' },
      data: { 9101: 'a/b:1' },
    },
    'helm',
  );
  await ask('own', { listen: 9100 });
  await ask('foreign', { listen: 9101 });
  await eventually(async () => {
    expect(await ready('own')).toBe('True Programmed');
    expect(await ready('foreign')).toBe('False PortUnavailable');
    expect(await entries()).toEqual({ 9100: `${shop}/db:5432`, 9101: 'a/b:1' });
    expect(await ports()).toEqual([...chart, 'si-9100-tcp 9100 9100']);
  });

  await controller.stop();
  const requests = await requestsFromNowOn(cluster, user);
  controller = await start();
  for (const name of ['streamingress', 'streamingress-targets'])
    await controller.logged((line) => line.msg === 'Reconciled' && line.controller === name);
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
});

test('what somebody removes comes back; the Service made anew by its chart gets its ports', async () => {
  await ask('kept', { listen: 9200 });
  const open = async (): Promise<void> => {
    expect(await entries()).toMatchObject({ 9200: `${shop}/db:5432` });
    expect(await ports()).toEqual([...chart, 'si-9200-tcp 9200 9200']);
    expect(await ready('kept')).toBe('True Programmed');
  };
  await eventually(open);

  await cluster.delete(tcp);
  await eventually(open);

  await cluster.delete(proxy);
  await eventually(async () => {
    expect(await ready('kept')).toBe('False TargetNotFound');
  });
  await makeProxy();
  await eventually(open);
});

const withTarget = (name: string, port: number, targetPort: number): AnyObject => ({
  ...{
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: INGRESS, name: 'ingress-nginx-controller' },
  },
  spec: { ports: [{ name, port, protocol: 'TCP', targetPort }] },
});

test('a port of ours in which somebody edits a field is made anew as it was', async () => {
  await ask('edited', { listen: 9300 });
  await eventually(async () => {
    expect(await ready('edited')).toBe('True Programmed');
  });

  const edit = JSON.stringify({ spec: withTarget('si-9300-tcp', 9300, 9999).spec });
  const service = ['service', '-n', INGRESS, 'ingress-nginx-controller'];
  await cluster.sandbox.kubectl(['patch', ...service, '--type=strategic', '-p', edit]);

  await eventually(async () => {
    expect(await ports()).toEqual([...chart, 'si-9300-tcp 9300 9300']);
    expect(await ready('edited')).toBe('True Programmed');
  });
});

test('a port that somebody takes as a whole is theirs: they are named, and it stays when the StreamIngress goes', async () => {
  await ask('taken', { listen: 9400 });
  await eventually(async () => {
    expect(await ready('taken')).toBe('True Programmed');
  });

  const body = withTarget('theirs', 9400, 9999);
  const { status } = await cluster.send(
    'PATCH',
    `/api/v1/namespaces/${INGRESS}/services/ingress-nginx-controller`,
    {
      ...{
        body,
        contentType: 'application/apply-patch+yaml',
        query: { fieldManager: 'somebody', force: 'true' },
      },
    },
  );
  expect(status).toBe(200);

  await eventually(async () => {
    expect(await ready('taken')).toBe('False PortUnavailable');
    expect(await entries()).not.toHaveProperty('9400');
  });
  await cluster.delete({ type: kind.type, namespace: shop, name: 'taken' });
  await ask('next', { listen: 9401 });
  await eventually(async () => {
    expect(await ports()).toEqual([...chart, 'si-9401-tcp 9401 9401', 'theirs 9400 9999']);
  });
});

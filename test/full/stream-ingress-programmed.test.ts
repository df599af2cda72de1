import { beforeAll, describe, expect, test } from 'vitest';
import { collection, deny, deployments, eventually, putStatus } from '../support/cluster.js';
import { writesTo } from '../support/faults.js';
import { Scenario } from '../support/stages.js';
import { CHART, failing, makeUpstream, ours, stalled, Stand } from '../support/streams.js';
import type { IngressNginx } from '../support/streams.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-54';
const cluster = openCluster();
let stand: Stand;
let shop: string;

beforeAll(async () => {
  const targets = [
    'default',
    'held',
    'taken',
    'balanced',
    'unnamed',
    'nodes',
    'gone',
    'refusing',
    'last',
    'fixed',
  ];
  stand = await Stand.make(cluster, user, {
    ...Object.fromEntries(targets.map((name) => [name, {}])),
    few: { maxListeners: 1 },
  });
  shop = stand.namespace;
  for (const name of ['default', 'held', 'taken', 'few', 'refusing', 'last', 'fixed'])
    await stand.proxy(name).makeService();
  await makeUpstream(cluster, shop);
  await makeUpstream(cluster, shop, 'dns', { port: { protocol: 'UDP' } });
  await stand.start({ ingressController: 'Deployment/nginx' });
});

const refused = { Programmed: 'False TargetRefused', ...stalled('TargetRefused') };
const unavailable = { ...stalled('PortUnavailable'), Accepted: 'True Accepted' };

/** The Deployment of ingress-nginx, none of whose Pods is asked for. */
async function makeController({ namespace }: IngressNginx, ...args: string[]): Promise<void> {
  const labels = { app: 'nginx' };
  const spec = {
    ...{ replicas: 0, selector: { matchLabels: labels } },
    template: {
      metadata: { labels },
      spec: { containers: [{ name: 'controller', image: 'example.com/nginx', args }] },
    },
  };
  const metadata = { namespace, name: 'nginx' };
  await cluster.apply(deployments, { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }, 'helm');
}

test('rule 7: TargetNotConfigured while the controller of --ingress-controller doesn’t read the ConfigMap', async () => {
  const proxy = stand.proxy('default');
  const { namespace } = proxy;
  const tcp = await proxy.ask(shop, 'tcp', { listen: 9000 });
  const udp = await proxy.ask(shop, 'udp', { listen: 9000, protocol: 'UDP', upstream: { service: 'dns' } });
  const isNotConfigured = { Programmed: 'False TargetNotConfigured', ...stalled('TargetNotConfigured') };
  const missing = await tcp.is(isNotConfigured);
  expect(missing.Programmed).toContain(`Deployment ${namespace}/nginx, the controller of the target default`);

  await makeController(proxy);
  await eventually(async () => {
    const { Programmed } = await tcp.is(isNotConfigured);
    expect(Programmed).toContain('has no such argument; set its argument --tcp-services-configmap=');
  });
  await makeController(proxy, '--tcp-services-configmap=other/tcp', '--udp-services-configmap=other/udp');
  await eventually(async () => {
    const { Programmed } = await tcp.is(isNotConfigured);
    expect(Programmed).toContain('reads other/tcp; set');
  });
  // As the chart writes it, and for one of the two.
  await makeController(proxy, `--tcp-services-configmap=${namespace}/tcp-services`, '--v=2');
  await tcp.isReady();
  const { Programmed } = await udp.is(isNotConfigured);
  expect(Programmed).toContain(`set its argument --udp-services-configmap=${namespace}/udp-services`);
});

test('rule 7: TargetRefused while the ConfigMap is immutable, with the remedy; the other protocol’s ports open, and this once it is deleted', async () => {
  const proxy = stand.proxy('fixed');
  await proxy.put(proxy.tcp, { data: { '80': 'other/web:80' }, immutable: true });
  const stream = await proxy.ask(shop, 'fixed', { listen: 9720 });
  const { Programmed } = await stream.is(refused);
  expect(Programmed).toMatch(
    /ConfigMap .*tcp-services.* immutable.*; delete the object, and it is created again/,
  );
  await (
    await proxy.ask(shop, 'beside', { listen: 9720, protocol: 'UDP', upstream: { service: 'dns' } })
  ).isReady();
  await stream.is(refused);

  await cluster.delete(proxy.tcp);
  await stream.isReady();
});

test('rule 7: TargetNotFound while the Service is missing: nothing is made for it, and it is used once it is there', async () => {
  const proxy = stand.proxy('gone');
  const written = await proxy.writesFromNowOn();
  const stream = await proxy.ask(shop, 'early', { listen: 9000 });
  const { Programmed } = await stream.is({
    ...{ Accepted: 'True Accepted', Programmed: 'False TargetNotFound', ...failing('TargetNotFound') },
  });
  expect(Programmed).toContain(`Service ${proxy.namespace}/ingress-nginx-controller`);
  await (await stand.proxy('held').ask(shop, 'meanwhile', { listen: 9001 })).isReady();
  expect(await written()).toEqual([]);
  expect(await proxy.entries()).toBeUndefined();

  await proxy.makeService();
  await stream.isReady();
  // The ConfigMap is ours to make.
  expect(await written()).toEqual(['patch tcp-services 201', 'patch ingress-nginx-controller 200']);
});

describe('rule 7: PortUnavailable names the holder of', () => {
  test('a key of the ConfigMap; neither object is written for it, and no other waits for it', async () => {
    const proxy = stand.proxy('held');
    await proxy.put(proxy.udp, { data: { 9100: 'a/b:1' } }, 'somebody');
    const written = await proxy.writesFromNowOn();
    const stream = await proxy.ask(shop, 'foreign-key', {
      ...{ listen: 9100, protocol: 'UDP', upstream: { service: 'dns' } },
    });
    const { Programmed } = await stream.is({ ...unavailable, Programmed: 'False PortUnavailable' });
    expect(Programmed).toMatch(
      /^key 9100 of ConfigMap .*\/udp-services is held by the field manager somebody;/,
    );
    const other = await proxy.ask(shop, 'beside-key', {
      ...{ listen: 9101, protocol: 'UDP', upstream: { service: 'dns' } },
    });
    await other.isReady();
    expect(await proxy.entries(proxy.udp)).toEqual({ 9100: 'a/b:1', 9101: `${shop}/dns:5432` });
    expect(await proxy.ports()).not.toContain(ours(9100, 'UDP'));
    expect(await written()).toEqual(['patch udp-services 200', 'patch ingress-nginx-controller 200']);

    await proxy.put(proxy.udp, {}, 'somebody');
    await stream.isReady();
    expect(await proxy.entries(proxy.udp)).toMatchObject({ 9100: `${shop}/dns:5432` });
  });

  test('a port of the Service, at whatever time it came', async () => {
    const proxy = stand.proxy('taken');
    const theirs = { spec: { ports: [{ name: 'theirs', port: 9200, targetPort: 1, protocol: 'TCP' }] } };
    await proxy.put(proxy.service, theirs, 'somebody');
    const written = await proxy.writesFromNowOn();
    const stream = await proxy.ask(shop, 'foreign-port', { listen: 9200 });
    const { Programmed } = await stream.is({ ...unavailable, Programmed: 'False PortUnavailable' });
    expect(Programmed).toMatch(/^port 9200\/TCP of Service .* is held by the field manager somebody;/);
    await (await proxy.ask(shop, 'beside-port', { listen: 9201 })).isReady();
    expect(await proxy.entries()).toEqual({ 9201: `${shop}/db:5432` });
    expect(await proxy.ports()).toEqual([...CHART, ours(9201), 'theirs 9200/TCP -> 1']);
    expect(await written()).toHaveLength(2);

    await proxy.put(proxy.service, {}, 'somebody');
    await stream.isReady();
  });
});

test('rule 9: where others come first between our look and our apply, the rest is applied in the same pass', async () => {
  await using scenario = await Scenario.prepare({ purpose: 'stream-race' });
  await using own = await Stand.make(cluster, scenario.user, { race: {} });
  const { namespace } = own;
  const proxy = own.proxy('race');
  await proxy.makeService();
  await makeUpstream(cluster, namespace);
  await scenario.startController(await own.settings());
  const written = await proxy.writesFromNowOn();
  let late!: Awaited<ReturnType<IngressNginx['ask']>>;
  let beside!: typeof late;
  const gate = await scenario.held(writesTo('configmaps', proxy.tcp.name), async () => {
    // One pass for both: both are there when it looks.
    scenario.controller.signal('SIGSTOP');
    late = await proxy.ask(namespace, 'late', { listen: 9000 });
    beside = await proxy.ask(namespace, 'beside', { listen: 9001 });
    scenario.controller.signal('SIGCONT');
  });
  await proxy.put(proxy.tcp, { data: { 9000: 'a/b:1' } }, 'somebody');
  gate.open();

  await beside.isReady();
  const { Programmed } = await late.is({ ...unavailable, Programmed: 'False PortUnavailable' });
  expect(Programmed).toMatch(/^key 9000 of ConfigMap .* is held by the field manager somebody;/);
  expect(await proxy.entries()).toEqual({ 9000: 'a/b:1', 9001: `${namespace}/db:5432` });
  expect(await proxy.ports()).toEqual([...CHART, ours(9001)]);
  const [map, service] = [proxy.tcp.name, proxy.service.name];
  expect(await written()).toEqual([`patch ${map} 409`, `patch ${map} 200`, `patch ${service} 200`]);
});

test('rule 7: LoadBalancerPortsError of the Service, and what the load balancer says of one port', async () => {
  const proxy = stand.proxy('balanced');
  await proxy.makeService({ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false });
  const report = (status: object): Promise<void> => putStatus(cluster, proxy.service, status);
  const tcp = await proxy.ask(shop, 'balanced-tcp', { listen: 9300 });
  const udp = await proxy.ask(shop, 'balanced-udp', {
    ...{ listen: 9300, protocol: 'UDP', upstream: { service: 'dns' } },
  });
  for (const stream of [tcp, udp]) await stream.isReady();

  const refused = { Programmed: 'False LoadBalancerPortsError', ...failing('LoadBalancerPortsError') };
  const port = (protocol: string, error: object) => ({ port: 9300, protocol, ...error });
  const ports = [port('TCP', {}), port('UDP', { error: 'MixedProtocolNotSupported' })];
  await report({ loadBalancer: { ingress: [{ ip: '192.0.2.1', ports }] } });
  const { Programmed } = await udp.is(refused);
  expect(Programmed).toBe("the load balancer doesn't open port 9300/UDP: MixedProtocolNotSupported");
  await tcp.isReady();
  await eventually(async () => {
    expect((await cluster.get(tcp.place)).status).toMatchObject({ addresses: ['192.0.2.1:9300'] });
  });
  expect((await cluster.get(udp.place)).status).not.toHaveProperty('addresses');

  const condition = {
    ...{ type: 'LoadBalancerPortsError', status: 'True', reason: 'NoQuota', message: 'too many ports' },
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  await report({ conditions: [condition], loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } });
  expect((await tcp.is(refused)).Programmed).toContain('too many ports');
  await report({ conditions: [{ ...condition, status: 'False' }] });
  for (const stream of [tcp, udp]) await stream.isReady();
});

test('rule 9, defect (a port without a name beside others): a port has a name, and a number as its target; its node port is the API server’s, and stays', async () => {
  const proxy = stand.proxy('nodes');
  await proxy.makeService({ type: 'LoadBalancer' });
  const nodePorts = async (): Promise<Record<string, unknown>> => {
    const { spec } = await cluster.get<{ spec: { ports: { port: number; nodePort?: number }[] } }>(
      proxy.service,
    );
    return Object.fromEntries(spec.ports.map(({ port, nodePort }) => [port, nodePort]));
  };
  await (await proxy.ask(shop, 'with-node-port', { listen: 9600 })).isReady();
  const before = await nodePorts();
  expect(before[9600]).toBeTypeOf('number');
  await (await proxy.ask(shop, 'another', { listen: 9601 })).isReady();
  expect(await nodePorts()).toMatchObject(before);
  expect(await proxy.ports()).toEqual([...CHART, ours(9600), ours(9601)]);
});

test('rule 7: TooManyListeners; who is open stays open, and the next comes once it closes', async () => {
  const proxy = stand.proxy('few');
  const waiting = await proxy.ask(shop, 'older', { listen: 9400, upstream: { service: 'late' } });
  const open = await proxy.ask(shop, 'open', { listen: 9401 });
  await open.isReady();
  await makeUpstream(cluster, shop, 'late');
  const { Programmed } = await waiting.is({
    ...{ Accepted: 'True Accepted', Programmed: 'False TooManyListeners', ...stalled('TooManyListeners') },
  });
  expect(Programmed).toContain('the target few opens 1 ports, which are taken');
  expect(await proxy.entries()).toEqual({ 9401: `${shop}/db:5432` });
  await open.delete();
  await waiting.isReady();
  expect(await proxy.entries()).toEqual({ 9400: `${shop}/late:5432` });
});

test('rule 7: TargetNotConfigured where the one port of the Service has no name, so there can be no second', async () => {
  const proxy = stand.proxy('unnamed');
  const ports = (name: object) => ({ ports: [{ port: 80, protocol: 'TCP', targetPort: 'http', ...name }] });
  await proxy.makeService(ports({}));
  const stream = await proxy.ask(shop, 'second-port', { listen: 9500 });
  const { Programmed } = await stream.is({
    ...{ Programmed: 'False TargetNotConfigured', ...stalled('TargetNotConfigured') },
  });
  expect(Programmed).toContain('port 80 of Service');
  expect(await proxy.entries()).toBeUndefined();
  await proxy.makeService(ports({ name: 'http' }));
  await stream.isReady();
  expect(await proxy.ports()).toEqual(['http 80/TCP -> http', ours(9500)]);
});

describe('rule 9: what the API server refuses of the Service', () => {
  test('of a port that is to be opened, keeps no other open', async () => {
    const proxy = stand.proxy('refusing');
    const open = await proxy.ask(shop, 'open-before', { listen: 9700 });
    const stays = await proxy.ask(shop, 'stays', { listen: 9702 });
    for (const stream of [open, stays]) await stream.isReady();
    const { type, namespace, name } = proxy.service;
    const allow = await deny(cluster, {
      ...{ namespace: proxy.namespace, group: '', resource: 'services', operation: 'UPDATE' },
      ...{ expression: 'object.spec.ports.all(port, port.port != 9701)', message: 'not port 9701' },
      probe: () =>
        cluster.send('PATCH', `${collection(type, namespace)}/${name}`, {
          body: [{ op: 'add', path: '/spec/ports/-', value: { name: 'probe', port: 9701 } }],
          ...{ contentType: 'application/json-patch+json', query: { dryRun: 'All' } },
        }),
    });
    const denied = await proxy.ask(shop, 'denied', { listen: 9701 });
    expect((await denied.is(refused)).Programmed).toContain('not port 9701');
    expect(await denied.event('TargetRefused')).toContain('not port 9701');

    // Never there, so the port is to be closed.
    await cluster.merge(open.place, { spec: { upstream: { service: 'never' } } });
    await eventually(async () => {
      expect(await proxy.ports()).toEqual([...CHART, ours(9702)]);
      expect(await proxy.entries()).not.toHaveProperty('9700');
    });
    await open.is({ Programmed: 'False Pending' });
    await denied.is(refused);
    await stays.isReady();
    await allow();
    await stays.delete();
    await denied.isReady();
  });

  test('of a port that is to be closed, leaves that without its entry, and it is reported', async () => {
    const proxy = stand.proxy('last');
    const closing = await proxy.ask(shop, 'closing', { listen: 9710 });
    await closing.isReady();
    // Without those of the chart, ours is the last one, which the API server doesn't let go.
    await proxy.put(proxy.service, { spec: { selector: { app: 'nginx' } } });
    expect(await proxy.ports()).toEqual([ours(9710)]);
    await cluster.merge(closing.place, { spec: { upstream: { service: 'never' } } });

    const { Programmed } = await closing.is({
      ...{ Programmed: 'False TargetRefused', ...failing('ServiceNotFound') },
    });
    expect(Programmed).toContain('The port has yet to be closed: ');
    await eventually(async () => {
      expect(await proxy.entries()).toEqual({});
    });
    await eventually(async () => {
      expect((await closing.told()).messages.Programmed).toMatch(/with nothing behind it; .*spec\.ports/);
    });

    // What comes takes its place.
    await (await proxy.ask(shop, 'next', { listen: 9711 })).isReady();
    expect(await proxy.ports()).toEqual([ours(9711)]);
    await closing.is({ Programmed: 'False Pending' });
  });
});

test('rule 7: Programmed is what is read back, never what was sent: False until both objects have the port', async () => {
  await stand.controller.kill();
  await using blocked = await Stand.make(cluster, user, { blocked: {} });
  const { namespace } = blocked;
  const proxy = blocked.proxy('blocked');
  await proxy.makeService();
  await makeUpstream(cluster, namespace);
  await blocked.start({
    rights: (rules) =>
      rules
        .map((rule) => ({
          ...rule,
          verbs: rule.verbs.filter((verb) => verb !== 'patch' || !rule.resources.includes('services')),
        }))
        .filter(({ verbs }) => verbs.length > 0),
  });
  const stream = await proxy.ask(namespace, 'pending', { listen: 9000 });
  const isRefused = { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs', ...refused };
  expect((await stream.is(isRefused)).Programmed).toContain('ingress-nginx-controller');
  expect(await proxy.entries()).toEqual({ 9000: `${namespace}/db:5432` });
  await blocked.start();
  await stream.isReady();
});

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { Cluster, services } from './support/cluster.js';
import { eventually } from './support/eventually.js';
import { grantReference, installReferenceGrants, referenceGrants } from './support/reference-grant-crd.js';
import { failing, READY, stalled } from './support/stream-proxy.js';
import type { Proxy } from './support/stream-proxy.js';
import { Stand } from './support/stream-stand.js';
import { putEndpoints } from './support/upstreams.js';

const user = 'operator-43';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let stand: Stand;
/** Where the StreamIngresses are. */
let shop: string;
/** Whose Services they may lead to only where that permits it. */
let infra: string;

beforeAll(async () => {
  await installReferenceGrants(cluster);
  stand = await Stand.make({
    ...{ cluster, user, namespaces: ['shop', 'infra'] },
    targets: {
      values: {},
      lost: {},
      waiting: {},
      endpoints: {},
      permitted: {},
      unchecked: {},
      annotated: {},
    },
  });
  [shop, infra] = [stand.namespace('shop'), stand.namespace('infra')];
  await stand.makeServices();
  await stand.makeUpstream(shop);
  await stand.start();
});

afterAll(async () => {
  await stand[Symbol.asyncDispose]();
  await cluster.close();
});

const place = (namespace: string, name: string) => ({ type: services, namespace, name });

const WAITING = { Accepted: 'True Accepted', Programmed: 'False Pending' };

/** Waits until all that was asked for before has been looked at by whoever writes: a later one is open. */
async function anotherIsOpen(proxy: Proxy, listen: number): Promise<void> {
  await (await proxy.ask(shop, `after-${proxy.className ?? ''}-${listen}`, { listen })).isReady();
}

test('defects (PROXY protocol always or never, a port by name misread): what ingress-nginx reads: the four forms of a value, and a port as it is given, by number or name', async () => {
  const proxy = stand.proxy('values');
  const [decode, encode] = [true, true];
  const streams = [
    await proxy.ask(shop, 'plain', { listen: 9000 }),
    await proxy.ask(shop, 'decoded', { listen: 9001, proxyProtocol: { decode } }),
    await proxy.ask(shop, 'encoded', { listen: 9002, proxyProtocol: { encode } }),
    await proxy.ask(shop, 'both', { listen: 9003, proxyProtocol: { decode, encode } }),
    await proxy.ask(shop, 'named', { listen: 9004, upstream: { port: 'sql' }, proxyProtocol: { encode } }),
  ];
  for (const stream of streams) await stream.isReady();
  expect(await proxy.entries()).toEqual({
    9000: `${shop}/db:5432`,
    9001: `${shop}/db:5432:PROXY`,
    9002: `${shop}/db:5432::PROXY`,
    9003: `${shop}/db:5432:PROXY:PROXY`,
    9004: `${shop}/db:sql::PROXY`,
  });
});

describe('rule 5: the first opening waits for', () => {
  test('the Service (ServiceNotFound), its port (PortNotFound) and its protocol (ProtocolMismatch), in turn', async () => {
    const proxy = stand.proxy('waiting');
    const written = await proxy.writesFromNowOn();
    const stream = await proxy.ask(shop, 'waiting', {
      listen: 9000,
      upstream: { service: 'late', port: 53 },
    });
    const { ResolvedRefs } = await stream.is({
      ...{ ...WAITING, ResolvedRefs: 'False ServiceNotFound', ...failing('ServiceNotFound') },
    });
    expect(ResolvedRefs).toContain(`there is no Service ${shop}/late`);

    await stand.makeUpstream(shop, 'late', { port: 54, protocol: 'UDP', ready: false });
    const told = await stream.is({
      ...{ ...WAITING, ResolvedRefs: 'False PortNotFound', ...failing('PortNotFound') },
    });
    expect(told.ResolvedRefs).toBe(`Service ${shop}/late has no port 53; its ports are sql`);

    const ports = (protocol: string) => ({ spec: { ports: [{ name: 'sql', port: 53, protocol }] } });
    await cluster.merge(place(shop, 'late'), ports('UDP'));
    const { ResolvedRefs: mismatch } = await stream.is({
      ...{ ...WAITING, ResolvedRefs: 'False ProtocolMismatch', ...failing('ProtocolMismatch') },
    });
    expect(mismatch).toContain(`port 53 of Service ${shop}/late is of protocol UDP, not TCP`);
    await anotherIsOpen(proxy, 9001);
    expect(await proxy.entries()).not.toHaveProperty('9000');

    await cluster.merge(place(shop, 'late'), ports('TCP'));
    // Nobody is ready behind it, and it is opened all the same.
    await stream.is({
      ...{ Programmed: 'True Programmed', ResolvedRefs: 'False NoReadyEndpoints' },
      ...failing('NoReadyEndpoints'),
    });
    expect(await proxy.entries()).toMatchObject({ 9000: `${shop}/late:53` });
    expect(await written()).toHaveLength(4);
  });
});

describe('rule 5: what is open stays open', () => {
  test('rule 8, Ready is what all three say: while nobody is ready (NoReadyEndpoints), which is told and costs ingress-nginx no reload', async () => {
    const proxy = stand.proxy('endpoints');
    await stand.makeUpstream(shop, 'api');
    const stream = await proxy.ask(shop, 'api', { listen: 9000, upstream: { service: 'api' } });
    await stream.isReady();
    const written = await proxy.writesFromNowOn();
    await putEndpoints(cluster, { namespace: shop, name: 'api', ready: false });
    const { ResolvedRefs } = await stream.is({
      ...{ Programmed: 'True Programmed', ResolvedRefs: 'False NoReadyEndpoints' },
      ...failing('NoReadyEndpoints'),
    });
    expect(ResolvedRefs).toBe(`nothing behind port 5432 of Service ${shop}/api is ready`);
    await putEndpoints(cluster, { namespace: shop, name: 'api', ready: true });
    await stream.isReady();
    expect(await written()).toEqual([]);
    expect(await proxy.entries()).toEqual({ 9000: `${shop}/api:5432` });
  });

  test('while the Service is redeployed, or has another port: entry, port and claim', async () => {
    const proxy = stand.proxy('lost');
    await stand.makeUpstream(shop, 'moving');
    const stream = await proxy.ask(shop, 'moving', { listen: 9000, upstream: { service: 'moving' } });
    await stream.isReady();
    const challenger = await proxy.ask(shop, 'z-challenger', { listen: 9000 });
    const open = async (): Promise<void> => {
      expect(await proxy.entries()).toMatchObject({ 9000: `${shop}/moving:5432` });
      expect(await proxy.ports()).toContain('si-9000-tcp 9000/TCP -> 9000');
      await challenger.is({ Accepted: 'False PortConflict' });
    };

    const written = await proxy.writesFromNowOn();
    await cluster.merge(place(shop, 'moving'), { spec: { ports: [{ name: 'sql', port: 5433 }] } });
    await stream.is({
      ...{ Programmed: 'True Programmed', ResolvedRefs: 'False PortNotFound', ...failing('PortNotFound') },
    });
    await cluster.delete(place(shop, 'moving'));
    await stream.is({
      ...{ Programmed: 'True Programmed', ResolvedRefs: 'False ServiceNotFound' },
      ...failing('ServiceNotFound'),
    });
    await anotherIsOpen(proxy, 9001);
    await open();
    // The other one's, and nothing for this one.
    expect(await written()).toHaveLength(2);

    await stand.makeUpstream(shop, 'moving');
    await stream.isReady();
    await open();
  });

  test('but not for a Service that was never there: another one asked for closes the port until it is', async () => {
    const proxy = stand.proxy('lost');
    const stream = await proxy.ask(shop, 'turning', { listen: 9010 });
    await stream.isReady();
    await cluster.merge(stream.place, { spec: { upstream: { service: 'next' } } });
    await eventually(async () => {
      expect(await proxy.entries()).not.toHaveProperty('9010');
      expect(await proxy.ports()).not.toContain('si-9010-tcp 9010/TCP -> 9010');
    });
    await stream.is({ ...WAITING, ...failing('ServiceNotFound') });
    await stand.makeUpstream(shop, 'next');
    await stream.isReady();
    expect(await proxy.entries()).toMatchObject({ 9010: `${shop}/next:5432` });
  });
});

const DENIED = { ...WAITING, ResolvedRefs: 'False RefNotPermitted', ...stalled('RefNotPermitted') };

describe('rule 6, defect (any namespace is reached): another namespace', () => {
  test('has to permit it by a ReferenceGrant for this kind, this namespace and this Service; revoked, the port closes', async () => {
    const proxy = stand.proxy('permitted');
    await stand.makeUpstream(infra, 'broker');
    const upstream = { namespace: infra, service: 'broker' };
    const stream = await proxy.ask(shop, 'broker', { listen: 9000, upstream });
    const missing = await proxy.ask(shop, 'missing', {
      ...{ listen: 9001, upstream: { namespace: infra, service: 'nothing' } },
    });
    const { ResolvedRefs } = await stream.is(DENIED);
    // Whether there is such a Service isn't told.
    expect((await missing.is(DENIED)).ResolvedRefs).toBe(ResolvedRefs);
    expect(ResolvedRefs).not.toMatch(/broker|nothing/);

    const from = { namespace: shop };
    await grantReference(cluster, {
      name: 'other-kind',
      inside: infra,
      from: { ...from, kind: 'HTTPRoute' },
    });
    await grantReference(cluster, { name: 'other-from', inside: infra, from: { namespace: infra } });
    await grantReference(cluster, { name: 'other-service', inside: infra, from, to: { name: 'api' } });
    await grantReference(cluster, { name: 'secrets', inside: infra, from, to: { kind: 'Secret' } });
    await grantReference(cluster, { name: 'not-theirs', inside: shop, from });
    await anotherIsOpen(proxy, 9002);
    await stream.is(DENIED);
    expect(await proxy.entries()).toEqual({ 9002: `${shop}/db:5432` });

    await grantReference(cluster, { inside: infra, from, to: { name: 'broker' } });
    await stream.isReady();
    expect(await proxy.entries()).toMatchObject({ 9000: `${infra}/broker:5432` });
    await missing.is(DENIED);

    await cluster.delete({ type: referenceGrants, namespace: infra, name: 'grant' });
    await stream.is(DENIED);
    await eventually(async () => {
      expect(await proxy.entries()).toEqual({ 9002: `${shop}/db:5432` });
      expect(await proxy.ports()).not.toContain('si-9000-tcp 9000/TCP -> 9000');
    });
  });

  test('permits all of its Services where the ReferenceGrant names none', async () => {
    const proxy = stand.proxy('permitted');
    await stand.makeUpstream(infra, 'cache');
    await grantReference(cluster, { name: 'all', inside: infra, from: { namespace: shop } });
    const stream = await proxy.ask(shop, 'cache', {
      ...{ listen: 9100, upstream: { namespace: infra, service: 'cache' } },
    });
    await stream.isReady();
    await cluster.delete({ type: referenceGrants, namespace: infra, name: 'all' });
    await stream.is(DENIED);
  });
});

describe('is_service false', () => {
  test('skips the checks for Service, port and endpoints in the own namespace', async () => {
    const proxy = stand.proxy('unchecked');
    const stream = await proxy.ask(shop, 'outside', {
      ...{ listen: 9000, is_service: false, upstream: { service: 'nowhere', port: 'any' } },
    });
    await stream.isReady();
    expect(await proxy.entries()).toMatchObject({ 9000: `${shop}/nowhere:any` });
  });

  test('is_service false needs the permission of another namespace, also for a Service that doesn’t exist', async () => {
    const proxy = stand.proxy('unchecked');
    const stream = await proxy.ask(shop, 'denied', {
      ...{ listen: 9001, is_service: false, upstream: { namespace: infra, service: 'nowhere' } },
    });
    await stream.is(DENIED);
    await anotherIsOpen(proxy, 9002);
    expect(await proxy.entries()).not.toHaveProperty('9001');

    await grantReference(cluster, {
      ...{ name: 'nowhere', inside: infra, from: { namespace: shop }, to: { name: 'nowhere' } },
    });
    await stream.isReady();
    expect(await proxy.entries()).toMatchObject({ 9001: `${infra}/nowhere:5432` });

    await cluster.delete({ type: referenceGrants, namespace: infra, name: 'nowhere' });
    await stream.is(DENIED);
    await eventually(async () => {
      expect(await proxy.entries()).not.toHaveProperty('9001');
    });
  });
});

test('rule 6: where annotations count, that of the Service permits, and a ReferenceGrant does not', async () => {
  await stand.start({ policy: { crossNamespace: 'Annotation' } });
  const proxy = stand.proxy('annotated');
  await stand.makeUpstream(infra, 'annotated');
  await grantReference(cluster, { name: 'annotated', inside: infra, from: { namespace: shop } });
  const allow = (text: string | null) =>
    cluster.merge(place(infra, 'annotated'), {
      metadata: { annotations: { 'nginx-stream.jeffthecoder.xyz/allow-from': text } },
    });
  const upstream = { namespace: infra, service: 'annotated' };
  const stream = await proxy.ask(shop, 'annotated', { listen: 9000, upstream });
  await stream.is(DENIED);
  await allow(`${infra}, other`);
  await anotherIsOpen(proxy, 9001);
  await stream.is(DENIED);

  for (const text of [`other, ${shop}`, '*']) {
    await allow(text);
    await stream.is(READY);
    await allow(null);
    await stream.is(DENIED);
    await eventually(async () => {
      expect(await proxy.entries()).not.toHaveProperty('9000');
    });
  }
  const unchecked = await proxy.ask(shop, 'annotated-missing', {
    ...{ listen: 9002, is_service: false, upstream: { ...upstream, service: 'nowhere' } },
  });
  await unchecked.is(DENIED);
});

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import { NGINX_RESERVED_PORTS } from '../../src/kinds/stream-ingress/targets.js';
import { Cluster, collection } from './support/cluster.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { CHART, Stream, stalled } from './support/stream-proxy.js';
import type { Ask, Proxy } from './support/stream-proxy.js';
import { Stand } from './support/stream-stand.js';

const user = 'operator-42';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let stand: Stand;
/** Two namespaces; the name of the first comes before that of the second. */
let shop: string;
let team: string;

beforeAll(async () => {
  stand = await Stand.make({
    ...{ cluster, user, namespaces: ['shop', 'team'] },
    targets: {
      ...{ claims: {}, others: {}, losers: {}, holding: {}, reserved: {}, all: { reservedPorts: [] } },
      limited: { portRanges: ['9000-9009'], namespaces: ['shop'] },
    },
  });
  [shop, team] = [stand.namespace('shop'), stand.namespace('team')];
  await stand.makeServices();
  for (const namespace of [shop, team]) await stand.makeUpstream(namespace);
  await stand.start();
});

afterAll(async () => {
  await stand[Symbol.asyncDispose]();
  await cluster.close();
});

const HELD = { Accepted: 'True Accepted' };
const LOST = { Accepted: 'False PortConflict', Programmed: 'False Pending', ...stalled('PortConflict') };

async function ageOf({ place }: Stream): Promise<string> {
  return (await cluster.get<{ metadata: { creationTimestamp: string } }>(place)).metadata.creationTimestamp;
}

/** A younger one: of a later second, which is waited for. */
async function askLater(first: Stream, proxy: Proxy, namespace: string, name: string, spec: Ask) {
  const age = await ageOf(first);
  // The clock that the API server dates objects by.
  await eventually(() => {
    expect(new Date().toISOString() > age.replace('Z', '.999Z')).toBe(true);
  });
  const later = await proxy.ask(namespace, name, spec);
  expect((await ageOf(later)) > age).toBe(true);
  return later;
}

describe('rule 1: the claim is target, protocol and port', () => {
  test.each([
    ['listen', { listen: 9001 }, "listen can't be changed"],
    ['protocol', { protocol: 'UDP' }, "protocol can't be changed"],
    ['className', { className: 'others' }, "className can't be changed, added or removed"],
    ['className-removed', { className: null }, "className can't be changed, added or removed"],
  ])('the API server refuses another %s', async (name, spec, message) => {
    const { place } = await stand.proxy('all').ask(shop, name.toLowerCase(), { listen: 9000 });
    const before = await cluster.get(place);
    const path = `${collection(place.type, place.namespace)}/${place.name}`;
    const contentType = 'application/merge-patch+json';
    const { status, body } = await cluster.send('PATCH', path, { body: { spec }, contentType });
    expect([status, body.message]).toEqual([422, expect.stringContaining(message)]);
    expect((await cluster.get(place)).spec).toEqual(before.spec);
  });

  test('one that has no class gets none later', async () => {
    const { apiVersion, kind: of } = kind.type;
    const place = { type: kind.type, namespace: shop, name: 'classless' };
    const spec = { listen: 9000, upstream: { service: 'db', port: 5432 } };
    await cluster.create(kind.type, {
      ...{ apiVersion, kind: of, metadata: { namespace: shop, name: place.name }, spec },
    });
    await expect(cluster.merge(place, { spec: { className: 'claims' } })).rejects.toThrow(
      /422: .*className can't be changed, added or removed/,
    );
  });

  test('one number of TCP and UDP, and on two targets, is three claims', async () => {
    const [proxy, other] = [stand.proxy('claims'), stand.proxy('others')];
    await stand.makeUpstream(shop, 'dns', { protocol: 'UDP' });
    const upstream = { service: 'dns' };
    const streams = [
      await proxy.ask(shop, 'tcp', { listen: 9100 }),
      await proxy.ask(shop, 'udp', { listen: 9100, protocol: 'UDP', upstream }),
      await other.ask(shop, 'other', { listen: 9100 }),
    ];
    for (const stream of streams) await stream.isReady();
    expect(await proxy.entries()).toMatchObject({ 9100: `${shop}/db:5432` });
    expect(await proxy.entries(proxy.udp)).toEqual({ 9100: `${shop}/dns:5432` });
    expect(await other.entries()).toMatchObject({ 9100: `${shop}/db:5432` });
    expect(await proxy.ports()).toEqual(
      expect.arrayContaining(['si-9100-tcp 9100/TCP -> 9100', 'si-9100-udp 9100/UDP -> 9100']),
    );
  });
});

describe('rule 2: the winner', () => {
  test('defect (an election that is a race): is the oldest, whatever its name, and stays it through a restart', async () => {
    const proxy = stand.proxy('losers');
    const oldest = await proxy.ask(team, 'z', { listen: 9200 });
    const younger = await askLater(oldest, proxy, shop, 'a', { listen: 9200 });
    await oldest.isReady();
    await younger.is(LOST);

    await settled(cluster, user);
    await stand.controller.stop();
    const requests = await requestsFromNowOn(cluster, user);
    await stand.start();
    await stand.hasLooked();
    await settled(cluster, user);
    expect(writes(await requests()).map(summary)).toEqual([]);
    expect(await proxy.entries()).toMatchObject({ 9200: `${team}/db:5432` });
  });

  test('is, of two of one second, the first by namespace and name, whichever came first', async () => {
    const proxy = stand.proxy('claims');
    /** Until two are of one second. */
    const twins = async (listen: number): Promise<[Stream, Stream]> => {
      const last = await proxy.ask(team, `a-${listen}`, { listen });
      const first = await proxy.ask(shop, `z-${listen}`, { listen });
      return (await ageOf(last)) === (await ageOf(first)) ? [first, last] : twins(listen + 1);
    };
    const [first, last] = await twins(9300);
    await first.isReady();
    await last.is(LOST);
  });
});

describe('rule 3: holding', () => {
  test('who is refused holds nothing, be it older', async () => {
    const proxy = stand.proxy('limited');
    const stranger = await proxy.ask(team, 'stranger', { listen: 9000 });
    await stranger.is({ Accepted: 'False NamespaceNotPermitted', ...stalled('NamespaceNotPermitted') });
    await (await proxy.ask(shop, 'served', { listen: 9000 })).isReady();
    await stranger.is({ Accepted: 'False NamespaceNotPermitted' });
  });

  test('who lacks its upstream holds its port, also before that was ever there', async () => {
    const proxy = stand.proxy('holding');
    const written = await proxy.writesFromNowOn();
    const waiting = await proxy.ask(shop, 'waiting', { listen: 9000, upstream: { service: 'late' } });
    const younger = await askLater(waiting, proxy, shop, 'younger', { listen: 9000 });
    await younger.is(LOST);
    await waiting.is({ ...HELD, ResolvedRefs: 'False ServiceNotFound', Programmed: 'False Pending' });
    // Both have been looked at by whoever writes, since a later one is open.
    await (await proxy.ask(shop, 'later', { listen: 9001 })).isReady();
    expect(await proxy.entries()).toEqual({ 9001: `${shop}/db:5432` });
    expect(await written()).toEqual(['patch tcp-services 201', 'patch ingress-nginx-controller 200']);
  });
});

describe('rules 4 and 8: the loser', () => {
  test('defect (silent conflicts): is told by conditions and an event, with the name of a winner of its own namespace alone; nothing of it is written', async () => {
    const proxy = stand.proxy('losers');
    const winner = await proxy.ask(shop, 'holder', { listen: 9400 });
    const neighbour = await askLater(winner, proxy, shop, 'neighbour', {
      ...{ listen: 9400, upstream: { port: 'sql' } },
    });
    const stranger = await proxy.ask(team, 'outsider', { listen: 9400 });
    await winner.isReady();
    expect((await neighbour.is(LOST)).Accepted).toMatch(/^9400\/TCP is held by StreamIngress holder,/);
    const { Accepted } = await stranger.is(LOST);
    expect(Accepted).toMatch(/^9400\/TCP is held by a StreamIngress of another namespace,/);

    expect(await stranger.event('PortConflict')).toBe(Accepted);
    const everything = JSON.stringify(await cluster.get(stranger.place));
    expect(everything).not.toContain('holder');
    expect(everything).not.toContain(shop);
    expect(await proxy.entries()).toMatchObject({ 9400: `${shop}/db:5432` });
  });

  test('gets the port as soon as the winner is deleted, be it that somebody’s finalizer keeps that', async () => {
    const proxy = stand.proxy('others');
    const winner = await proxy.ask(shop, 'leaving', { listen: 9500 });
    await cluster.merge(winner.place, { metadata: { finalizers: ['example.com/kept'] } });
    const second = await askLater(winner, proxy, team, 'second', { listen: 9500 });
    const third = await askLater(second, proxy, shop, 'third', { listen: 9500 });
    await winner.isReady();
    await third.is(LOST);

    await winner.delete();
    await second.isReady();
    expect(await proxy.entries()).toMatchObject({ 9500: `${team}/db:5432` });
    await cluster.merge(winner.place, { metadata: { finalizers: null } });

    await second.delete();
    await third.isReady();
    expect(await proxy.entries()).toMatchObject({ 9500: `${shop}/db:5432` });
  });
});

describe('defect (any user names any Service and ConfigMap): a target is the admin’s', () => {
  test('no field of a StreamIngress says what it consists of', async () => {
    const spec = { listen: 9000, upstream: { service: 'db', port: 5432 } };
    const { apiVersion, kind: of } = kind.type;
    for (const field of ['ingressNamespace', 'ingressService', 'service', 'configMap', 'gateway']) {
      const body = { apiVersion, kind: of, metadata: { name: 'chooser' }, spec: { ...spec, [field]: 'x' } };
      const query = { fieldValidation: 'Strict' };
      const { status, body: answer } = await cluster.send('POST', collection(kind.type, shop), {
        body,
        query,
      });
      expect([status, answer.message]).toEqual([
        400,
        expect.stringContaining(`unknown field "spec.${field}"`),
      ]);
    }
  });

  test('a class that nobody has set up is ClassNotFound, and so is none where there is no default', async () => {
    const { apiVersion, kind: of } = kind.type;
    for (const [name, className] of Object.entries({ unknown: 'ingress-nginx', none: undefined })) {
      const spec = { listen: 9000, upstream: { service: 'db', port: 5432 }, className };
      await cluster.create(kind.type, { apiVersion, kind: of, metadata: { namespace: shop, name }, spec });
      const stream = new Stream(cluster, { type: kind.type, namespace: shop, name });
      const { Accepted } = await stream.is({ Accepted: 'False ClassNotFound', ...stalled('ClassNotFound') });
      // Which classes there are is the admin's to tell.
      for (const known of ['claims', 'limited']) expect(Accepted).not.toContain(known);
    }
  });

  test('rule 8: ports out of its ranges and namespaces that it doesn’t serve are refused', async () => {
    const proxy = stand.proxy('limited');
    const outside = await proxy.ask(shop, 'outside', { listen: 9010 });
    const { Accepted } = await outside.is({
      ...{ Accepted: 'False PortNotPermitted', ...stalled('PortNotPermitted') },
    });
    expect(Accepted).toContain('take one of 9000-9009');
    await (await proxy.ask(shop, 'inside', { listen: 9009 })).isReady();
    expect(await proxy.entries()).not.toHaveProperty('9010');
  });

  test.each(['TCP', 'UDP'] as const)('rule 8: the proxy’s ports are refused for %s', async (protocol) => {
    const proxy = stand.proxy('reserved');
    const written = await proxy.writesFromNowOn();
    expect(NGINX_RESERVED_PORTS).toEqual(expect.arrayContaining([80, 443, 442, 8181, 8443, 10254]));
    for (const listen of NGINX_RESERVED_PORTS) {
      const stream = await proxy.ask(shop, `${protocol.toLowerCase()}-${listen}`, { listen, protocol });
      const { Accepted } = await stream.is({
        ...{ Accepted: 'False PortReserved', Programmed: 'False PortUnavailable' },
        ...stalled('PortReserved'),
      });
      expect(Accepted).toContain(`${listen}/${protocol} is reserved`);
    }
    const after = await proxy.ask(shop, `after-${protocol.toLowerCase()}`, {
      listen: protocol === 'TCP' ? 9001 : 9002,
    });
    await after.isReady();
    expect(await written()).toHaveLength(2);
    expect((await proxy.ports()).slice(0, 2)).toEqual(CHART);
  });

  test('defect (listen 443 rewrites the port of HTTPS): 443 doesn’t rewrite the port of HTTPS where nothing is reserved either: it is the chart’s', async () => {
    const proxy = stand.proxy('all');
    const https = await proxy.ask(shop, 'https', { listen: 443 });
    const { Programmed } = await https.is({
      ...{ Accepted: 'True Accepted', Programmed: 'False PortUnavailable', ...stalled('PortUnavailable') },
    });
    expect(Programmed).toMatch(/^port 443\/TCP of Service .* is held by the field manager helm;/);
    await (await proxy.ask(shop, 'after-https', { listen: 9600 })).isReady();
    expect(await proxy.entries()).not.toHaveProperty('443');
    expect(await proxy.ports()).toEqual(expect.arrayContaining(CHART));
  });
});

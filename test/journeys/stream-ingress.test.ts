import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually, namespaceType } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { CHART, IngressNginx, makeUpstream, mostPasses, ours } from '../support/streams.js';
import type { Ask, Stream } from '../support/streams.js';
import { cluster, operator } from './support/operator.js';

/** Where the chart of ingress-nginx puts it, so that no flag is needed. */
const proxy = new IngressNginx(cluster, operator.user, undefined, 'ingress-nginx');
let shop: string;

beforeAll(async () => {
  await proxy.put({ type: namespaceType, name: proxy.namespace }, {}, 'test');
  shop = await cluster.makeNamespace('stream-ingress');
  await proxy.makeService();
  await makeUpstream(cluster, shop);
});

let asked: Stream[] = [];

async function ask(name: string, spec: Ask): Promise<Stream> {
  const stream = await proxy.ask(shop, name, spec);
  asked.push(stream);
  return stream;
}

afterEach(async () => {
  for (const { place } of asked) await cluster.delete(place, { mayBeMissing: true });
  asked = [];
  await eventually(async () => {
    expect((await proxy.ports()).filter((port) => port.startsWith('si-'))).toEqual([]);
    expect(JSON.stringify((await proxy.entries()) ?? {})).not.toContain(`${shop}/`);
  });
});

test('the tutorial: a StreamIngress opens a port, a second one on it is refused, and promoted once the first is gone', async () => {
  const first = await ask('first', { listen: 9000 });
  await first.isReady();
  expect(await proxy.entries()).toEqual({ 9000: `${shop}/db:5432` });
  expect(await proxy.ports()).toEqual([...CHART, ours(9000)]);

  const second = await ask('second', { listen: 9000, upstream: { port: 'sql' } });
  await second.is({ Ready: 'False PortConflict' });
  await first.isReady();

  await first.delete();
  await second.isReady();
  expect(await proxy.entries()).toEqual({ 9000: `${shop}/db:sql` });

  await second.delete();
  await eventually(async () => {
    expect(await proxy.entries()).toEqual({});
    expect(await proxy.ports()).toEqual(CHART);
  });
});

test('rule 9, defect (no repair of what others remove): it comes back; the Service recreated by its chart gets its ports', async () => {
  const kept = await ask('kept', { listen: 9200 });
  const open = async (): Promise<void> => {
    expect(await proxy.entries()).toMatchObject({ 9200: `${shop}/db:5432` });
    expect(await proxy.ports()).toEqual([...CHART, ours(9200)]);
    expect((await kept.told()).words).toMatchObject({ Ready: 'True Programmed' });
  };
  await eventually(open);

  await cluster.delete(proxy.tcp);
  await eventually(open);

  await cluster.delete(proxy.service);
  await kept.is({ Ready: 'False TargetNotFound' });
  await proxy.makeService();
  await eventually(open);
});

const withTarget = (name: string, port: number, targetPort: number): object => ({
  spec: { ports: [{ name, port, protocol: 'TCP', targetPort }] },
});

test('rule 9: a port of ours in which another writer edits a field is restored', async () => {
  const edited = await ask('edited', { listen: 9300 });
  await edited.isReady();

  const edit = JSON.stringify(withTarget('si-9300-tcp', 9300, 9999));
  const service = ['service', '-n', proxy.namespace, proxy.service.name];
  await cluster.sandbox.kubectl(['patch', ...service, '--type=strategic', '-p', edit]);

  await eventually(async () => {
    expect(await proxy.ports()).toEqual([...CHART, ours(9300)]);
    expect((await edited.told()).words).toMatchObject({ Ready: 'True Programmed' });
  });
});

test('rule 9: a port that another writer takes as a whole is theirs: they are named, and it stays when the StreamIngress goes', async () => {
  const taken = await ask('taken', { listen: 9400 });
  await taken.isReady();

  const { type, ...metadata } = proxy.service;
  const body = {
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata,
    ...withTarget('theirs', 9400, 9999),
  };
  const path = `/api/v1/namespaces/${proxy.namespace}/services/${proxy.service.name}`;
  const query = { fieldManager: 'somebody', force: 'true' };
  const contentType = 'application/apply-patch+yaml';
  expect((await cluster.send('PATCH', path, { body, contentType, query })).status).toBe(200);

  const { Programmed } = await taken.is({ Ready: 'False PortUnavailable' });
  expect(Programmed).toContain('the field manager somebody');
  await eventually(async () => {
    expect(await proxy.entries()).not.toHaveProperty('9400');
  });
  await taken.delete();
  await (await ask('next', { listen: 9401 })).isReady();
  expect(await proxy.ports()).toEqual([...CHART, ours(9401), 'theirs 9400/TCP -> 9999']);
});

/** All that is theirs in a shared object: what they say of it, and who holds what. */
async function foreignPart(place: Place): Promise<unknown> {
  const { metadata } = await cluster.get<{
    metadata: { managedFields: { manager: string; fieldsV1: object; operation: string }[] };
  }>(place);
  const others = metadata.managedFields.filter(({ manager }) => manager !== 'streamingress-controller');
  return others.map(({ manager, operation, fieldsV1 }) => ({ manager, operation, fieldsV1 }));
}

async function isReleased(place: Place): Promise<void> {
  await eventually(async () => {
    expect(JSON.stringify(await cluster.get(place))).not.toContain('streamingress-controller');
  });
}

describe('rule 9: writes', () => {
  test('open behind the entry and close before it, one apply for each object, without force', async () => {
    const written = await proxy.writesFromNowOn();
    const [toMap, toService] = ['patch tcp-services 200', `patch ${proxy.service.name} 200`];
    const first = await ask('ordered', { listen: 9500 });
    await first.isReady();
    expect(await written()).toEqual([toMap, toService]);

    // One pass that both closes and opens: both are there when it looks.
    process.kill(operator.pid, 'SIGSTOP');
    await first.delete();
    const second = await ask('instead', { listen: 9501 });
    process.kill(operator.pid, 'SIGCONT');
    await second.isReady();
    await eventually(async () => {
      expect(await proxy.entries()).not.toHaveProperty('9500');
    });
    expect((await written()).slice(2)).toEqual([toService, toMap, toService]);

    await second.delete();
    await eventually(async () => {
      expect(await proxy.entries()).not.toHaveProperty('9501');
      expect((await written()).slice(5)).toEqual([toService, toMap]);
    });
  });

  test('wait for a burst to end, so that a few applies say all of it', async () => {
    const written = await proxy.writesFromNowOn();
    const names = Array.from({ length: 20 }, (_, index) => `burst-${index}`);
    const streams: Stream[] = [];
    const times: number[] = [];
    for (const name of names) {
      streams.push(await ask(name, { listen: 9600 + streams.length }));
      times.push(performance.now());
    }
    for (const stream of streams) await stream.isReady();
    await operator.settled(proxy.namespace);
    // One for each of the two objects.
    const most = 2 * mostPasses(times, { quietMilliseconds: 1_000, longestMilliseconds: 5_000 });
    expect((await written()).length).toBeLessThanOrEqual(most);
  });
});

describe('rule 9: what others do to a key of ours', () => {
  test('removed, it comes back', async () => {
    const stream = await ask('removed', { listen: 9650 });
    await stream.isReady();
    await cluster.merge(proxy.tcp, { data: { 9650: null } });
    await eventually(async () => {
      expect(await proxy.entries()).toMatchObject({ 9650: `${shop}/db:5432` });
    });
    await stream.isReady();
  });

  test('changed, it is theirs, and they are named: nothing is forced', async () => {
    const stream = await ask('changed', { listen: 9660 });
    await stream.isReady();
    await cluster.merge(proxy.tcp, { data: { 9660: 'a/b:1' } }, 'somebody');
    const { Programmed } = await stream.is({ Stalled: 'True PortUnavailable' });
    expect(Programmed).toMatch(/^key 9660 of ConfigMap .* is held by the field manager somebody;/);
    await (await ask('beside', { listen: 9661 })).isReady();
    expect(await proxy.entries()).toMatchObject({ 9660: 'a/b:1', 9661: `${shop}/db:5432` });
    await cluster.merge(proxy.tcp, { data: { 9660: null } });
    await stream.isReady();
  });
});

test('rule 9: where changes never end, they are written all the same', async () => {
  const busy = await ask('busy', { listen: 9690 });
  const waiting = await ask('waiting', { listen: 9691 });
  let changes = 0;
  const change = (): Promise<unknown> =>
    cluster.merge(busy.place, { metadata: { annotations: { change: String(changes++) } } });
  await change();
  await eventually(async () => {
    await change();
    expect((await waiting.told()).words).toMatchObject({ Ready: 'True Programmed' });
  });
});

describe('rule 10: deletion', () => {
  test('defect (a delete that never cleans up): our last entry goes with everything that is ours, and all that is theirs stays as it was', async () => {
    await proxy.put(proxy.tcp, { data: { 9800: 'a/b:1' } });
    await cluster.merge(proxy.tcp, { metadata: { labels: { team: 'edge' } }, data: { 9801: 'c/d:2:PROXY' } });
    const [map, service] = [await foreignPart(proxy.tcp), await foreignPart(proxy.service)];
    const ports = await proxy.ports();
    const stream = await ask('last', { listen: 9802 });
    await stream.isReady();
    expect(await proxy.entries()).toEqual({ 9800: 'a/b:1', 9801: 'c/d:2:PROXY', 9802: `${shop}/db:5432` });

    await stream.delete();
    for (const place of [proxy.tcp, proxy.service]) await isReleased(place);
    expect(await proxy.entries()).toEqual({ 9800: 'a/b:1', 9801: 'c/d:2:PROXY' });
    expect(await proxy.ports()).toEqual(ports);
    expect([await foreignPart(proxy.tcp), await foreignPart(proxy.service)]).toEqual([map, service]);
    const { metadata } = await cluster.get(proxy.tcp);
    expect(metadata).toMatchObject({ labels: { team: 'edge' } });
    expect(metadata).not.toHaveProperty('annotations');
  });
});

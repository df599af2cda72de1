import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, deployments, eventually, services } from '../support/cluster.js';
import type { Cluster } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { Matcher } from '../support/faults.js';
import { requestsFromNowOn, settled, summary } from '../support/requests.js';
import { Scenario, writesIn } from '../support/stages.js';
import { Subject } from '../support/subject.js';
import { command } from '../support/commands.js';
import { installGatewayApi, referenceGrants } from '../support/gateway.js';
import { ownControlPlane } from '../support/test-clusters.js';

const user = 'operator-53';
const secrets = resourceType({ apiVersion: 'v1', kind: 'Secret' });
const { kind, config } = await loadKind('test/support/kinds/site.config.mjs');
const own = ownControlPlane({ users: [user] });
let cluster: Cluster;
let sites: Subject;

beforeAll(async () => {
  ({ cluster } = own);
  sites = await Subject.make(cluster, kind, 'sites');
  await startController({ ...{ cluster, user, kinds: [kind], config } });
});

async function put(
  type: typeof secrets,
  name: string,
  more: object,
  namespace = sites.namespace,
): Promise<void> {
  const { apiVersion, kind } = type;
  await cluster.create(type, { apiVersion, kind, metadata: { name, namespace }, ...more });
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const secret = (value: string): object => ({ data: { key: base64(value) } });

async function rendered(name: string): Promise<Readonly<Record<string, string>>> {
  const { data } = await cluster.get<{ data: Record<string, string> }>(sites.childPlace(configMaps, name));
  return data;
}

async function checksum(name: string): Promise<string | undefined> {
  type Live = { spec: { template: { metadata: { annotations?: Record<string, string> } } } };
  const live = await cluster.get<Live>(sites.childPlace(deployments, name));
  return live.spec.template.metadata.annotations?.['checksum/tls'];
}

test('a missing required reference stalls, without a retry, until it is there; a change of it renders again', async () => {
  await sites.create('web', { secret: 'web-tls' });

  const { message } = await sites.stalled('web', 'ReferenceNotFound');
  expect(message).toContain(
    `refers to Secret ${sites.namespace}/web-tls (references.tls), which isn't there`,
  );
  await settled(cluster, user, { namespace: sites.namespace });
  const requests = await requestsFromNowOn(cluster, user, sites.namespace);
  await put(secrets, 'another', secret('x'));
  await settled(cluster, user, { namespace: sites.namespace });
  expect((await requests()).map(summary)).toEqual([]);

  await put(secrets, 'web-tls', secret('one'));
  await sites.ready('web');
  const first = await checksum('web');
  expect(first).toMatch(/^keyed-[0-9a-f]{32}$/);
  expect(await rendered('web')).toEqual({
    ...{ color: 'none', backends: '', secret: 'apiVersion,checksum,kind,metadata,type' },
  });

  await cluster.merge({ type: secrets, namespace: sites.namespace, name: 'web-tls' }, secret('two'));
  await eventually(async () => {
    expect(await checksum('web')).not.toBe(first);
  });
  await settled(cluster, user, { namespace: sites.namespace });
});

test('no more is read than what is referred to, and what isn’t any more is given up', async () => {
  await put(secrets, 'swap-a', secret('a'));
  await put(secrets, 'swap-b', secret('b'));
  const requests = await requestsFromNowOn(cluster, user, sites.namespace);
  await sites.create('swap', { secret: 'swap-a' });
  await sites.ready('swap');
  const first = await checksum('swap');
  await sites.edit('swap', { secret: 'swap-b' });
  await eventually(async () => {
    expect(await checksum('swap')).not.toBe(first);
  });
  const second = await checksum('swap');

  await cluster.merge({ type: secrets, namespace: sites.namespace, name: 'swap-a' }, secret('c'));
  await settled(cluster, user, { namespace: sites.namespace });
  expect(await checksum('swap')).toBe(second);
  const reads = (await requests()).filter(({ objectRef }) => objectRef?.resource === 'secrets');
  expect(
    [...new Set(reads.map(({ verb, objectRef }) => `${verb} ${objectRef?.name ?? 'all'}`))].sort(),
  ).toEqual(['watch swap-a', 'watch swap-b']);
});

test('what is deleted stalls and keeps the children; recreated with another content, it renders again', async () => {
  await put(secrets, 'gone', secret('one'));
  await sites.create('gone', { secret: 'gone' });
  await sites.ready('gone');
  const first = await checksum('gone');

  await cluster.delete({ type: secrets, namespace: sites.namespace, name: 'gone' });
  await sites.stalled('gone', 'ReferenceNotFound');
  expect(await checksum('gone')).toBe(first);
  await put(secrets, 'gone', secret('two'));
  await sites.ready('gone');
  expect(await checksum('gone')).not.toBe(first);
});

test('objects by labels come and go', async () => {
  const tier = `t-${randomUUID().slice(0, 8)}`;
  const ports = [{ port: 80 }];
  const backend = (name: string): object => ({
    ...{ apiVersion: 'v1', kind: 'Service', spec: { ports } },
    metadata: { name, namespace: sites.namespace, labels: { tier } },
  });
  await put(secrets, 'many', secret('x'));
  await sites.create('many', { secret: 'many', tier });
  await sites.ready('many');
  for (const name of ['b', 'a']) await cluster.create(services, backend(`${tier}-${name}`) as never);
  await eventually(async () => {
    expect((await rendered('many')).backends).toBe(`${tier}-a,${tier}-b`);
  });
  await cluster.delete({ type: services, namespace: sites.namespace, name: `${tier}-a` });
  await eventually(async () => {
    expect((await rendered('many')).backends).toBe(`${tier}-b`);
  });
});

test('what one namespace refers to is bounded, and keeps no other from what it refers to', async () => {
  const crowd = new Subject(cluster, kind, await cluster.makeNamespace('crowd'));
  const text = 'x'.repeat(900_000);
  const names = [...Array(19).keys()].map((n) => `theme-${n}`);
  await put(secrets, 'crowd', secret('x'), crowd.namespace);
  for (const name of names) {
    await put(configMaps, name, { data: { text, color: name } }, crowd.namespace);
    await crowd.create(name, { secret: 'crowd', theme: name });
  }
  const stalled = await eventually(async () => {
    const all = await Promise.all(names.map(async (name) => crowd.get(name)));
    const reasons = all.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.reason);
    expect(reasons).not.toContain(undefined);
    expect(reasons).toContain('ReferenceTooLarge');
    return names.filter((_, index) => reasons[index] === 'ReferenceTooLarge');
  });
  expect(stalled.length).toBeLessThan(4);
  expect((await crowd.stalled(stalled[0]!, 'ReferenceTooLarge')).message).toMatch(
    /^Site crowd-\w+\/theme-\d+ refers to ConfigMap .* \(references\.theme\), which is too much: all that is referred to from the namespace crowd-\w+ has more than 16 MiB; /,
  );
  await put(secrets, 'beside', secret('x'));
  await sites.create('beside', { secret: 'beside' });
  await sites.ready('beside');
});

test('names of one namespace come to share a watch, and no change is missed, nor anything that is there, also with kills', async () => {
  await using scenario = await Scenario.start({ purpose: 'themes', kind: { kind, config } });
  const { subject, namespace, proxy } = scenario;
  const place = (name: string) => ({ type: configMaps, namespace, name });
  const paint = async (name: string, color: string) =>
    scenario.cluster.merge(place(`theme-${name}`), { data: { color } });
  const names = [...Array(14).keys()].map((n) => `s${n}`);
  const colors: Record<string, string> = Object.fromEntries(names.map((name) => [name, 'white']));
  const haveColors = (...some: readonly string[]) =>
    eventually(async () => {
      const found = await Promise.all(
        some.map(async (name) => {
          const { data } = await scenario.cluster.get<{ data: { color: string } }>(place(name));
          return [name, data.color];
        }),
      );
      expect(found).toEqual(some.map((name) => [name, colors[name]]));
    });
  await scenario.cluster.create(secrets, {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls', namespace } },
    ...secret('x'),
  });
  for (const name of names)
    await scenario.cluster.create(configMaps, {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `theme-${name}`, namespace } },
      data: { color: 'white' },
    });
  let isCounted = false;
  const isShared: Matcher = ({ resource, isWatch, query }) => {
    if (resource !== 'configmaps') return false;
    isCounted ||= query.get('limit') === '1';
    return isCounted && isWatch && !query.has('fieldSelector');
  };
  const open = () =>
    proxy.requests
      .filter(({ resource, isWatch, endedAt }) => resource === 'configmaps' && isWatch && !endedAt)
      .map(({ query }) => query.get('fieldSelector') ?? 'all');

  const gate = await scenario.held(isShared, async () => {
    for (const name of names) await subject.create(name, { secret: 'tls', theme: `theme-${name}` });
  });
  await haveColors(...names.slice(0, 10));
  await paint('s0', (colors.s0 = 'black'));
  await haveColors('s0');
  gate.open();
  for (const name of ['s1', 's12', 's13']) await paint(name, (colors[name] = 'red'));
  await haveColors(...names);
  // Those that have waited have watches of their own, and of the others there is one beside that of the children.
  await eventually(() => {
    expect(open().filter((each) => each === 'all')).toHaveLength(2);
    expect(open().length).toBeLessThan(6);
  });
  await paint('s2', (colors.s2 = 'blue'));
  await haveColors('s2');
  await scenario.cluster.delete(place('theme-s3'));
  colors.s3 = 'none';
  await haveColors('s3');
  await scenario.settled();
  const writesOf = (name: string) =>
    writesIn(proxy.requests).filter((line) => line.startsWith(`PATCH configmaps/${name} `));
  // Nothing was rendered of what was seen as missing for a moment.
  for (const name of names.slice(0, 11))
    expect(writesOf(name), name).toHaveLength(colors[name] === 'white' ? 1 : 2);

  // Where the next one is killed while it lists them, the one after has what has changed since.
  await scenario.controller.kill();
  isCounted = false;
  await scenario.killedWhileHeld(isShared, () => scenario.startController());
  await paint('s4', (colors.s4 = 'green'));
  await scenario.cluster.delete(place('theme-s5'));
  colors.s5 = 'none';
  const before = proxy.requests.length;
  await scenario.startController();
  await haveColors(...names);
  await scenario.settled();
  expect(
    writesIn(proxy.requests.slice(before))
      .filter((line) => /configmaps/.test(line))
      .sort(),
  ).toEqual(['PATCH configmaps/s4 200', 'PATCH configmaps/s5 200']);
  scenario.logsNoError();
});

test('another namespace has to permit it, and may take that back', async () => {
  const elsewhere = await cluster.makeNamespace('themes');
  await put(configMaps, 'dark', { data: { color: 'black' } }, elsewhere);
  await put(secrets, 'themed', secret('x'));
  await sites.create('themed', { secret: 'themed', theme: 'dark', themeNamespace: elsewhere });

  const { message } = await sites.stalled('themed', 'ReferenceNotPermitted');
  expect(message).toContain(
    `create a ReferenceGrant, whose CRD is part of the Gateway API, in the namespace ${elsewhere}`,
  );

  await installGatewayApi(cluster, [referenceGrants]);
  const spec = {
    from: [{ group: 'test.example.com', kind: 'Site', namespace: sites.namespace }],
    to: [{ group: '', kind: 'ConfigMap' }],
  };
  await put(referenceGrants, 'sites', { spec }, elsewhere);
  await sites.ready('themed');
  expect(await rendered('themed')).toMatchObject({ color: 'black' });

  await cluster.delete({ type: referenceGrants, namespace: elsewhere, name: 'sites' });
  await sites.stalled('themed', 'ReferenceNotPermitted');
});

test('diff and apply look references up in the cluster', async () => {
  const namespace = await cluster.makeNamespace('unwatched');
  const folder = await mkdtemp(join(tmpdir(), 'references-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'site.json');
  const cr = { apiVersion: 'test.example.com/v1', kind: 'Site', metadata: { name: 'once', namespace } };
  await writeFile(file, JSON.stringify({ ...cr, spec: { secret: 'once-tls', theme: 'light' } }));
  const options = ['--config', config, '--kubeconfig', own.sandbox.adminKubeconfig];

  const refused = await command('diff', file, ...options);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(`refers to Secret ${namespace}/once-tls (references.tls), which isn't there`),
  ]);
  await put(secrets, 'once-tls', secret('one'), namespace);
  await put(configMaps, 'light', { data: { color: 'white' } }, namespace);
  const { stdout } = await command('diff', file, ...options);
  expect(stdout).toContain('color: white');
  expect(stdout).not.toContain(base64('one'));
  expect((await command('apply', file, ...options)).code).toBe(0);
  await eventually(async () => {
    const { data } = await cluster.get<{ data: object }>({ type: configMaps, namespace, name: 'once' });
    expect(data).toMatchObject({ color: 'white' });
  });
});

import { beforeAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, deployments, eventually } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { resourceType } from '../../src/contract/resource.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const user = 'operator-109';
const [one, two] = [
  await loadKind('test/support/kinds/shop-1.config.mjs'),
  await loadKind('test/support/kinds/shop-2.config.mjs'),
];

let shops: Subject;

const start = async ({ config }: typeof one, ...args: string[]): Promise<RunningController> =>
  startController({
    ...{ cluster, user, kinds: [one.kind], config, namespaces: [shops.namespace] },
    args: args.length > 0 ? args : ['--on-upgrade', 'hold'],
  });

const image = async (name: string): Promise<unknown> => {
  const { spec } = await cluster.get<{ spec: { template: { spec: { containers: { image: string }[] } } } }>(
    shops.childPlace(deployments, name),
  );
  return spec.template.spec.containers[0]!.image;
};
const hasExtra = async (name: string, build: string): Promise<boolean> =>
  (await cluster.find(shops.childPlace(configMaps, `${name}-${build}`))) !== undefined;
const pending = async (name: string): Promise<string> => {
  const { message } = await shops.condition(name, {
    type: 'UpdatePending',
    status: 'True',
    reason: 'Deletes',
  });
  return message;
};
const isUpdated = async (name: string): Promise<void> => {
  await eventually(async () => {
    expect(await image(name)).toBe('web:2');
    expect([await hasExtra(name, 'one'), await hasExtra(name, 'two')]).toEqual([false, true]);
    const { status } = await shops.get(name);
    expect(status!.conditions!.map(({ type }) => type)).not.toContain('UpdatePending');
  });
};
const isHeld = async (name: string): Promise<void> => {
  expect(await image(name)).toBe('web:1');
  expect([await hasExtra(name, 'one'), await hasExtra(name, 'two')]).toEqual([true, false]);
};

beforeAll(async () => {
  shops = await Subject.make(cluster, one.kind, 'shops');
  await using first = await start(one, '--on-upgrade', 'apply');
  for (const name of ['held', 'edited', 'released', 'themed', 'lost', 'drifted']) {
    await shops.create(name, name === 'themed' ? { theme: 'dark' } : {});
    await eventually(() => isHeld(name));
    await settled(cluster, user);
  }
  expect(await first.stop()).toBe(0);
});

test('another build changes nothing until it is released, says what it would change, and is silent', async () => {
  await using controller = await start(two);
  const message = await pending('held');
  expect(message).toMatch(
    /^Build [0-9a-f]{8}: ConfigMap shops[^;]*held-one is deleted; Deployment [^ ]* rolls its pods: \.spec\.template\.spec\.containers\[name="web"\]\.image; ConfigMap [^ ]*held-two is created\. Held until/,
  );
  for (const name of ['edited', 'released', 'themed', 'lost', 'drifted']) await pending(name);
  await isHeld('held');
  await settled(cluster, user);
  // THEN it asks for nothing more, also after a kill
  let requests = await requestsFromNowOn(cluster, user);
  await shops.touch('held');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
  await controller.kill();

  requests = await requestsFromNowOn(cluster, user);
  await using second = await start(two);
  await second.reconciled('held');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);

  // WHEN a user edits one
  await shops.edit('edited', { text: 'bye' });
  await isUpdated('edited');
  // THEN it isn't held any more, and the others are
  await cluster.create(configMaps, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { color: 'black' } },
    metadata: { name: 'dark', namespace: shops.namespace },
  });
  await eventually(async () => {
    expect(await pending('themed')).toMatch(/env/);
  });
  await isHeld('themed');
  await shops.edit('edited', { text: 'bye', theme: 'dark' });
  await isUpdated('edited');

  // WHEN one is released
  const [build = ''] = /[0-9a-f]{8}/.exec(message) ?? [];
  await cluster.merge(shops.place('released'), {
    metadata: { annotations: { 'reconstruct.kosmos.io/release': build } },
  });
  await isUpdated('released');

  // WHEN a child goes
  await cluster.delete(shops.childPlace(configMaps, 'lost'));
  await eventually(async () => {
    expect(await cluster.find(shops.childPlace(configMaps, 'lost'))).toBeDefined();
  });
  await isHeld('lost');

  // WHEN another writer changes one
  await cluster.merge(shops.childPlace(deployments, 'drifted'), { spec: { replicas: 2 } });
  const { message: drift } = await shops.condition('drifted', { type: 'Drifted', status: 'True' });
  expect(drift).toMatch(/left Deployment [^ ]*drifted, changed by /);
  await isHeld('drifted');

  // WHEN the former build is back, and the next
  expect(await second.stop()).toBe(0);
  {
    await using back = await start(one);
    await back.reconciled('released');
    await settled(cluster, user);
    expect(await image('released')).toBe('web:2');
    await isHeld('held');
    expect(await back.stop()).toBe(0);
  }

  // WHEN all is applied
  await using last = await start(two, '--on-upgrade', 'apply');
  for (const name of ['held', 'edited', 'released', 'themed', 'lost', 'drifted']) await isUpdated(name);
  expect(await last.stop()).toBe(0);
});

test('reconstruct release has custom resources take the update by name and by label, and a rollout go on', async () => {
  const { adminKubeconfig } = cluster.sandbox;
  const args = ['--config', two.config, '--kinds', two.kind.name];
  const release = new Reconstruct('release', adminKubeconfig, args);
  const inShops = ['-n', shops.namespace];
  const names = ['by-name', 'by-label', 'stays'];
  await using first = await start(one, '--on-upgrade', 'apply');
  for (const name of names) {
    await shops.create(name, {});
    await eventually(() => isHeld(name));
  }
  for (const name of ['held', 'edited', 'released', 'themed', 'lost', 'drifted']) await shops.delete(name);
  await cluster.merge(shops.place('by-label'), { metadata: { labels: { tier: 'test' } } });
  await settled(cluster, user);
  expect(await first.stop()).toBe(0);
  await using controller = await start(two);
  for (const name of names) await pending(name);
  const ofKind = two.kind.name;

  // WHEN it is only shown
  const dry = await release.run(ofKind, '--dry-run', ...inShops);
  expect(dry).toMatchObject({ code: 0, stderr: '' });
  expect(dry.stdout.split('\n').map((line) => line.replace(/: .*/, ''))).toEqual([
    ...[...names].sort().map((name) => `Shop ${shops.namespace}/${name} would be released`),
    '',
  ]);
  expect(await release.run()).toMatchObject({ code: 2, stdout: '' });
  const { stdout: shown } = await new Reconstruct('status', adminKubeconfig, args).run(
    ofKind,
    ...inShops,
    '-o',
    'wide',
  );
  expect(shown).toMatch(/UpdatePending: True \(Deletes: Build [0-9a-f]{8}: .* rolls its pods/);
  for (const name of names) await isHeld(name);

  // WHEN one is named, and then those with a label
  expect(await release.run(ofKind, 'by-name', ...inShops)).toMatchObject({ code: 0, stderr: '' });
  await isUpdated('by-name');
  for (const name of ['by-label', 'stays']) await isHeld(name);
  expect(await release.run('-l', 'tier=test', ...inShops)).toMatchObject({ code: 0, stderr: '' });
  await isUpdated('by-label');
  await settled(cluster, user);
  await isHeld('stays');
  expect(await release.run(`${ofKind}/by-name`, ...inShops)).toMatchObject({ code: 0, stdout: '' });
  expect(await controller.stop()).toBe(0);

  // WHEN a rollout has stopped
  const leases = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });
  const { namespace } = shops;
  await cluster.create(leases, {
    ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: {} },
    metadata: {
      ...{ name: 'reconstruct', namespace },
      annotations: { [`rollout.reconstruct.kosmos.io/${ofKind}`]: '0a1b2c3d stopped Shop a is not ready' },
    },
  });
  const resumed = await release.run('--resume', '--operator-namespace', namespace);
  expect(resumed).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `Rollout of ${ofKind} resumed: build 0a1b2c3d, which had stopped: Shop a is not ready\n`,
  });
  const lease = await cluster.get<{ metadata: { annotations: object } }>({
    ...{ type: leases, namespace, name: 'reconstruct' },
  });
  expect(Object.values(lease.metadata.annotations)).toEqual([
    expect.stringMatching(/^0a1b2c3d resumed \d{4}-\d\d-\d\dT[\d:.]+Z$/),
  ]);
  expect((await release.run('--resume', '--operator-namespace', namespace)).stderr).toMatch(
    /no rollout has stopped/,
  );
});

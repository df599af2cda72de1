import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { mostPasses } from './support/burst.js';
import { Cluster, configMaps, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';

const user = 'operator-35';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shared-objects-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await cluster.close();
});

interface Stand extends AsyncDisposable {
  readonly kind: Kind;
  /** Where what is shared is. */
  readonly target: string;
  readonly share: (name: string, key: string, port: number) => Promise<void>;
  /** Somebody changes what is of no consequence; resolves once it was looked at. */
  readonly touch: (name: string) => Promise<void>;
  readonly drop: (name: string) => Promise<void>;
  readonly statusOf: (name: string) => Promise<unknown>;
  readonly entries: () => Promise<AnyObject & { readonly data?: Readonly<Record<string, string>> }>;
  readonly ports: () => Promise<number[]>;
  readonly putFront: () => Promise<void>;
  readonly restart: () => Promise<RunningController>;
}

/** A controller whose Shares are in one namespace, and what they share in another. */
async function newStand(group: string): Promise<Stand> {
  const namespace = await cluster.makeNamespace('shares');
  const target = await cluster.makeNamespace('target');
  const config = join(folder, `${group}.mjs`);
  const module = pathToFileURL(join(repoFolder(), 'test/full/kinds/share.mjs')).href;
  const options = JSON.stringify({ group, namespace: target });
  await writeFile(
    config,
    `import { shareKind } from ${JSON.stringify(module)};\nexport default { kinds: [shareKind(${options})] };\n`,
  );
  const [kind] = (await loadKinds({ config, builtIn: [] })) as [Kind];
  await installCrd(cluster, kind);
  const start = (): Promise<RunningController> =>
    startController({ cluster, user, kinds: [kind], config, namespaces: [namespace] });
  let controller = await start();
  const place = (name: string) => ({ type: kind.type, namespace, name });
  const front = { type: services, namespace: target, name: 'front' };
  return {
    kind,
    target,
    share: async (name, key, port) => {
      const { apiVersion, kind: type } = kind.type;
      const object = { apiVersion, kind: type, metadata: { namespace, name }, spec: { key, port } };
      await cluster.create(kind.type, object);
    },
    touch: async (name) => {
      const from = controller.log.length;
      await cluster.merge(place(name), { metadata: { annotations: { touched: 'yes' } } });
      await controller.logged(({ msg }) => msg === 'Reconciled', from);
    },
    drop: (name) => cluster.delete(place(name)),
    statusOf: async (name) => (await cluster.get(place(name))).status,
    entries: () => cluster.get({ type: configMaps, namespace: target, name: 'entries' }),
    ports: async () => {
      const { spec } = await cluster.get<{ spec: { ports: { port: number }[] } }>(front);
      return spec.ports.map(({ port }) => port);
    },
    putFront: async () => {
      const spec = { selector: { app: 'proxy' }, ports: [{ name: 'http', port: 80 }] };
      await cluster.apply(
        services,
        { apiVersion: 'v1', kind: 'Service', metadata: { namespace: target, name: 'front' }, spec },
        'helm',
      );
    },
    restart: async () => {
      await controller.kill();
      return (controller = await start());
    },
    [Symbol.asyncDispose]: () => controller.kill(),
  };
}

const entry = (target: string, data: object): AnyObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: target, name: 'entries' } },
  data,
});

const GOT = { got: true, why: '' };

test('many custom resources share two objects, beside what others have in them', async () => {
  await using stand = await newStand('shared.example.com');
  const { share, drop, statusOf, entries, ports, putFront, target } = stand;
  const requests = await requestsFromNowOn(cluster, user);

  // The ConfigMap is made, in one write for all; the Service is somebody else's to make.
  const times: number[] = [];
  for (let n = 0; n < 20; n++) {
    await share(`s${n}`, `k${n}`, 9_000 + n);
    times.push(performance.now());
  }
  await eventually(async () => {
    expect(Object.keys((await entries()).data ?? {})).toHaveLength(20);
    expect(await statusOf('s19')).toEqual({ got: false, why: 'TargetMissing' });
  });
  const applies = (await requests()).filter(
    ({ verb, objectRef }) => verb === 'patch' && objectRef?.name === 'entries',
  );
  const most = mostPasses(times, { quietMilliseconds: 200, longestMilliseconds: 1_000 });
  expect(applies.length).toBeLessThanOrEqual(most);

  await putFront();
  await eventually(async () => {
    expect(await ports()).toHaveLength(21);
    for (let n = 0; n < 20; n++) expect(await statusOf(`s${n}`)).toEqual(GOT);
  });
  expect(await ports()).toContain(80);

  // Deleted by others, changed by others: as it was.
  await cluster.delete({ type: configMaps, namespace: target, name: 'entries' });
  await eventually(async () => {
    expect(Object.keys((await entries()).data ?? {})).toHaveLength(20);
  });
  await cluster.merge({ type: configMaps, namespace: target, name: 'entries' }, { data: { k3: null } });
  await eventually(async () => {
    expect((await entries()).data?.k3).toBe('s3');
  });

  // Somebody is there already: seen beforehand, so nothing is asked for, also after a restart.
  await cluster.apply(configMaps, entry(target, { taken: 'theirs' }), 'helm');
  await share('late', 'taken', 9_100);
  await share('other', 'free', 9_101);
  await eventually(async () => {
    expect(await statusOf('late')).toEqual({ got: false, why: 'held by others' });
    expect(await statusOf('other')).toEqual(GOT);
  });
  expect((await entries()).data).toMatchObject({ taken: 'theirs', free: 'other' });
  expect(await ports()).not.toContain(9_100);
  const afterwards = await requestsFromNowOn(cluster, user);
  await (await stand.restart()).logged(({ msg }) => msg === 'Reconciled');
  expect(writes(await afterwards()).map(summary)).toEqual([]);

  // Nothing is left of ours, and all of theirs.
  for (let n = 0; n < 20; n++) await drop(`s${n}`);
  for (const name of ['late', 'other']) await drop(name);
  await eventually(async () => {
    const { data, metadata } = await entries();
    expect(data).toEqual({ taken: 'theirs' });
    expect(metadata.annotations ?? {}).toEqual({});
    expect(JSON.stringify(metadata)).not.toContain('share-controller');
    expect(await ports()).toEqual([80]);
  });
  const released = await requestsFromNowOn(cluster, user);
  await (await stand.restart()).logged(({ msg }) => msg === 'Reconciled');
  expect(writes(await released()).map(summary)).toEqual([]);
});

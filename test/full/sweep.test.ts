import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { Cluster, configMaps, events } from './support/cluster.js';
import { startController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn } from './support/requests.js';

const user = 'operator-36';
const config = join(repoFolder(), 'test/full/kinds/sweep.mjs');
const { sweep } = (await import(pathToFileURL(config).href)) as { readonly sweep: Kind };
const cluster = new Cluster(openSandbox(inject('sandbox')));

beforeAll(async () => {
  await installCrd(cluster, sweep);
});
afterAll(() => cluster.close());

async function put(namespace: string, name: string, expired: boolean): Promise<AnyObject> {
  const labels = expired ? { 'sweep.example.com/expired': 'yes' } : {};
  return cluster.create(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name, labels },
  });
}

async function putSweep(namespace: string): Promise<void> {
  const { apiVersion, kind } = sweep.type;
  await cluster.create(sweep.type, { apiVersion, kind, metadata: { namespace, name: 'all' }, spec: {} });
}

test('what others own is deleted by a policy, announced, audited, and nothing else is', async () => {
  const namespace = await cluster.makeNamespace('sweep');
  const names = Array.from({ length: 30 }, (_, n) => `old-${n}`);
  const uids = new Map<string, string | undefined>();
  for (const name of names) uids.set(name, (await put(namespace, name, true)).metadata.uid);
  await put(namespace, 'kept', false);
  await using controller = await startController({
    cluster,
    user,
    kinds: [sweep],
    config,
    namespaces: [namespace],
  });
  const requests = await requestsFromNowOn(cluster, user);
  await putSweep(namespace);

  await eventually(async () => {
    expect((await cluster.get({ type: sweep.type, namespace, name: 'all' })).status).toEqual({
      ...{ left: 0, refused: [], clockIsKnown: true },
    });
  });
  const left = (await cluster.list(configMaps, namespace)).map(({ metadata }) => metadata.name);
  expect(left.sort()).toEqual(['kept', 'kube-root-ca.crt'].filter((name) => left.includes(name)));
  expect((await requests()).filter(({ verb }) => verb === 'delete')).toHaveLength(30);

  const audits = controller.log.filter(({ sweptBy }) => sweptBy === 'all');
  expect(audits.map(({ name }) => name).sort()).toEqual([...names].sort());
  for (const { namespace: where, name, uid, outcome } of audits)
    expect({ where, uid, outcome }).toEqual({ where: namespace, uid: uids.get(name!), outcome: 'deleted' });
  await eventually(async () => {
    const told = await cluster.list<AnyObject & { reason: string; regarding: { name: string } }>(
      events,
      namespace,
    );
    const swept = told.filter(({ reason }) => reason === 'Expired').map(({ regarding }) => regarding.name);
    expect(swept.sort()).toEqual([...names].sort());
  });

  // Settled: nothing is asked for until something expires.
  const settled = await requestsFromNowOn(cluster, user);
  await put(namespace, 'also-kept', false);
  await put(namespace, 'new', true);
  await eventually(async () => {
    expect(await cluster.find({ type: configMaps, namespace, name: 'new' })).toBeUndefined();
  });
  expect((await settled()).filter(({ verb }) => verb === 'delete')).toHaveLength(1);
});

import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import type { Condition } from '../../src/contract/conditions.js';
import type { CustomResource } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { Cluster } from '../../src/testing/cluster.js';
import { eventually } from '../../src/testing/eventually.js';
import { installCrd } from '../../src/testing/account.js';
import { Operator } from '../../src/testing/operator.js';

interface Status {
  readonly observedGeneration: number;
  readonly updatedReplicas: number;
  readonly conditions: readonly Condition[];
}

type Bus = CustomResource<Readonly<Record<string, unknown>>, Status>;

const statefulSets = resourceType({ apiVersion: 'apps/v1', kind: 'StatefulSet' });
const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const pods = resourceType({ apiVersion: 'v1', kind: 'Pod' });

test('a setting replaces the servers of an EventBus, and what is no setting of theirs does not', async () => {
  const sandbox = openSandbox(inject('sandbox'));
  await using cluster = disposable(new Cluster(sandbox));
  const [kind] = await loadKinds({
    ...{ builtIn: [], config: join(repoFolder(), 'examples/event-bus/reconstruct.config.mjs') },
  });
  if (!kind) throw new Error('The example has no kind');
  await installCrd(cluster, kind);
  const namespace = await cluster.makeNamespace('event-bus');
  using operator = await Operator.start({
    ...{ kubeconfig: sandbox.adminKubeconfig, kinds: [kind], namespaces: [namespace] },
  });
  const bus = { type: kind.type, namespace, name: 'orders' };

  /** The state once all servers are ready with the present settings. */
  const settled = () =>
    eventually(
      async () => {
        const { metadata, status } = await cluster.get<Bus>(bus);
        const ready = status?.conditions.find(({ type }) => type === 'Ready');
        expect(ready).toMatchObject({ status: 'True', observedGeneration: metadata.generation });
        expect(status).toMatchObject({ updatedReplicas: 3 });
        const servers = await cluster.get({ ...bus, type: statefulSets });
        const uids = (await cluster.list(pods, namespace)).map((pod) => pod.metadata.uid).sort();
        return { servers, revision: (servers.status as { updateRevision: string }).updateRevision, uids };
      },
      { deadlineMilliseconds: 60_000 },
    );
  const { apiVersion, kind: name } = kind.type;
  await cluster.create(kind.type, {
    ...{ apiVersion, kind: name, metadata: { name: 'orders', namespace } },
    spec: { storage: { size: '1Gi' } },
  });
  const before = await settled();
  expect(before.uids).toHaveLength(3);

  await cluster.merge(bus, { spec: { whenDeleted: 'Delete' } });
  const kept = await settled();
  expect(kept.servers.metadata.generation).toBe((before.servers.metadata.generation ?? 0) + 1);
  expect([kept.revision, kept.uids]).toEqual([before.revision, before.uids]);

  await cluster.merge(bus, { spec: { maxPayloadKiB: 2048 } });
  const after = await settled();
  expect(after.revision).not.toBe(before.revision);
  expect(after.uids.filter((uid) => before.uids.includes(uid))).toEqual([]);
  const { data } = await cluster.get({ ...bus, type: configMaps });
  expect(data).toEqual({ 'nats.conf': expect.stringContaining('max_payload: 2097152\n') as string });

  await expect(cluster.merge(bus, { spec: { storage: { size: '2Gi' } } })).rejects.toThrow(
    /stay as they were made/,
  );
  await expect(cluster.merge(bus, { spec: { replicas: 1 } })).rejects.toThrow(/without a majority/);
  await cluster.merge(bus, { spec: { replicas: 5 } });
  await operator.stop();
});

function disposable(cluster: Cluster): Cluster & AsyncDisposable {
  return Object.assign(cluster, { [Symbol.asyncDispose]: () => cluster.close() });
}

import { configMaps } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';

const lock = { type: configMaps, namespace: 'default', name: 'fixed-node-ports' } satisfies Place;

/** The node ports that the examples name are there once in a cluster: whoever applies them waits for its turn. */
export async function withFixedNodePorts(cluster: Cluster, use: () => Promise<void>): Promise<void> {
  const { name, namespace } = lock;
  const claim = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } };
  await eventually(() => cluster.create(lock.type, claim), { deadlineMilliseconds: 240_000 });
  try {
    await use();
  } finally {
    await cluster.delete(lock);
  }
}

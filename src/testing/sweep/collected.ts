import type { Kind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { cleanedUp } from '../cleaned-up.js';
import type { Cluster } from '../cluster.js';
import { eventually } from '../eventually.js';

const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** The garbage collector looks for new kinds every half minute only. */
export async function requireCollected(
  cluster: Cluster,
  { type }: Kind,
  [sample]: readonly AnyObject[],
): Promise<void> {
  const namespace = await cluster.makeNamespace('sweep');
  await cleanedUp(
    () => requireCollectedIn(namespace, cluster, type, sample),
    () => cluster.send('DELETE', `/api/v1/namespaces/${namespace}`),
  );
}

async function requireCollectedIn(
  namespace: string,
  cluster: Cluster,
  type: ResourceType,
  sample: AnyObject | undefined,
): Promise<void> {
  const metadata = { name: 'collected', namespace };
  const owner = await cluster.create(type, {
    ...sample,
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata,
  });
  const { apiVersion, kind } = owner;
  const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid: owner.metadata.uid ?? '' }];
  const child = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, ownerReferences } };
  await cluster.create(configMaps, child);
  await cluster.delete({ type, ...metadata });
  await eventually(
    async () => {
      if (await cluster.find({ type: configMaps, ...metadata }))
        throw new Error(`The garbage collector doesn't know ${kind} yet`);
    },
    { deadlineMilliseconds: 90_000, intervalMilliseconds: 200 },
  );
}

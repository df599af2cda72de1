import { resourceType } from '../../../src/contract/resource.js';
import { grantObjects, heldRights } from '../../../src/testing/account.js';
import type { Grant } from '../../../src/testing/account.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

export { grant } from '../../../src/testing/account.js';
export type { Grant } from '../../../src/testing/account.js';

/** Takes away what it was granted, and waits until not one of these rights holds: nobody else gives any of them. */
export async function revoke(cluster: Cluster, given: Grant): Promise<void> {
  const { user } = given;
  const objects = grantObjects(given);
  for (const { apiVersion, kind, metadata } of objects.filter((object) => !object.rules)) {
    const { name, namespace } = metadata;
    const type = resourceType({ apiVersion, kind, namespaced: namespace !== undefined });
    await cluster.delete({ type, name, ...(namespace !== undefined && { namespace }) });
  }
  await eventually(async () => {
    const held = await Promise.all(
      objects.map(({ metadata, rules: of }) => heldRights(cluster, user, of ?? [], metadata.namespace)),
    );
    if (held.flat().length > 0) throw new Error(`${user} still may ${held.flat().join(', ')}`);
  });
}

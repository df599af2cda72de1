import type { Kind } from '../../contract/kind.js';
import { resourceType } from '../../contract/resource.js';
import { rulesFor } from '../../install/rules.js';
import type { Cluster } from '../cluster.js';
import { withdraw } from '../rights.js';

const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** Takes away what an operator of a kind was granted in the whole cluster, and its namespace with its account. */
export async function removeAccount(cluster: Cluster, kind: Kind, user: string): Promise<void> {
  await withdraw(cluster, { user, rules: rulesFor([kind]) });
  await cluster.delete({ type: namespaces, name: user }, { mayBeMissing: true });
}

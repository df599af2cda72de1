import { randomBytes } from 'node:crypto';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType } from '../contract/resource.js';
import { identityOf, grant, withdraw } from './account.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

/** Makes a kind known to the whole API server, and leaves nothing else. Can be called by any number of tests at once. */
export async function installCrd(cluster: Cluster, kind: Pick<Kind, 'type' | 'crd'>): Promise<void> {
  await eventually(() => cluster.apply(definitionType, kind.crd as unknown as AnyObject, 'test'));
  // Established isn't enough: the type is served a moment later.
  await eventually(() => cluster.list(kind.type, 'default'));
  // Whoever may finalize anything isn't asked about the kind, so the admin is of no use for this.
  const user = `probe-${randomBytes(6).toString('hex')}`;
  const rules = [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
    { apiGroups: [kind.crd.spec.group], resources: [`${kind.type.plural}/finalizers`], verbs: ['update'] },
  ];
  await cleanedUp(
    async () => {
      await grant(cluster, { user, rules });
      await eventually(() => requireKnownToAdmission(cluster, kind, user));
    },
    () => withdraw(cluster, { user, rules }),
  );
}

/**
 * The admission plugin OwnerReferencesPermissionEnforcement looks for new kinds every half minute only, and refuses
 * children of those that it doesn't know yet.
 */
async function requireKnownToAdmission(
  cluster: Cluster,
  { type, crd }: Pick<Kind, 'type' | 'crd'>,
  user: string,
): Promise<void> {
  const owner = { apiVersion: type.apiVersion, kind: type.kind, name: 'probe', uid: crd.metadata.name };
  const { status, body } = await cluster.send('POST', '/api/v1/namespaces/default/configmaps', {
    query: { dryRun: 'All' },
    impersonate: identityOf(user),
    body: {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name: 'probe', ownerReferences: [{ ...owner, blockOwnerDeletion: true }] },
    },
  });
  if (status !== 201) throw new Error(`The owner isn't known yet: ${String(body.message)}`);
}

/**
 * Does something, and cleans up after it however it ends.
 *
 * **Errors**: what `act` throws, whether or not it could be cleaned up then; else what `cleanUp` throws.
 */
export async function cleanedUp<T>(act: () => Promise<T>, cleanUp: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await act();
  } catch (error) {
    // As a rule it fails for the same reason.
    await cleanUp().catch(() => undefined);
    throw error;
  }
  await cleanUp();
  return result;
}

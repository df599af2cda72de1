import { servedType, storedVersion } from '../contract/crd.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { definitionType, nameOf } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import { INSTALLED_SELECTOR, isInstalled, otherInstallations } from './ours.js';
import { release, sharesOf } from './release.js';
import type { Share } from './release.js';

/** What users have made with an operator, and what was made of that. */
export interface Leavings {
  readonly shares: readonly Share[];
  readonly definitions: readonly AnyObject[];
  readonly resources: readonly { readonly type: ResourceType; readonly object: AnyObject }[];
}

/**
 * Finds what a purge takes. CRDs that weren't installed with the operator stay, and their custom resources with them.
 * @throws OperatorError `StillInUse` where another operator works with the CRDs
 */
export async function leavings(
  namespace: string,
  kinds: readonly Kind[],
  cluster: Cluster,
): Promise<Leavings> {
  const [other] = await otherInstallations(namespace, cluster);
  if (other) {
    const where = other.metadata.namespace ?? '';
    throw new OperatorError({
      reason: 'StillInUse',
      message: `An operator in the namespace ${where} still needs what --purge would take: remove it first, with "reconstruct uninstall --namespace ${where}"`,
    });
  }
  const labelled = await cluster.list(definitionType, { selector: INSTALLED_SELECTOR });
  const definitions = labelled.filter(isInstalled);
  const resources = await Promise.all(
    definitions.map(async (definition) => {
      const crd = definition as unknown as CustomResourceDefinition;
      const type = servedType(crd, storedVersion(crd));
      return (await cluster.list(type)).map((object) => ({ type, object }));
    }),
  );
  return { shares: await sharesOf(kinds, cluster), definitions, resources: resources.flat() };
}

/**
 * Takes it all, in this order: what is shared is given up, then custom resources go with what they own, then CRDs.
 * @returns what others' objects can't do without, such as the last port of a Service: that keeps nothing else
 */
export async function purge(
  { shares, definitions, resources }: Leavings,
  cluster: Cluster,
  tell: Tell,
): Promise<readonly OperatorError[]> {
  const refusals: OperatorError[] = [];
  for (const share of shares) {
    try {
      await release(share, cluster, tell);
    } catch (error) {
      if (!(error instanceof OperatorError) || error.reason !== 'Invalid') throw error;
      refusals.push(error);
    }
  }
  for (const { type, object } of resources) {
    // It stays until all that it owns is gone: without its CRD, nobody would know whose that was.
    await cluster.delete(type, object, 'Foreground');
    tell(`${nameOf(object)} deleted`);
  }
  const types = new Map(resources.map(({ type }) => [`${type.plural}.${type.apiVersion}`, type]));
  await cluster.until(async () => {
    const left = await Promise.all([...types.values()].map((type) => cluster.list(type)));
    const [first] = left.flat();
    return first ? `${nameOf(first)} is gone, with what it owns` : '';
  });
  for (const definition of definitions) {
    await cluster.delete(definitionType, definition, 'Background');
    tell(`${nameOf(definition)} deleted`);
  }
  await cluster.until(async () => {
    const left = await cluster.list(definitionType, { selector: INSTALLED_SELECTOR });
    const [first] = left.filter(({ metadata: { uid } }) =>
      definitions.some(({ metadata }) => metadata.uid === uid),
    );
    return first ? `${nameOf(first)} is gone` : '';
  });
  return refusals;
}

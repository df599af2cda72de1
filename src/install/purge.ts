import { servedType, storedVersion } from '../contract/crd.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType, nameOf } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import { INSTALLED_SELECTOR, isInstalled, otherInstallations, removalOf } from './ours.js';
import type { Installed } from './ours.js';
import { releaseAll, sharesOf } from './release.js';
import type { Share } from './release.js';

/** What users have made with an operator, and what was made of that. */
export interface Leavings {
  readonly shares: readonly Share[];
  readonly definitions: readonly AnyObject[];
  readonly resources: readonly Installed[];
}

/**
 * Finds what a purge takes. CRDs that weren't installed with the operator stay, and their custom resources with them.
 * @throws OperatorError `StillInUse` where another operator works with the CRDs, `UnknownKind` where one of them is of
 * none of these kinds
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
      message: `An operator in the namespace ${where} still needs what --purge would take: remove it first, with "${removalOf(other)}"`,
    });
  }
  const labelled = await cluster.list(definitionType, { selector: INSTALLED_SELECTOR });
  const definitions = labelled.filter(isInstalled);
  const known = new Set(kinds.map(({ crd }) => crd.metadata.name));
  const unknown = definitions.find(({ metadata }) => !known.has(metadata.name));
  if (unknown) {
    throw new OperatorError({
      reason: 'UnknownKind',
      message:
        `${nameOf(unknown)} was installed with a kind that isn't known here, so what its custom resources have put ` +
        'into shared objects would stay: name the configuration with that kind by --config, or delete the CRD yourself first',
    });
  }
  return {
    shares: await sharesOf(kinds, cluster),
    definitions,
    resources: await resourcesOf(definitions, cluster),
  };
}

async function resourcesOf(definitions: readonly AnyObject[], cluster: Cluster): Promise<Installed[]> {
  const resources = await Promise.all(
    definitions.map(async (definition) => {
      const crd = definition as unknown as CustomResourceDefinition;
      const type = servedType(crd, storedVersion(crd));
      return (await cluster.list(type)).map((object) => ({ type, object }));
    }),
  );
  return resources.flat();
}

/**
 * Takes all that is there now, in this order: what is shared is given up, then custom resources go with what they own,
 * also those that are made meanwhile, then CRDs. The controller has to be gone.
 * @returns what others' objects can't do without, such as the last port of a Service: that keeps nothing else
 * @throws OperatorError as `leavings` does, and whatever else the cluster refuses with
 */
export async function purge(
  namespace: string,
  kinds: readonly Kind[],
  cluster: Cluster,
  tell: Tell,
): Promise<readonly OperatorError[]> {
  const { shares, definitions } = await leavings(namespace, kinds, cluster);
  const refusals = await releaseAll(shares, () => sharesOf(kinds, cluster), cluster, tell);
  const asked = new Set<string | undefined>();
  await cluster.until(async () => {
    const left = await resourcesOf(definitions, cluster);
    for (const { type, object } of left.filter(({ object: { metadata } }) => !asked.has(metadata.uid))) {
      // It stays until all that it owns is gone: without its CRD, nobody would know whose that was.
      await cluster.delete(type, object, 'Foreground');
      asked.add(object.metadata.uid);
      tell(`${nameOf(object)} deleted`);
    }
    const [first] = left;
    return first ? `${nameOf(first.object)} is gone, with what it owns` : '';
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

import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { LEASE_NAME } from '../contract/names.js';
import { objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { isPartial, nameOf, namespaceType } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import { installedOperators } from './installed-operators.js';
import type { InstalledOperator } from './installed-operators.js';
import { leftoversIn } from './leftovers.js';
import { INSTALL_NAME } from './names.js';
import { deploymentType, installedIn, isHelms, isOf, isOperator, removalOf } from './ours.js';
import type { Installed } from './ours.js';
import { leavings, purge } from './purge.js';
import type { Leavings } from './purge.js';

export interface UninstallProps {
  /** Where the operator was installed. */
  readonly namespace: string;
  /** Those that may have written into what others share. */
  readonly kinds: readonly Kind[];
  /** Take CRDs, custom resources and what was made of them too. */
  readonly purge: boolean;
  /** Only tell. */
  readonly dryRun: boolean;
}

const leaseType = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/**
 * Removes what an installation has made. CRDs, custom resources, and what was made of them stay, unless they are
 * purged.
 *
 * **Guarantees.** Only what bears the labels of this installation is deleted, whatever options it was made with; of
 * objects that are shared, only our fields. The controller is gone before anything else goes. The namespace goes only if
 * the installation has made it and is seen to have nothing of others in it. Cut short, it can be done again.
 *
 * @throws OperatorError `StillInUse` where the operator was installed by others; whatever the cluster refuses with; of what is shared, once all the rest is done
 */
export async function uninstall(props: UninstallProps, cluster: Cluster, tell: Tell): Promise<void> {
  const { namespace } = props;
  await refuseForeign(namespace, cluster);
  const installed = await withLease(await installedIn(namespace, cluster, tell), namespace, cluster);
  const left = props.purge ? await leavings(namespace, props.kinds, cluster) : undefined;
  const home = await cluster.find(namespaceType, namespace);
  const ownHome = home && isOf(namespace, home) ? home : undefined;
  if (installed.length === 0 && !ownHome && !left?.definitions.length && !left?.shares.length) {
    tell(`Nothing is installed in the namespace ${namespace}${await elsewhere(cluster)}`);
    return;
  }
  if (props.dryRun) await foretell(installed, left, ownHome, cluster, tell);
  else await remove(props, installed, ownHome, cluster, tell);
}

/** Where there is an operator, as far as one may look. */
async function elsewhere(cluster: Cluster): Promise<string> {
  let found: readonly InstalledOperator[];
  try {
    found = await installedOperators(cluster);
  } catch (error) {
    if (isPartial(error)) return '';
    throw error;
  }
  const [first] = found;
  if (!first) return '';
  const names = found.map((operator) => operator.namespace).join(', ');
  return `; there is one in ${names}: --namespace ${first.namespace}`;
}

/** An operator that others have installed is theirs to remove, and would go on writing. */
async function refuseForeign(namespace: string, cluster: Cluster): Promise<void> {
  const found = await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME));
  if (!found || !isOperator(found) || isOf(namespace, found)) return;
  const who = isHelms(found)
    ? `Helm: remove it with "${removalOf(found)}"`
    : 'somebody else: let them remove it';
  throw new OperatorError({
    reason: 'StillInUse',
    message: `The operator in the namespace ${namespace} was installed by ${who}`,
  });
}

/** The controller's lease bears no label: without an installation it is that of somebody's own process. */
async function withLease(
  installed: readonly Installed[],
  namespace: string,
  cluster: Cluster,
): Promise<readonly Installed[]> {
  const [first, ...rest] = installed;
  const lease = first && (await cluster.find(leaseType, objectKey(namespace, LEASE_NAME)));
  return lease ? [first, { type: leaseType, object: lease }, ...rest] : installed;
}

async function remove(
  props: UninstallProps,
  installed: readonly Installed[],
  home: AnyObject | undefined,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const isController = ({ type }: Installed): boolean => type === deploymentType;
  const take = async ({ type, object }: Installed): Promise<void> => {
    await cluster.delete(type, object, isController({ type, object }) ? 'Foreground' : 'Background');
    tell(`${nameOf(object)} deleted`);
  };
  for (const each of installed.filter(isController)) {
    await take(each);
    await gone(each.type, each.object, cluster);
  }
  // What was seen before may not be all: the controller has worked until now.
  const refusals = props.purge ? await purge(props.namespace, props.kinds, cluster, tell) : [];
  for (const each of installed.filter((other) => !isController(other))) await take(each);
  const why = home ? await leftoversIn(home.metadata.name, cluster) : '';
  if (home && why !== '') tell(`${nameOf(home)} stays, ${why}`);
  else if (home) {
    await take({ type: namespaceType, object: home });
    await gone(namespaceType, home, cluster);
  }
  const [refusal] = refusals;
  if (refusal) throw refusal;
}

/** Foreground: until its Pods are gone too, so that none of them writes any more. */
async function gone(type: ResourceType, { metadata }: AnyObject, cluster: Cluster): Promise<void> {
  const key = objectKey(metadata.namespace, metadata.name);
  await cluster.until(async () => {
    const found = await cluster.find(type, key);
    return found?.metadata.uid === metadata.uid ? `${type.kind} ${key} is gone` : '';
  });
}

async function foretell(
  installed: readonly Installed[],
  left: Leavings | undefined,
  home: AnyObject | undefined,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const { shares = [], resources = [], definitions = [] } = left ?? {};
  for (const { object, fieldManager } of shares)
    tell(`${nameOf(object)} would be released from ${fieldManager}`);
  const going = [...resources, ...installed].map(({ object }) => object).concat(definitions);
  for (const object of going) tell(`${nameOf(object)} would be deleted`);
  if (!home) return;
  const ids = new Set(going.map(objectId));
  const why = await leftoversIn(home.metadata.name, cluster, (object) => ids.has(objectId(object)));
  tell(`${nameOf(home)} would ${why === '' ? 'be deleted' : `stay, ${why}`}`);
}

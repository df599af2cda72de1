import { servedType, storedVersion } from '../contract/crd.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { childrenFieldManager, LEASE_NAME } from '../contract/names.js';
import { controllerOf, objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { definitionType, isPartial, nameOf, namespaceType } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import {
  installedOperators,
  deploymentType,
  INSTALLED_SELECTOR,
  installedIn,
  isHelms,
  isInstalled,
  isOf,
  isOperator,
  otherInstallations,
  removalOf,
} from './installed.js';
import type { InstalledOperator, Installed } from './installed.js';
import { INSTALL_NAME } from './names.js';

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

/** How many are named. */
const NAMED = 3;

/** What Kubernetes itself puts into every namespace, or leaves there for a while. */
function isKubernetesOwn({ kind, metadata: { name } }: AnyObject): boolean {
  if (kind === 'ConfigMap') return name === 'kube-root-ca.crt';
  if (kind === 'ServiceAccount') return name === 'default';
  return ['Event', 'Endpoints', 'EndpointSlice'].includes(kind);
}

/**
 * Why a namespace can't be deleted without loss, for people: `since others have something in it: ...`. Empty where it
 * can. Reads metadata alone, since there may be Secrets in it.
 * @param isOurs what goes anyway
 */
async function leftoversIn(
  namespace: string,
  cluster: Cluster,
  isOurs: (object: AnyObject) => boolean = () => false,
): Promise<string> {
  const { types, unseen } = await cluster.namespacedTypes();
  const seen = new Map<string, AnyObject>();
  const unlisted = [...unseen];
  for (const type of types) {
    try {
      for (const object of await cluster.list(type, { namespace, metadataOnly: true }))
        seen.set(object.metadata.uid ?? objectId(object), object);
    } catch (error) {
      if (!isPartial(error)) throw error;
      unlisted.push(groupKind(type));
    }
  }
  const foreign = [...seen.values()].filter(
    (object) =>
      !isKubernetesOwn(object) &&
      object.metadata.deletionTimestamp === undefined &&
      // It goes with its owner, which is seen for itself.
      !seen.has(controllerOf(object)?.uid ?? '') &&
      !isOurs(object),
  );
  const reasons = [
    ...(foreign.length > 0 ? [`others have something in it: ${some(foreign.map(shortName))}`] : []),
    ...(unlisted.length > 0 ? [`${some(unlisted)} couldn't be looked at`] : []),
  ];
  return reasons.length > 0 ? `since ${reasons.join(', and since ')}` : '';
}

function shortName({ kind, metadata: { name } }: AnyObject): string {
  return `${kind} ${name}`;
}

function some(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return names.slice(0, NAMED).join(', ') + more;
}

/** What users have made with an operator, and what was made of that. */
interface Leavings {
  readonly shares: readonly Share[];
  readonly definitions: readonly AnyObject[];
  readonly resources: readonly Installed[];
}

/**
 * Finds what a purge takes. CRDs that weren't installed with the operator stay, and their custom resources with them.
 * @throws OperatorError `StillInUse` where another operator works with the CRDs, `UnknownKind` where one of them is of
 * none of these kinds
 */
async function leavings(namespace: string, kinds: readonly Kind[], cluster: Cluster): Promise<Leavings> {
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
async function purge(
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

/** Something of a kind's in an object that isn't its own. */
interface Share {
  readonly type: ResourceType;
  readonly object: AnyObject;
  readonly fieldManager: string;
}

/**
 * Where kinds have written into objects that are shared, by the record of the API server: whatever targets they were
 * told of, now or earlier.
 */
async function sharesOf(kinds: readonly Kind[], cluster: Cluster): Promise<Share[]> {
  const shares = await Promise.all(
    kinds.filter(({ rendering }) => 'together' in rendering).map((kind) => sharesOfKind(kind, cluster)),
  );
  // A port is closed before what it leads to is taken away.
  return shares.flat().sort((a, b) => rank(a) - rank(b));
}

async function sharesOfKind(kind: Kind, cluster: Cluster): Promise<Share[]> {
  const fieldManager = childrenFieldManager(kind.type.kind);
  const found = await Promise.all(
    appliedTypes(kind).map(async (type) => {
      const objects = await cluster.list(type, { metadataOnly: true });
      return objects
        .filter((object) => isManagedBy(fieldManager, object) && !controllerOf(object))
        .map((object) => ({ type, object, fieldManager }));
    }),
  );
  return found.flat();
}

function appliedTypes(kind: Kind): ResourceType[] {
  const types = kind
    .controllers({ render: () => [] })
    .flatMap(({ watches }) => watches)
    .filter(({ writes }) => writes?.includes('patch'))
    .map(({ type }) => type);
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

function isManagedBy(fieldManager: string, { metadata }: AnyObject): boolean {
  const { managedFields = [] } = metadata as {
    readonly managedFields?: readonly { manager?: string; operation?: string; subresource?: string }[];
  };
  return managedFields.some(
    ({ manager, operation, subresource }) =>
      manager === fieldManager && operation === 'Apply' && !subresource,
  );
}

function rank({ type }: Share): number {
  return type.kind === 'Service' ? 0 : 1;
}

/** How often it is looked again for what was replaced or has gone under the hand. */
const MOST_LOOKS = 10;

/**
 * Gives up all that is ours in these objects. Where one was replaced or has gone meanwhile, it is looked again.
 * @returns what others' objects can't do without: that keeps none of the others
 */
async function releaseAll(
  seen: readonly Share[],
  look: () => Promise<readonly Share[]>,
  cluster: Cluster,
  tell: Tell,
): Promise<OperatorError[]> {
  const refusals = new Map<string, OperatorError>();
  let shares = seen;
  for (let looks = 1; shares.length > 0; looks++) {
    let isStale = false;
    for (const share of shares) {
      try {
        await release(share, cluster, tell);
      } catch (error) {
        const reason = error instanceof OperatorError ? error.reason : undefined;
        if (reason === 'Invalid') refusals.set(idOf(share), error as OperatorError);
        else if ((reason === 'Conflict' || reason === 'NotFound') && looks < MOST_LOOKS) isStale = true;
        else throw error;
      }
    }
    shares = isStale ? (await look()).filter((share) => !refusals.has(idOf(share))) : [];
  }
  return [...refusals.values()];
}

function idOf({ object, fieldManager }: Share): string {
  return `${objectId(object)} ${fieldManager}`;
}

/** An intent that names nothing but the object gives up all that is ours in it, and nothing else. */
async function release({ type, object, fieldManager }: Share, cluster: Cluster, tell: Tell): Promise<void> {
  const { namespace, name, uid } = object.metadata;
  const nothing = {
    ...{ apiVersion: type.apiVersion, kind: type.kind },
    metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
  };
  await cluster.apply(type, nothing, { fieldManager, force: false });
  tell(`${nameOf(nothing)} released from ${fieldManager}`);
}

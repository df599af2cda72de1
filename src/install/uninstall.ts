import { servedType, storedVersion } from '../contract/crd.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { childrenFieldManager, LEASE_NAME } from '../contract/names.js';
import { controllerOf, objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { appliedEntry, definitionType, isPartial, keyOf, nameOf, namespaceType } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import {
  deploymentType,
  INSTALLED_SELECTOR,
  installedIn,
  installedOperators,
  isHelms,
  isInstalled,
  isOf,
  isOperator,
  otherInstallations,
  removalOf,
} from './installed.js';
import type { Installed } from './installed.js';
import { INSTALL_NAME } from './names.js';

export interface UninstallProps {
  /** Where the operator was installed. */
  readonly namespace: string;
  /** Kinds that may have written into shared objects. */
  readonly kinds: readonly Kind[];
  /** Removes CRDs, custom resources and their objects too. */
  readonly purge: boolean;
  /** Only prints what would be done. */
  readonly dryRun: boolean;
}

const leaseType = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/**
 * Removes what an installation has made. CRDs, custom resources and their objects stay, unless they are purged.
 *
 * **Guarantees.** Only objects with the labels of this installation are deleted, whatever options it was made with; of
 * shared objects, only our fields. The controller is gone before anything else goes. The namespace goes only if the
 * installation has made it and nothing of others is seen in it. After an interruption it can be run again.
 *
 * @throws OperatorError `StillInUse` where the operator was installed by others; whatever the cluster refuses with; what it
 * refuses of shared objects, once all the rest is done
 */
export async function uninstall(props: UninstallProps, cluster: Cluster, tell: Tell): Promise<void> {
  const { namespace } = props;
  const operator = await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME));
  if (operator && isOperator(operator) && !isOf(namespace, operator)) {
    const who = isHelms(operator)
      ? `Helm: remove it with "${removalOf(operator)}"`
      : 'another client: remove it there';
    throw stillInUse(`The operator in the namespace ${namespace} was installed by ${who}`);
  }
  const installed = await installedIn(namespace, cluster, tell);
  // It has no label; without an installation, it is that of a local process.
  const lease = installed[0] && (await cluster.find(leaseType, objectKey(namespace, LEASE_NAME)));
  if (lease) installed.splice(1, 0, { type: leaseType, object: lease });
  const left = props.purge ? await leavings(namespace, props.kinds, cluster) : NOTHING;
  const found = await cluster.find(namespaceType, namespace);
  const home = found && isOf(namespace, found) ? found : undefined;
  if (installed.length === 0 && !home && left.definitions.length + left.shares.length === 0)
    tell(`Nothing is installed in the namespace ${namespace}${await elsewhere(cluster)}`);
  else if (props.dryRun) await preview(installed, left, home, cluster, tell);
  else await remove(props, installed, home, cluster, tell);
}

/** Names where operators are, if that may be read. */
async function elsewhere(cluster: Cluster): Promise<string> {
  try {
    const names = (await installedOperators(cluster)).map(({ namespace }) => namespace);
    return names.length > 0 ? `; there is one in ${names.join(', ')}: --namespace ${names[0]}` : '';
  } catch (error) {
    if (isPartial(error)) return '';
    throw error;
  }
}

function stillInUse(message: string): OperatorError {
  return new OperatorError({ reason: 'StillInUse', message });
}

async function remove(
  { purge: isPurge, namespace, kinds }: UninstallProps,
  installed: readonly Installed[],
  home: AnyObject | undefined,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const [controllers, others] = [true, false].map((isController) =>
    installed.filter(({ type }) => (type === deploymentType) === isController),
  );
  for (const { type, object } of controllers ?? []) {
    // With its Pods, so that none of them writes any more.
    await deleteObject(type, object, 'Foreground', cluster, tell);
    await gone(type, object, cluster);
  }
  // What was read before may not be all: the controller has worked until now.
  const refusals = isPurge ? await purge(namespace, kinds, cluster, tell) : [];
  for (const { type, object } of others ?? []) await deleteObject(type, object, 'Background', cluster, tell);
  const why = home ? await leftoversIn(namespace, cluster) : '';
  if (home && why !== '') tell(`${nameOf(home)} stays, ${why}`);
  else if (home) {
    await deleteObject(namespaceType, home, 'Background', cluster, tell);
    await gone(namespaceType, home, cluster);
  }
  if (refusals[0]) throw refusals[0];
}

async function deleteObject(
  type: ResourceType,
  object: AnyObject,
  propagation: 'Background' | 'Foreground',
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  await cluster.delete(type, object, propagation);
  tell(`${nameOf(object)} deleted`);
}

async function gone(type: ResourceType, object: AnyObject, cluster: Cluster): Promise<void> {
  await cluster.until(async () => {
    const found = await cluster.find(type, keyOf(object));
    return found?.metadata.uid === object.metadata.uid ? `${type.kind} ${keyOf(object)} is gone` : '';
  });
}

async function preview(
  installed: readonly Installed[],
  { shares, resources, definitions }: Leavings,
  home: AnyObject | undefined,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  for (const { object, fieldManager } of shares)
    tell(`${nameOf(object)} would be released from ${fieldManager}`);
  const going = [...resources, ...installed].map(({ object }) => object).concat(definitions);
  for (const object of going) tell(`${nameOf(object)} would be deleted`);
  if (!home) return;
  const why = await leftoversIn(home.metadata.name, cluster, new Set(going.map(objectId)));
  tell(`${nameOf(home)} would ${why === '' ? 'be deleted' : `stay, ${why}`}`);
}

/** Reports whether Kubernetes itself puts this into every namespace, or leaves it there for a while. */
function isKubernetesOwn({ kind, metadata: { name } }: AnyObject): boolean {
  if (kind === 'ConfigMap') return name === 'kube-root-ca.crt';
  if (kind === 'ServiceAccount') return name === 'default';
  return ['Event', 'Endpoints', 'EndpointSlice'].includes(kind);
}

/**
 * Returns why a namespace can't be deleted without loss, as text; empty where it can. Reads metadata alone, since there may
 * be Secrets in it.
 * @param going ids of what goes anyway
 */
async function leftoversIn(
  namespace: string,
  cluster: Cluster,
  going: ReadonlySet<string> = new Set(),
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
      // A dependent goes with its owner, which is seen for itself.
      !seen.has(controllerOf(object)?.uid ?? '') &&
      !going.has(objectId(object)),
  );
  const names = foreign.map(({ kind, metadata: { name } }) => `${kind} ${name}`);
  const reasons = [
    ...(names.length > 0 ? [`others have something in it: ${firstOf(names)}`] : []),
    ...(unlisted.length > 0 ? [`${firstOf(unlisted)} couldn't be looked at`] : []),
  ];
  return reasons.length > 0 ? `since ${reasons.join(', and since ')}` : '';
}

function firstOf(names: readonly string[]): string {
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
}

/** Our fields in a shared object. */
interface Share {
  readonly type: ResourceType;
  readonly object: AnyObject;
  readonly fieldManager: string;
}

/** What a purge takes beside the installation. */
interface Leavings {
  readonly shares: readonly Share[];
  readonly definitions: readonly AnyObject[];
  readonly resources: readonly Installed[];
}

const NOTHING: Leavings = { shares: [], definitions: [], resources: [] };

/**
 * Finds what a purge takes. CRDs that weren't installed with the operator stay, and their custom resources with them.
 * @throws OperatorError `StillInUse` where another operator needs the CRDs, `UnknownKind` where one of them is of none of
 * these kinds
 */
async function leavings(namespace: string, kinds: readonly Kind[], cluster: Cluster): Promise<Leavings> {
  const [other] = await otherInstallations(namespace, cluster);
  if (other) {
    const where = other.metadata.namespace ?? '';
    throw stillInUse(
      `An operator in the namespace ${where} still needs what --purge would take: remove it first, with "${removalOf(other)}"`,
    );
  }
  const definitions = (await cluster.list(definitionType, { selector: INSTALLED_SELECTOR })).filter(
    isInstalled,
  );
  const unknown = definitions.find(
    ({ metadata: { name } }) => !kinds.some(({ crd }) => crd.metadata.name === name),
  );
  if (unknown) {
    throw new OperatorError({
      reason: 'UnknownKind',
      message:
        `${nameOf(unknown)} was installed with a kind that isn't known here, so what its custom resources have put ` +
        'into shared objects would stay: name the configuration with that kind by --config, or delete the CRD yourself first',
    });
  }
  const resources = await resourcesOf(definitions, cluster);
  return { shares: await sharesOf(kinds, cluster), definitions, resources };
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
 * Takes all that is there now: shared objects are released, then custom resources go with their objects, also those that
 * are created meanwhile, then CRDs. The controller has to be gone.
 * @returns refusals of what others' objects can't do without, such as the last port of a Service
 * @throws OperatorError as `leavings` does, and whatever else the cluster refuses with
 */
async function purge(
  namespace: string,
  kinds: readonly Kind[],
  cluster: Cluster,
  tell: Tell,
): Promise<readonly OperatorError[]> {
  const { shares, definitions } = await leavings(namespace, kinds, cluster);
  const refusals = await releaseAll(shares, cluster, tell);
  const deleted = new Set<string | undefined>();
  await cluster.until(async () => {
    const left = await resourcesOf(definitions, cluster);
    for (const { type, object } of left.filter((each) => !deleted.has(each.object.metadata.uid))) {
      // It stays until its objects are gone: without its CRD, garbage collection can't look up the owner.
      await deleteObject(type, object, 'Foreground', cluster, tell);
      deleted.add(object.metadata.uid);
    }
    return left[0] ? `${nameOf(left[0].object)} is gone, with what it owns` : '';
  });
  for (const definition of definitions)
    await deleteObject(definitionType, definition, 'Background', cluster, tell);
  for (const definition of definitions) await gone(definitionType, definition, cluster);
  return refusals;
}

/**
 * Finds the shared objects that kinds have written into, by managedFields: whatever targets they have now or had before.
 * A port is closed before its backend goes, so Services come first.
 */
async function sharesOf(kinds: readonly Kind[], cluster: Cluster): Promise<Share[]> {
  const sharing = kinds.filter(({ rendering }) => 'together' in rendering);
  const shares = await Promise.all(
    sharing.flatMap((kind) => {
      const fieldManager = childrenFieldManager(kind.type.kind);
      return appliedTypes(kind).map(async (type) => {
        const objects = await cluster.list(type, { metadataOnly: true });
        return objects
          .filter((object) => appliedEntry(object, fieldManager) && !controllerOf(object))
          .map((object) => ({ type, object, fieldManager }));
      });
    }),
  );
  const rank = ({ type }: Share): number => (type.kind === 'Service' ? 0 : 1);
  return shares.flat().sort((a, b) => rank(a) - rank(b));
}

function appliedTypes(kind: Kind): ResourceType[] {
  const types = kind
    .controllers({ render: () => [] })
    .flatMap(({ watches }) => watches)
    .filter(({ writes }) => writes?.includes('patch'))
    .map(({ type }) => type);
  return [...new Map(types.map((type) => [groupKind(type), type])).values()];
}

/**
 * Gives up our fields in these objects, by applying nothing but their identity. An object that is gone has none.
 * @returns what the API server refuses as invalid: that keeps none of the others
 */
async function releaseAll(
  shares: readonly Share[],
  cluster: Cluster,
  tell: Tell,
): Promise<readonly OperatorError[]> {
  const refusals: OperatorError[] = [];
  for (const { type, object, fieldManager } of shares) {
    const { namespace, name, uid } = object.metadata;
    const nothing = {
      ...{ apiVersion: type.apiVersion, kind: type.kind },
      metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
    };
    try {
      await cluster.apply(type, nothing, { fieldManager, force: false });
      tell(`${nameOf(nothing)} released from ${fieldManager}`);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      if (error.reason === 'Invalid') refusals.push(error);
      else if (await cluster.find(type, keyOf(object))) throw error;
    }
  }
  return refusals;
}

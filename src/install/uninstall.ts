import { servedType, storedVersion } from '../contract/crd.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import { hasFinalizers, isElsewhere } from '../contract/kind.js';
import type { Kind, OwnedKind, RenderedKind } from '../contract/kind.js';
import {
  childrenFieldManager,
  finalizerOf,
  LEASE_NAME,
  recordedFieldManager,
  selectorLabels,
} from '../contract/names.js';
import { controllerOf, describeRef, keyOf, objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { definitionType, groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { namespaceType } from './objects.js';
import { isPartial } from '../client/cluster.js';
import type { ClusterApi } from '../client/cluster.js';
import type { Report } from './objects.js';
import {
  deploymentType,
  INSTALLED_SELECTOR,
  installedIn,
  installedOperators,
  isHelms,
  isInstalled,
  isOf,
  isOperator,
  operatorOf,
  otherInstallations,
  removalOf,
} from './installed.js';
import type { Installed } from './installed.js';
import { INSTALL_NAME, kindName } from './names.js';
import { recordOf, wasAppliedBy } from '../values/projections.js';

export interface UninstallProps {
  readonly namespace: string;
  /** Kinds that may have written into shared objects. */
  readonly kinds: readonly Kind[];
  readonly purge: boolean;
  readonly dryRun: boolean;
}

/** Maximum number of custom resources of a kind that a dry run lists one a line; the rest are counted. */
const MAX_LINES = 20;

const leaseType = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/**
 * Removes what an installation has made. CRDs, custom resources and their objects stay, unless they are purged.
 *
 * **Guarantees.** Only objects with the labels of this installation are deleted, whatever options it was made with; of
 * shared objects, only our fields. The controller is gone before anything else goes. The namespace goes only if the
 * installation has made it and nothing of others is seen in it. After an interruption it can be run again.
 *
 * @returns how many objects of each kind go, or would go
 * @throws OperatorError `StillInUse` where the operator was installed by others; whatever the cluster refuses with; what it
 * refuses of shared objects, once all the rest is done
 */
export async function uninstall(
  props: UninstallProps,
  cluster: ClusterApi,
  report: Report,
): Promise<ReadonlyMap<string, number>> {
  const { namespace, kinds, purge } = props;
  const operator = await cluster.find(deploymentType, objectKey(namespace, INSTALL_NAME));
  if (operator && isOperator(operator) && !isOf(namespace, operator)) {
    const who = isHelms(operator)
      ? `Helm: remove it with "${removalOf(operator)}"`
      : 'another client: remove it there';
    throw stillInUse(`The operator in the namespace ${namespace} was installed by ${who}`);
  }
  const installed = await installedIn(namespace, cluster, report);
  // It has no label; without an installation, it is that of a local process.
  const lease = installed[0] && (await cluster.find(leaseType, objectKey(namespace, LEASE_NAME)));
  if (lease) installed.splice(1, 0, { type: leaseType, object: lease });
  const left = purge ? await leavings(namespace, kinds, cluster) : { shares: [], definitions: [] };
  // What a purge can't list is found out before anything goes.
  await resourcesOf(left.definitions, cluster);
  const found = await cluster.find(namespaceType, namespace);
  const home = found && isOf(namespace, found) ? found : undefined;
  const isAny = installed.length > 0 || home || left.definitions.length + left.shares.length > 0;
  const gone = isAny ? await remove(props, installed, home, cluster, report) : new Map<string, number>();
  if (!isAny) report(`Nothing is installed in the namespace ${namespace}${await elsewhere(cluster)}`);
  if (purge) await reportForeign(kinds, cluster, report);
  return gone;
}

/** Says which CRDs of these kinds a purge leaves. */
async function reportForeign(kinds: readonly Kind[], cluster: ClusterApi, report: Report): Promise<void> {
  const names = kinds.map(({ crd }) => crd.metadata.name);
  for (const crd of await cluster.list(definitionType))
    if (names.includes(crd.metadata.name) && !isInstalled(crd))
      report(
        `${definitionType.kind} ${crd.metadata.name} stays with its custom resources, since it was created by others: delete it yourself where that is meant`,
      );
}

/** Names where operators are, if that may be read. */
async function elsewhere(cluster: ClusterApi): Promise<string> {
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
  props: UninstallProps,
  installed: readonly Installed[],
  home: AnyObject | undefined,
  cluster: ClusterApi,
  report: Report,
): Promise<ReadonlyMap<string, number>> {
  const { purge: isPurge, namespace, kinds, dryRun } = props;
  const wouldGo = new Set<string>();
  const counts = new Map<string, number>();
  const count = ({ kind }: ResourceType): number => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts.get(kind) ?? 0;
  };
  const removed = async ({ type, object }: Installed, propagation: 'Background' | 'Foreground') => {
    if (dryRun) wouldGo.add(objectId(object));
    // All of a kind are judged alike, and there may be thousands.
    if (count(type) > MAX_LINES && dryRun) return;
    await cluster.delete(type, object, propagation, dryRun);
    const along = propagation === 'Foreground' ? ', with what it owns' : '';
    report(`${describeRef(object)} ${dryRun ? 'would be deleted' : 'deleted'}${along}`);
  };
  const gone = async ({ type, object }: Installed): Promise<void> => {
    const isThere = async (): Promise<boolean> =>
      (await cluster.find(type, keyOf(object)))?.metadata.uid === object.metadata.uid;
    if (!dryRun)
      await cluster.until(async () => ((await isThere()) ? `${type.kind} ${keyOf(object)} is gone` : ''));
  };
  // With its Pods, so that none of them writes any more.
  const controllers = installed.filter(({ type }) => type === deploymentType);
  for (const one of controllers) await removed(one, 'Foreground');
  for (const one of controllers) await gone(one);
  let refusals: readonly OperatorError[] = [];
  await releaseFinalizers(props, cluster, report);
  if (isPurge) {
    // What was read before may not be all: the controller has worked until now.
    const { shares, definitions } = await leavings(namespace, kinds, cluster);
    refusals = await releaseAll(shares, cluster, dryRun, report);
    const seen = new Set<string | undefined>();
    await cluster.until(async () => {
      const left = await resourcesOf(definitions, cluster);
      for (const one of left.filter(({ object }) => !seen.has(object.metadata.uid))) {
        // It stays until its objects are gone: without its CRD, garbage collection can't look up the owner.
        await removed(one, 'Foreground');
        seen.add(one.object.metadata.uid);
      }
      return left[0] && !dryRun ? `${describeRef(left[0].object)} is gone, with what it owns` : '';
    });
    // No garbage collector deletes them.
    for (const one of await recordedOf(definitions, kinds, cluster)) await removed(one, 'Background');
    for (const [kind, all] of counts)
      if (dryRun && all > MAX_LINES) report(`${kind}: ${all - MAX_LINES} more would be deleted`);
    for (const one of definitions) await removed(one, 'Background');
    for (const one of definitions) await gone(one);
  }
  for (const one of installed) if (!controllers.includes(one)) await removed(one, 'Background');
  const why = home ? await leftoversIn(namespace, cluster, wouldGo) : '';
  if (home && why !== '') report(`${describeRef(home)} ${dryRun ? 'would stay' : 'stays'}, ${why}`);
  else if (home) {
    await removed({ type: namespaceType, object: home }, 'Background');
    await gone({ type: namespaceType, object: home });
  }
  if (refusals[0]) throw refusals[0];
  return counts;
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
  cluster: ClusterApi,
  going: ReadonlySet<string>,
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
  const names = [...seen.values()].flatMap((object) => {
    const isLeft =
      !isKubernetesOwn(object) &&
      object.metadata.deletionTimestamp === undefined &&
      // A dependent goes with its owner, which is seen for itself.
      !seen.has(controllerOf(object)?.uid ?? '') &&
      !going.has(objectId(object));
    return isLeft ? [`${object.kind} ${object.metadata.name}`] : [];
  });
  const reasons = [
    ...(names.length > 0 ? [`others have something in it: ${firstOf(names)}`] : []),
    ...(unlisted.length > 0 ? [`${firstOf(unlisted)} couldn't be looked at`] : []),
  ];
  return reasons.length > 0 ? `since ${reasons.join(', and since ')}` : '';
}

function firstOf(names: readonly string[]): string {
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
}

interface Share extends Installed {
  readonly fieldManager: string;
}

interface Leavings {
  readonly shares: readonly Share[];
  readonly definitions: readonly Installed[];
}

/**
 * Finds what a purge takes beside the installation. CRDs that weren't installed with the operator stay, and their custom
 * resources with them.
 * @throws OperatorError `StillInUse` where another operator needs the CRDs, `UnknownKind` where one of them is of none of
 * these kinds
 */
async function leavings(namespace: string, kinds: readonly Kind[], cluster: ClusterApi): Promise<Leavings> {
  const [other] = await otherInstallations(namespace, cluster);
  if (other)
    throw stillInUse(
      `An operator in the namespace ${other.metadata.namespace ?? ''} still needs what --purge would take: remove it first, ` +
        `with "${removalOf(other)}"`,
    );
  const found = (await cluster.list(definitionType, { selector: INSTALLED_SELECTOR })).filter(isInstalled);
  const unknown = found.find(
    ({ metadata: { name } }) => !kinds.some(({ crd }) => crd.metadata.name === name),
  );
  if (unknown)
    throw new OperatorError({
      reason: 'UnknownKind',
      message:
        `${describeRef(unknown)} was installed with a kind that isn't known here, so what its custom resources have put ` +
        'into shared objects would stay: name the configuration with that kind by --config, or delete the CRD yourself first',
    });
  const definitions = found.map((object) => ({ type: definitionType, object }));
  return { shares: await sharesOf(kinds, cluster), definitions };
}

async function resourcesOf(definitions: readonly Installed[], cluster: ClusterApi): Promise<Installed[]> {
  const resources = await Promise.all(
    definitions.map(async ({ object }) => {
      const crd = object as unknown as CustomResourceDefinition;
      const type = servedType(crd, storedVersion(crd));
      return (await cluster.list(type)).map((each) => ({ type, object: each }));
    }),
  );
  return resources.flat();
}

/** Takes the finalizers off custom resources that no operator serves any more: they could never be deleted. */
async function releaseFinalizers(
  { kinds, namespace, dryRun }: UninstallProps,
  cluster: ClusterApi,
  report: Report,
): Promise<void> {
  const others = (await otherInstallations(namespace, cluster)).map(operatorOf);
  for (const kind of kinds) {
    const { type, rendering } = kind;
    if (!('each' in rendering) || !hasFinalizers(rendering.each)) continue;
    const own = finalizerOf(type.kind);
    const serving = others.filter((other) => other.kinds.includes(kindName(kind)));
    for (const object of await cluster.list(type)) {
      const { namespace: where = '', finalizers } = object.metadata;
      const isServed = serving.some(({ watchNamespaces }) => watchNamespaces?.includes(where) ?? true);
      if (isServed || !finalizers?.includes(own)) continue;
      if (!dryRun) await cluster.removeFinalizer(type, object, own);
      report(`${describeRef(object)}: finalizer ${own} ${dryRun ? 'would be taken off' : 'taken off'}`);
    }
  }
}

/** Finds what custom resources of these definitions have made without an owner reference, as elsewhere. */
async function recordedOf(
  definitions: readonly Installed[],
  kinds: readonly Kind[],
  cluster: ClusterApi,
): Promise<Installed[]> {
  const purged = kinds.filter(({ crd }) =>
    definitions.some(({ object }) => object.metadata.name === crd.metadata.name),
  );
  const found = purged.flatMap(({ type: owner, rendering }) => {
    if (!('each' in rendering)) return [];
    const { children, formerChildren = [] } = rendering.each as Partial<OwnedKind> & RenderedKind;
    // Made during a deletion, any of them may be recorded alone.
    const types = [...children, ...formerChildren].filter(
      (type) => isElsewhere(owner, type) || rendering.each.finalizes !== undefined,
    );
    const [selector] = Object.keys(selectorLabels(owner, ''));
    return types.map(async (type) => {
      const objects = await cluster.list(type, { metadataOnly: true, ...(selector && { selector }) });
      return objects.flatMap((object) => (isRecordedFor(owner, object) ? [{ type, object }] : []));
    });
  });
  return (await Promise.all(found)).flat();
}

function isRecordedFor(type: ResourceType, object: AnyObject): boolean {
  const { owner, of } = recordOf(object) ?? {};
  if (controllerOf(object) || owner === undefined || of?.groupKind !== groupKind(type) || of.isKept)
    return false;
  return wasAppliedBy(recordedFieldManager(type.kind, owner), object);
}

/**
 * Finds the shared objects that kinds have written into, by managedFields: whatever targets they have now or had before.
 * A port is closed before its backend goes, so Services come first.
 */
async function sharesOf(kinds: readonly Kind[], cluster: ClusterApi): Promise<Share[]> {
  const shares: Share[] = [];
  for (const kind of kinds.filter(({ rendering }) => 'together' in rendering)) {
    const fieldManager = childrenFieldManager(kind.type.kind);
    const watches = kind.controllers({ render: () => [] }).flatMap((controller) => controller.watches);
    const types = watches.filter(({ writes }) => writes?.includes('patch')).map(({ type }) => type);
    for (const type of new Map(types.map((each) => [groupKind(each), each])).values())
      for (const object of await cluster.list(type, { metadataOnly: true }))
        if (wasAppliedBy(fieldManager, object) && !controllerOf(object))
          shares.push({ type, object, fieldManager });
  }
  const rank = ({ type }: Share): number => (type.kind === 'Service' ? 0 : 1);
  return shares.sort((a, b) => rank(a) - rank(b));
}

/**
 * Gives up our fields in these objects, by applying nothing but their identity. An object that is gone has none.
 * @returns what is refused for good, such as the removal of the last port of a Service: that keeps none of the others
 */
async function releaseAll(
  shares: readonly Share[],
  cluster: ClusterApi,
  dryRun: boolean,
  report: Report,
): Promise<readonly OperatorError[]> {
  const refusals: OperatorError[] = [];
  for (const { type, object, fieldManager } of shares) {
    const { namespace, name, uid } = object.metadata;
    const nothing = {
      ...{ apiVersion: type.apiVersion, kind: type.kind },
      metadata: { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) },
    };
    try {
      await cluster.apply(type, nothing, { fieldManager, force: false, dryRun });
      report(`${describeRef(nothing)} ${dryRun ? 'would be ' : ''}released from ${fieldManager}`);
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      if (!(await cluster.find(type, keyOf(object)))) continue;
      if (error.retry !== 'onChange') throw error;
      if (dryRun) report(`${describeRef(nothing)} can't be released: ${error.message}`);
      else refusals.push(error);
    }
  }
  return refusals;
}

import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind } from '../contract/kind.js';
import { describeRef, keyOf, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { definitionName, definitionType, resourceType } from '../contract/resource.js';
import { namespaceType, prometheusRuleType, serviceMonitorType, typeOf } from './objects.js';
import type { ClusterApi } from '../client/cluster.js';
import type { Report } from './objects.js';
import {
  PART_SELECTOR,
  commandInUse,
  installedIn,
  isHelms,
  isInstalled,
  isOf,
  operatorOf,
  optionsInUse,
  otherInstallations,
  removalOf,
} from './installed.js';
import { installManifests } from './manifests.js';
import { INSTALLATION_LABEL, INSTALL_LABELS, INSTALL_MANAGER, accessName, kindName } from './names.js';
import { optionsOf } from './props.js';
import type { InstallOptions, InstallProps, MonitoringPart, MonitoringProps } from './props.js';
import { CLUSTER, operatorRules } from './rules.js';
import type { PolicyRule, RightsProps } from './rules.js';
import { isDeepStrictEqual } from 'node:util';
import { appliedEntry } from '../values/projections.js';

export interface InstallRequest {
  /** Whether options are dropped that the present installation has and this one leaves out. @default false */
  readonly replace?: boolean;
  /** Whether nothing is written, and what would be done comes from dry runs of the API server. @default false */
  readonly dryRun?: boolean;
  /** Options that a proposed command has in place of those in use. @default - none */
  readonly given?: InstallOptions;
  /** Rejects where present CRDs must not be changed so. @default - any change is made */
  readonly checkDefinitions?: (changes: readonly DefinitionChange[]) => Promise<void>;
}

/** A CustomResourceDefinition in the cluster, and what is about to be applied. */
export interface DefinitionChange {
  readonly present: CustomResourceDefinition & {
    readonly status?: { readonly storedVersions?: readonly string[] };
  };
  readonly next: CustomResourceDefinition;
}

interface Step {
  readonly object: AnyObject;
  readonly present: AnyObject | undefined;
}

/**
 * Makes the cluster hold this installation, and nothing of an earlier one in its namespace.
 *
 * **Guarantees.** Objects of others aren't touched, but for CRDs of the same names, which are updated and remain theirs.
 * Nothing is written where something is in the way. CRDs are served before anything needs them. A second run changes
 * nothing.
 *
 * @throws OperatorError `AlreadyInstalled`, `OwnershipConflict`, `OptionsLeftOut`, and whatever the cluster refuses with
 */
export async function applyInstallation(
  props: InstallProps,
  cluster: ClusterApi,
  report: Report,
  { replace = false, dryRun = false, given = {}, checkDefinitions }: InstallRequest = {},
): Promise<void> {
  const objects = installManifests(props);
  await refuseOverlap(props, cluster);
  const steps = await stepsFor(objects, cluster);
  refuseForeign(props.namespace, steps);
  const installed = await installedIn(props.namespace, cluster, report);
  if (!replace)
    refuseLosses(
      props,
      installed.map(({ object }) => object),
      given,
    );
  const definitions = steps.filter(({ object: { kind } }) => kind === definitionType.kind);
  const changes = definitions.flatMap(({ object: next, present }) => (present ? [{ present, next }] : []));
  await checkDefinitions?.(changes as unknown as DefinitionChange[]);
  const isNew = steps.some(({ object, present }) => object.kind === 'Namespace' && !present);
  for (const step of steps) {
    // In a namespace that isn't there yet, nothing can be tried.
    if (dryRun && isNew && step.object.metadata.namespace === props.namespace)
      report(`${describeRef(step.object)} would be created`);
    else await applyStep(step, { namespace: props.namespace, dryRun }, cluster, report);
    if (step === definitions.at(-1) && !dryRun) await established(definitions, cluster);
  }
  const wanted = new Set(objects.map(objectId));
  for (const { type, object } of installed.filter((each) => !wanted.has(objectId(each.object)))) {
    await cluster.delete(type, object, 'Background', dryRun);
    report(`${describeRef(object)} ${dryRun ? 'would be ' : ''}deleted`);
  }
}

/** Waits for objects that are being deleted: they can't be kept. */
async function stepsFor(objects: readonly AnyObject[], cluster: ClusterApi): Promise<readonly Step[]> {
  let steps: readonly Step[] = [];
  await cluster.until(async () => {
    const presents = objects.map((object) => cluster.find(typeOf(object), keyOf(object)));
    const found = await Promise.all(presents);
    steps = objects.map((object, index) => ({ object, present: found[index] }));
    const going = found.find((present) => present?.metadata.deletionTimestamp !== undefined);
    return going ? `${describeRef(going)}, which is being deleted, is gone` : '';
  });
  return steps;
}

/** @throws OperatorError `OwnershipConflict`; namespaces of others are used as they are, and CRDs have one name for all */
function refuseForeign(namespace: string, steps: readonly Step[]): void {
  const foreign = steps.find(
    ({ object: { kind }, present }) =>
      present && kind !== 'Namespace' && kind !== definitionType.kind && !isOf(namespace, present),
  )?.present;
  if (!foreign) return;
  const remedy = isHelms(foreign)
    ? `Helm: change it with "helm upgrade", or remove it first with "${removalOf(foreign)}"`
    : 'another client: remove it, or install into another namespace with --namespace';
  const message = `${describeRef(foreign)} exists and was created by ${remedy}`;
  throw new OperatorError({ reason: 'OwnershipConflict', message });
}

async function applyStep(
  { object, present }: Step,
  { namespace, dryRun }: { readonly namespace: string; readonly dryRun: boolean },
  cluster: ClusterApi,
  report: Report,
): Promise<void> {
  if (object.kind === 'Namespace' && present && !isOf(namespace, present)) {
    report(`${describeRef(object)} ${dryRun ? 'would be ' : ''}left as it is`);
    return;
  }
  const uid = present?.metadata.uid;
  // A CRD of others would be purged with ours if it had our labels.
  const isForeign = present?.kind === definitionType.kind && !isInstalled(present);
  const { labels = {}, ...metadata } = object.metadata;
  const own = Object.entries(labels).filter(([name, value]) => !isForeign || INSTALL_LABELS[name] !== value);
  // With the UID, what is deleted meanwhile isn't created again.
  const body = {
    ...object,
    metadata: {
      ...{ ...metadata, ...(uid !== undefined && { uid }) },
      ...(own.length > 0 && { labels: Object.fromEntries(own) }),
    },
  };
  const options = { fieldManager: INSTALL_MANAGER, force: true, dryRun };
  const applied = await cluster.apply(typeOf(object), body, options);
  const same = present !== undefined && isUnchanged(present, applied.object);
  const done = applied.created ? 'created' : 'configured';
  report(`${describeRef(object)} ${same ? 'unchanged' : dryRun ? `would be ${done}` : done}`);
}

async function established(definitions: readonly Step[], cluster: ClusterApi): Promise<void> {
  await cluster.until(async () => {
    for (const { object } of definitions) {
      const crd = await cluster.find(definitionType, object.metadata.name);
      // Null in a CRD that has just been created.
      type Conditions = readonly { readonly type: string; readonly status: string }[] | null;
      const { conditions } = (crd?.status ?? {}) as { readonly conditions?: Conditions };
      if (!conditions?.some(({ type, status }) => type === 'Established' && status === 'True'))
        return `the API server serves ${object.metadata.name}`;
    }
    return '';
  });
}

/**
 * Reports whether our apply has changed nothing, though others may have written their status, or an annotation, between our
 * read and our apply: the time in our own entry of managedFields stays as it is where nothing changes.
 */
function isUnchanged(before: AnyObject, after: AnyObject): boolean {
  const own = appliedEntry(INSTALL_MANAGER, before);
  const isSame = own !== undefined && isDeepStrictEqual(own, appliedEntry(INSTALL_MANAGER, after));
  return isSame && before.metadata.generation === after.metadata.generation;
}

/** Options of which another value, or none, is no loss. */
const NO_LOSS: ReadonlySet<string> = new Set([
  ...['--image', '--replicas', '--monitoring-labels', '--runbooks'],
]);
/** Options of which each value is lost by itself. */
const LISTS: ReadonlySet<string> = new Set(['--kinds', '--watch-namespace', '--monitoring']);

/**
 * @throws OperatorError `OptionsLeftOut`, with the command that keeps the options in use. Another value of an option is no
 * loss, nor is more of a list, or Roles in place of a ClusterRole.
 */
function refuseLosses(props: InstallProps, present: readonly AnyObject[], given: InstallOptions): void {
  const { namespace } = props;
  const inUse = optionsInUse(present);
  const next = optionsOf(props);
  // A deleted namespace has taken its Roles with it.
  const isThere = (watched: string): boolean =>
    present.some(
      ({ kind, metadata }) =>
        kind === 'Role' && metadata.namespace === watched && metadata.name === accessName(namespace, 'view'),
    );
  const lost = Object.entries(inUse).flatMap(([name, value]) => {
    if (NO_LOSS.has(name)) return [];
    const isScope = name === '--watch-namespace';
    const kept = next[name]?.split(',');
    if (!kept) return [`${isScope ? 'its limit to ' : ''}${name} ${value}`.trimEnd()];
    if (!LISTS.has(name)) return [];
    const gone = value.split(',').filter((each) => !kept.includes(each) && (!isScope || isThere(each)));
    return gone.length > 0 ? [`${name} ${gone.join()}`] : [];
  });
  if (lost.length === 0) return;
  throw new OperatorError({
    reason: 'OptionsLeftOut',
    message:
      `With these options the operator in the namespace ${namespace} would lose ${lost.join('; ')}: keep the options ` +
      `in use with "${commandInUse(namespace, inUse, given)}", or add --replace to drop what is left out`,
  });
}

/**
 * @throws OperatorError `AlreadyInstalled` where another operator reconciles the same, or writes into the same objects for
 * other namespaces: each would remove what it doesn't know of
 */
async function refuseOverlap(props: InstallProps, cluster: ClusterApi): Promise<void> {
  const refused = (message: string): OperatorError =>
    new OperatorError({ reason: 'AlreadyInstalled', message });
  for (const deployment of await otherInstallations(props.namespace, cluster)) {
    const other = operatorOf(deployment);
    const common = props.kinds.filter((kind) => other.kinds.includes(kindName(kind)));
    if (common.length === 0) continue;
    const [mine, theirs] = [props.watchNamespaces, other.watchNamespaces];
    if (!mine || !theirs || mine.some((name) => theirs.includes(name)))
      throw refused(
        `An operator in the namespace ${other.namespace} already looks after ${common.map(kindName).sort().join(', ')} here: ` +
          `remove it with "${removalOf(deployment)}", or divide kinds or namespaces with --kinds or --watch-namespace`,
      );
    const taken = await sharedObjectsOf(other.namespace, cluster);
    for (const kind of common) {
      const own = operatorRules([kind], props).flatMap((rule) =>
        (rule.namespaces ?? []).flatMap((name) => writtenObjects(name, rule)),
      );
      const object = own.find((each) => taken.has(each));
      if (object === undefined) continue;
      const both = [...new Set([...theirs, ...mine])].sort();
      throw refused(
        `The operator in the namespace ${other.namespace} writes for ${kindName(kind)} to ${object} too, and they ` +
          `would undo each other's work: let it look after all of them, with ${isHelms(deployment) ? 'watchNamespaces' : '--watch-namespace'} ` +
          `${both.join()}, or have this one write elsewhere, by the kind's options or the policy`,
      );
    }
  }
}

const roleType = resourceType({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' });

/** Returns the objects that an installation may write by its Roles; its policy may have changed since it read it. */
async function sharedObjectsOf(namespace: string, cluster: ClusterApi): Promise<Set<string>> {
  const roles = await cluster.list(roleType, {
    selector: `${PART_SELECTOR},${INSTALLATION_LABEL}=${namespace}`,
  });
  const own = roles.filter(({ metadata }) => metadata.name === accessName(namespace));
  return new Set(
    own.flatMap(({ metadata, rules = [] }) =>
      (rules as readonly PolicyRule[]).flatMap((rule) => writtenObjects(metadata.namespace ?? '', rule)),
    ),
  );
}

/** A right on all objects of a type, which may be there for another kind, is `*`, and not one on each object. */
function writtenObjects(
  namespace: string,
  { apiGroups, resources, verbs, resourceNames = ['*'] }: PolicyRule,
): string[] {
  if (!verbs.includes('patch') && !verbs.includes('delete')) return [];
  const types = apiGroups.flatMap((group) => resources.map((each) => `${each}${group && `.${group}`}`));
  return types.flatMap((type) => resourceNames.map((name) => `${type} ${namespace}/${name}`));
}

/** Returns the namespaces, beside the operator's own, in which a kind needs a Role whatever is watched. */
export function foreignNamespaces(kind: Kind, props: RightsProps): string[] {
  const needed = operatorRules([kind], props).flatMap(({ namespaces = [] }) => namespaces);
  return [...new Set(needed)].filter((namespace) => namespace !== props.namespace && namespace !== CLUSTER);
}

/** Returns the kinds whose rights can be given in any cluster. @param report is called for each kind that is left out */
export function kindsForAnyCluster(props: InstallProps, report: Report): Kind[] {
  return props.kinds.filter((kind) => {
    const [namespace] = foreignNamespaces(kind, props);
    if (namespace !== undefined)
      report(
        `${kindName(kind)} needs rights in the namespace ${namespace}, which may not be there: it is left out; name it to ` +
          `have it, as in --kinds ${props.kinds.map(({ name }) => name).join()}`,
      );
    return namespace === undefined;
  });
}

/**
 * Returns the kinds whose rights can be given in this cluster: a Role needs its namespace, which isn't ours to create.
 * @param mayLeaveOut leaves out a kind that can't be installed yet, with a line, instead of failing
 * @throws OperatorError `NamespaceMissing`
 */
export async function installableKinds(
  props: InstallProps,
  cluster: ClusterApi,
  mayLeaveOut: boolean,
  report: Report,
): Promise<Kind[]> {
  const missing = (message: string) => new OperatorError({ reason: 'NamespaceMissing', message });
  // The operator's own is created by the installation.
  const firstMissing = async (names: readonly string[]): Promise<string | undefined> => {
    for (const name of names.filter((each) => each !== props.namespace))
      if (!(await cluster.find(namespaceType, name))) return name;
    return undefined;
  };
  const unwatchable = await firstMissing(props.watchNamespaces ?? []);
  if (unwatchable !== undefined)
    throw missing(`There is no namespace ${unwatchable}: create it, or leave it out of --watch-namespace`);
  const installable: Kind[] = [];
  for (const kind of props.kinds) {
    const namespace = await firstMissing(foreignNamespaces(kind, props));
    const why = `${kindName(kind)} needs rights in the namespace ${namespace}, which isn't there`;
    if (namespace === undefined) installable.push(kind);
    else if (mayLeaveOut) report(`${why}: it is left out; install again once it is there`);
    else
      throw missing(
        `${why}: create it, name another one by the kind's options, or leave the kind out of --kinds`,
      );
  }
  if (installable.length > 0) return installable;
  throw missing('No kind is left to install: create the namespaces that they need first');
}

/** Returns the monitoring parts whose types the cluster has. @param report is called for each part that is left out */
export async function availableMonitoring(
  props: MonitoringProps,
  cluster: ClusterApi,
  report: Report,
): Promise<MonitoringProps> {
  const types = { 'service-monitor': serviceMonitorType, rules: prometheusRuleType, dashboard: undefined };
  const parts: MonitoringPart[] = [];
  for (const part of props.parts) {
    const type = types[part];
    if (!type || (await cluster.find(definitionType, definitionName(type)))) parts.push(part);
    else
      report(
        `There is no CustomResourceDefinition ${definitionName(type)}, so the ${type.kind} is left out: install ` +
          'the Prometheus operator, and give the command again',
      );
  }
  return { ...props, parts };
}

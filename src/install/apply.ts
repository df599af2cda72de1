import { isDeepStrictEqual } from 'node:util';
import type { CustomResourceDefinition } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import type { Kind, KindFlag } from '../contract/kind.js';
import { objectId, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import { operatorRules } from './access.js';
import { argumentOf, argumentsOf, kindName, runArguments } from './arguments.js';
import { definitionType, nameOf, typeOf } from './cluster.js';
import type { Cluster, Tell } from './cluster.js';
import { commandInUse, optionsInUse } from './command-in-use.js';
import type { Given, OptionsInUse } from './command-in-use.js';
import { installManifests } from './manifests.js';
import { accessName, INSTALL_MANAGER, INSTALLATION_LABEL, POLICY_CONFIG_MAP } from './names.js';
import {
  installedIn,
  isHelms,
  isInstalled,
  isOf,
  otherInstallations,
  PART_SELECTOR,
  releaseOf,
  removalOf,
  withoutInstallLabels,
} from './installed.js';
import type { Installed } from './installed.js';
import type { InstallProps } from './props.js';
import type { PolicyRule } from './rules.js';

interface Step {
  readonly object: AnyObject;
  readonly present: AnyObject | undefined;
}

/** How an installation is asked for, beside what it is to be. */
export interface InstallRequest {
  /** What an installation that is there has, and this one hasn't, is dropped. @default false */
  readonly replace?: boolean;
  /** Flags of kinds that may be in use. @default - those of the kinds */
  readonly flags?: readonly KindFlag[];
  /** For commands that are proposed. @default - nothing */
  readonly given?: Given;
  /** Rejects where CRDs that are there must not become what they are to be. @default - any change is made */
  readonly checkDefinitions?: (changes: readonly DefinitionChange[]) => Promise<void>;
}

/** A CustomResourceDefinition as the cluster has it, and as it is about to be applied. */
export interface DefinitionChange {
  readonly present: PresentDefinition;
  readonly next: CustomResourceDefinition;
}

type PresentDefinition = CustomResourceDefinition & {
  readonly status?: { readonly storedVersions?: readonly string[] };
};

/**
 * Makes the cluster hold this installation, and nothing of one with other options.
 *
 * **Guarantees.** What others have made isn't touched; but for a CRD of the same name, which is brought up to date and
 * remains theirs.
 * Nothing is written where something is in the way. CRDs are served before anything needs them. Done twice, the second
 * time changes nothing.
 *
 * @throws OperatorError `AlreadyInstalled`, `OwnershipConflict`, `OptionsLeftOut`, and whatever the cluster refuses with
 */
export async function applyInstallation(
  props: InstallProps,
  cluster: Cluster,
  tell: Tell,
  {
    replace = false,
    flags = props.kinds.flatMap((kind) => kind.flags ?? []),
    given = {},
    checkDefinitions,
  }: InstallRequest = {},
): Promise<void> {
  const objects = installManifests(props);
  await refuseOverlap(props, cluster, { flags, given });
  const steps = await stepsFor(objects, cluster);
  refuseForeign(props.namespace, steps);
  const installed = await installedIn(props.namespace, cluster, tell);
  const present = installed.map(({ object }) => object);
  if (!replace) refuseLosses(optionsInUse(props.namespace, present, flags), present, props, given);
  const isDefinition = ({ object: { kind } }: Step): boolean => kind === definitionType.kind;
  await checkDefinitions?.(
    steps.filter(isDefinition).flatMap(({ object, present: there }) =>
      there
        ? [
            {
              present: there as unknown as PresentDefinition,
              next: object as unknown as CustomResourceDefinition,
            },
          ]
        : [],
    ),
  );
  const last = steps.findLastIndex(isDefinition);
  for (const [index, step] of steps.entries()) {
    await applyStep(step, props.namespace, cluster, tell);
    if (index === last) await established(steps.filter(isDefinition), cluster);
  }
  await removeFormer(objects, installed, cluster, tell);
}

/** What is being deleted is waited for: it can't be kept. */
async function stepsFor(objects: readonly AnyObject[], cluster: Cluster): Promise<readonly Step[]> {
  let steps: readonly Step[] = [];
  await cluster.until(async () => {
    steps = await Promise.all(objects.map((object) => stepFor(object, cluster)));
    const going = steps.find(({ present }) => present?.metadata.deletionTimestamp !== undefined);
    return going ? `${nameOf(going.object)}, which is being deleted, is gone` : '';
  });
  return steps;
}

async function stepFor(object: AnyObject, cluster: Cluster): Promise<Step> {
  const { namespace, name } = object.metadata;
  return { object, present: await cluster.find(typeOf(object), objectKey(namespace, name)) };
}

/** Others' namespaces are used as they are, and CRDs have one name for all. */
function mayBeForeign({ kind }: AnyObject): boolean {
  return kind === 'Namespace' || kind === definitionType.kind;
}

function refuseForeign(namespace: string, steps: readonly Step[]): void {
  const foreign = steps.find(
    ({ object, present }) => present && !mayBeForeign(object) && !isOf(namespace, present),
  );
  if (!foreign) return;
  const what = `${nameOf(foreign.object)} is there and was made by`;
  const message =
    foreign.present && isHelms(foreign.present)
      ? `${what} Helm: change it with "helm upgrade", or remove it first with "${removalOf(foreign.present)}"`
      : `${what} somebody else: remove it, or install into another namespace with --namespace`;
  throw new OperatorError({ reason: 'OwnershipConflict', message });
}

async function applyStep(
  { object, present }: Step,
  namespace: string,
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  if (object.kind === 'Namespace' && present && !isOf(namespace, present)) {
    tell(`${nameOf(object)} left as it is`);
    return;
  }
  const uid = present?.metadata.uid;
  // Labelled, it would go with ours.
  const intent = present && isForeignDefinition(present) ? withoutInstallLabels(object) : object;
  // What goes meanwhile isn't brought back as something else.
  const body = uid === undefined ? intent : { ...intent, metadata: { ...intent.metadata, uid } };
  const applied = await cluster.apply(typeOf(object), body, { fieldManager: INSTALL_MANAGER, force: true });
  const same = present !== undefined && isUnchanged(present, applied.object);
  tell(`${nameOf(object)} ${applied.created ? 'created' : same ? 'unchanged' : 'configured'}`);
}

function isForeignDefinition(present: AnyObject): boolean {
  return present.kind === definitionType.kind && !isInstalled(present);
}

async function established(definitions: readonly Step[], cluster: Cluster): Promise<void> {
  const names = definitions.map(({ object }) => object.metadata.name);
  await cluster.until(async () => {
    const found = await Promise.all(names.map((name) => cluster.find(definitionType, name)));
    const waiting = names.filter((_, index) => !isEstablished(found[index]));
    return waiting.length === 0 ? '' : `the API server serves ${waiting.join(', ')}`;
  });
}

function isEstablished(crd: AnyObject | undefined): boolean {
  // Of a CRD that has just been made, it is null.
  const { conditions } = (crd?.status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[] | null;
  };
  return (conditions ?? []).some(({ type, status }) => type === 'Established' && status === 'True');
}

/** What an earlier installation with other options had: rights above all. */
async function removeFormer(
  objects: readonly AnyObject[],
  installed: readonly Installed[],
  cluster: Cluster,
  tell: Tell,
): Promise<void> {
  const wanted = new Set(objects.map(objectId));
  for (const { type, object } of installed) {
    if (wanted.has(objectId(object))) continue;
    await cluster.delete(type, object, 'Background');
    tell(`${nameOf(object)} deleted`);
  }
}

/**
 * What an installation with these options would take from one that is there, for people. Another value of an option that
 * is given is no loss, nor is more of a list, or Roles in place of a ClusterRole.
 * @param installed all of the installation that is there
 */
function losses(inUse: OptionsInUse, installed: readonly AnyObject[], props: InstallProps): string[] {
  const { namespace, policy, kinds = [], watchNamespaces, flags, monitoring } = inUse;
  const names = props.kinds.map(kindName);
  const lostKinds = kinds.filter((name) => !names.includes(name));
  const lostNamespaces = (props.watchNamespaces ? (watchNamespaces ?? []) : []).filter(
    (name) => !props.watchNamespaces?.includes(name) && isThere(name, namespace, installed),
  );
  const lostFlags = Object.keys(flags).filter((name) => props.flags?.[name] === undefined);
  const lostParts = (monitoring?.parts ?? []).filter((part) => !props.monitoring?.parts.includes(part));
  return [
    ...(policy && !props.policy ? [`its policy (ConfigMap ${namespace}/${POLICY_CONFIG_MAP})`] : []),
    ...(lostKinds.length > 0 ? [`the kinds ${lostKinds.join(', ')}`] : []),
    ...(watchNamespaces && !props.watchNamespaces
      ? [`its limit to the namespaces ${watchNamespaces.join(', ')}, and have rights in the whole cluster`]
      : []),
    ...(lostNamespaces.length > 0 ? [`the namespaces ${lostNamespaces.join(', ')}`] : []),
    ...(lostFlags.length > 0 ? [`the options ${lostFlags.join(', ')}`] : []),
    ...(lostParts.length > 0 ? [`its monitoring (${lostParts.join(', ')})`] : []),
  ];
}

/** A namespace that was deleted has taken its Roles with it: it can't be kept. */
function isThere(watched: string, namespace: string, installed: readonly AnyObject[]): boolean {
  return installed.some(
    ({ kind, metadata }) =>
      kind === 'Role' && metadata.namespace === watched && metadata.name === accessName(namespace, 'view'),
  );
}

/** @throws OperatorError `OptionsLeftOut`, with the command that keeps what there is */
function refuseLosses(
  inUse: OptionsInUse,
  installed: readonly AnyObject[],
  props: InstallProps,
  given: Given,
): void {
  const lost = losses(inUse, installed, props);
  if (lost.length === 0) return;
  throw new OperatorError({
    reason: 'OptionsLeftOut',
    message:
      `With these options the operator in the namespace ${inUse.namespace} would lose ${lost.join('; ')}: keep the options ` +
      `in use with "${commandInUse(inUse, given)}", or add --replace to drop what is left out`,
  });
}

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
}

/**
 * Whether our apply has changed nothing. Others write their status, or a note of their own, between our look and our
 * apply; the time in our own entry of the managers stays as it is where nothing changes.
 */
export function isUnchanged(before: AnyObject, after: AnyObject): boolean {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return true;
  const own = ownEntry(before);
  return (
    own !== undefined &&
    isDeepStrictEqual(own, ownEntry(after)) &&
    before.metadata.generation === after.metadata.generation
  );
}

function ownEntry({ metadata }: AnyObject): ManagedFields | undefined {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields.find(
    ({ manager, operation, subresource }) =>
      manager === INSTALL_MANAGER && operation === 'Apply' && !subresource,
  );
}

/** What an operator looks after. */
interface Reach {
  readonly kinds: readonly string[];
  /** @default - all */
  readonly namespaces?: readonly string[];
}

/** What a command that is proposed may need. */
interface Proposal {
  readonly flags: readonly KindFlag[];
  readonly given: Given;
}

/**
 * @throws OperatorError `AlreadyInstalled` where another operator looks after the same, or would write into the same
 * objects for other namespaces: each takes away there what it doesn't know of
 */
async function refuseOverlap(props: InstallProps, cluster: Cluster, proposal: Proposal): Promise<void> {
  const reach = reachOf(runArguments(props));
  for (const other of await otherInstallations(props.namespace, cluster)) {
    const where = other.metadata.namespace ?? '';
    const its = reachOf(argumentsOf(other));
    const shared = sharedKinds(reach, its);
    if (shared.length > 0) {
      throw alreadyInstalled(
        `An operator in the namespace ${where} already looks after ${shared.join(', ')} here: remove it with ` +
          `"${removalOf(other)}", or divide kinds or namespaces with --kinds or --watch-namespace`,
      );
    }
    const common = props.kinds.filter((kind) => its.kinds.includes(kindName(kind)));
    const taken = await placesOfInstallation(where, cluster);
    for (const kind of common) {
      const place = placesOf(kind, props).find((each) => taken.has(each));
      if (place === undefined) continue;
      const both = [...new Set([...(its.namespaces ?? []), ...(reach.namespaces ?? [])])].sort();
      const command = await widened(other, both, cluster, proposal);
      throw alreadyInstalled(
        `The operator in the namespace ${where} writes for ${kindName(kind)} to ${place} too, and they would undo ` +
          `each other's work: let it look after all of them, with "${command}", ` +
          "or have this one write elsewhere, by the kind's options or the policy",
      );
    }
  }
}

/** What has the other operator look after these namespaces. */
async function widened(
  other: AnyObject,
  watchNamespaces: readonly string[],
  cluster: Cluster,
  { flags, given }: Proposal,
): Promise<string> {
  const { namespace = '' } = other.metadata;
  if (isHelms(other)) {
    const where = `--namespace ${namespace} --reuse-values`;
    return `helm upgrade ${releaseOf(other)} CHART ${where} --set 'watchNamespaces={${watchNamespaces.join()}}'`;
  }
  const installed = await installedIn(namespace, cluster, () => undefined);
  const objects = installed.map(({ object }) => object);
  // An installation of somebody else has no labels of ours.
  const inUse = optionsInUse(namespace, [other, ...objects], flags);
  const { cluster: where } = given;
  return commandInUse({ ...inUse, watchNamespaces }, { ...(where && { cluster: where }) });
}

function alreadyInstalled(message: string): OperatorError {
  return new OperatorError({ reason: 'AlreadyInstalled', message });
}

function sharedKinds(a: Reach, b: Reach): string[] {
  const { namespaces } = a;
  const meet = !namespaces || !b.namespaces || namespaces.some((name) => b.namespaces?.includes(name));
  return meet ? a.kinds.filter((kind) => b.kinds.includes(kind)) : [];
}

function reachOf(args: readonly string[]): Reach {
  const namespaces = argumentOf(args, '--watch-namespace');
  return { kinds: argumentOf(args, '--kinds') ?? [], ...(namespaces && { namespaces }) };
}

const roleType = resourceType({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' });

/** Stands for all objects of a type. */
const ALL = '*';

/**
 * The objects that a kind changes in namespaces of its own choice, whichever are watched: `services edge/proxy`.
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
function placesOf(kind: Kind, props: InstallProps): string[] {
  return operatorRules([kind], props).flatMap((rule) =>
    (rule.namespaces ?? []).flatMap((namespace) => placesIn(namespace, rule)),
  );
}

/**
 * The objects that an installation may change by the Roles that it has. A right on all objects of a type isn't one on
 * each: it may be there for other kinds.
 */
async function placesOfInstallation(namespace: string, cluster: Cluster): Promise<Set<string>> {
  const selector = `${PART_SELECTOR},${INSTALLATION_LABEL}=${namespace}`;
  const roles = await cluster.list(roleType, { selector });
  const places = roles
    .filter(({ metadata }) => metadata.name === accessName(namespace))
    .flatMap(({ metadata, rules }) =>
      ((rules ?? []) as readonly PolicyRule[]).flatMap((rule) => placesIn(metadata.namespace ?? '', rule)),
    );
  return new Set(places);
}

function placesIn(
  namespace: string,
  { apiGroups, resources, verbs, resourceNames = [ALL] }: PolicyRule,
): string[] {
  if (!verbs.includes('patch') && !verbs.includes('delete')) return [];
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      resourceNames.map((name) => `${resource}${group && `.${group}`} ${namespace}/${name}`),
    ),
  );
}

import type { EventsV1Event, V1Pod } from '@kubernetes/client-node';
import { UPDATE_PENDING } from '../../contract/change.js';
import type { Phase } from '../../contract/conditions.js';
import type { CustomResourceDefinition } from '../../contract/crd.js';
import { messageOf } from '../../contract/error.js';
import { ROTATED, secretType } from '../../values/generated.js';
import type { OwnedKind } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { byName, compare, controllerOf, objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { Wire } from '../../author/kubernetes-types.js';
import type { ChildType } from '../../author/owned-children.js';
import { ownerUidOf, withKeptStatus } from '../../values/projections.js';
import { childReadiness } from '../../values/readiness.js';
import { statusOf } from '../../values/readiness.js';
import { groupKind, resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { ApiError, classify } from '../../client/api-error.js';
import { podTrouble } from '../../author/pods.js';
import { notInstalled } from '../cluster.js';
import { operatorsFor } from '../operators.js';
import type { KindData, OperatorStatus } from '../operators.js';
import type { List } from '../reader.js';
import { isMap } from '../../values/json.js';

/** Custom resources with their children, pods and events; as JSON, it is printed as it is. */
export interface StatusDocument {
  /** Operators of the cluster. @default - unknown: not readable, or not asked for */
  readonly operators?: readonly OperatorStatus[];
  readonly notes: readonly string[];
  readonly resources: readonly ResourceStatus[];
  /** Kinds that were asked for, and aren't installed. @default - none */
  readonly notInstalled?: readonly string[];
  /** Kinds whose custom resources couldn't be read. @default - none */
  readonly unreadable?: readonly string[];
}

interface ObjectStatus extends ObjectRef {
  readonly uid: string;
  readonly created?: string;
}

export interface ResourceStatus extends ObjectStatus {
  readonly verdict: Verdict;
  readonly facts: readonly Fact[];
  readonly children: readonly ChildStatus[];
  /** Types of children that couldn't be listed, so that some may be missing. @default - none */
  readonly unseen?: readonly { readonly plural: string; readonly forbidden: boolean }[];
  /** The last events of the resource, its children and their pods: warnings first, then its own, then the rest. */
  readonly events: readonly EventStatus[];
  readonly notes: readonly string[];
}

export interface Verdict {
  /** `Unknown`: no controller has reported yet. */
  readonly word: 'Ready' | 'Reconciling' | 'Stalled' | 'Unknown';
  /** Reason of the condition, `NotSeen`, or `ByChildren` where it follows from the children, since no operator is responsible. */
  readonly reason: string;
  readonly message: string;
  /** Time of the condition's last change; RFC 3339. @default - unknown */
  readonly since?: string;
  /** Whether the conditions are of the present generation. */
  readonly current: boolean;
}

/** Condition beside those of the verdict, or a printer column. */
interface Fact {
  readonly name: string;
  readonly text: string;
}

export interface ChildStatus extends ObjectStatus {
  readonly phase: Phase;
  readonly message: string;
  readonly pods: readonly PodStatus[];
}

export interface PodStatus extends ObjectStatus {
  readonly ready: boolean;
  /** Containers that are ready, and all. */
  readonly readyContainers: number;
  readonly containers: number;
  readonly restarts: number;
  /** Name of the node. @default - not scheduled */
  readonly node?: string;
  /** Phase, as `Running`, or the reason of a container that is stuck. */
  readonly state: string;
  /** Reason why it is stuck. @default - none */
  readonly message?: string;
  /** Whether an autoscaler has announced a node for it. @default false */
  readonly nodeAnnounced?: boolean;
}

export interface EventStatus {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly count: number;
  readonly at: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

/** Returns the members that every object of the tree has. */
function objectStatus(object: AnyObject): ObjectStatus {
  const { creationTimestamp, uid = '' } = object.metadata;
  return { ...refOf(object), uid, ...(creationTimestamp !== undefined && { created: creationTimestamp }) };
}

/** Conditions of the verdict, the strongest first. */
const WORDS = ['Stalled', 'Ready', 'Reconciling'] as const;

export function verdictOf(cr: AnyObject): Verdict {
  const conditions = statusOf(cr).conditions;
  const { observedGeneration } = isMap(cr.status) ? cr.status : {};
  const current = typeof observedGeneration === 'number' && observedGeneration === cr.metadata.generation;
  const word = WORDS.find((each) =>
    conditions.some(({ type, status }) => type === each && status === 'True'),
  );
  const condition = conditions.find(({ type }) => type === (word ?? 'Ready'));
  if (!condition)
    return {
      ...{ word: 'Unknown', reason: 'NotSeen', current },
      message: 'No controller has reported on it yet',
    };
  const { reason = '', message = '', lastTransitionTime: since } = condition;
  return { word: word ?? 'Reconciling', reason, message, ...(since !== undefined && { since }), current };
}

/**
 * Returns the verdict by the children, where no controller has reported on a custom resource and none is responsible for
 * it, as after `reconstruct apply`; undefined where children are unknown or there are none.
 */
export function verdictByChildren(
  resource: Pick<ResourceStatus, 'verdict' | 'children' | 'unseen'>,
): Verdict | undefined {
  const { verdict, children, unseen = [] } = resource;
  if (verdict.word !== 'Unknown' || children.length === 0 || unseen.length > 0) return undefined;
  return {
    ...{ word: wordByChildren(resource), reason: 'ByChildren', current: true },
    message: 'Drift is not corrected: no operator is responsible for it',
  };
}

/** Returns the verdict by the children. Unseen ones may be in any state; a right that is missing doesn't come by waiting. */
export function wordByChildren({
  children,
  unseen = [],
}: Pick<ResourceStatus, 'children' | 'unseen'>): Verdict['word'] {
  const isStalled = children.some(({ phase }) => phase === 'stalled');
  if (isStalled || unseen.some(({ forbidden }) => forbidden)) return 'Stalled';
  const isReady = unseen.length === 0 && children.every(({ phase }) => phase === 'ready');
  return isReady ? 'Ready' : 'Reconciling';
}

/** Conditions of the verdict, and those of a Deployment. */
const KNOWN: ReadonlySet<string> = new Set([...WORDS, 'Available', 'Progressing', 'ReplicaFailure']);

/** Conditions that are shown where they are True, with their reason, and left out otherwise. */
const NEWS: ReadonlySet<string> = new Set([
  ...['ScopeLimited', 'Overlapping', 'ClockSkewed', 'Paused', 'Drifted', 'Waiting'],
  ...[ROTATED, UPDATE_PENDING],
]);

/**
 * Returns the facts of a status beside the verdict.
 * @param crd of a kind without children, whose printer columns are shown in their place
 */
export function factsOf(cr: AnyObject, crd?: CustomResourceDefinition): Fact[] {
  const conditions = statusOf(cr).conditions.flatMap(({ type = '', status = 'Unknown', reason, message }) => {
    const isNews = NEWS.has(type);
    if (KNOWN.has(type) || (isNews && status !== 'True')) return [];
    const why = status === 'True' && !isNews ? '' : ` (${[reason, message].filter(Boolean).join(': ')})`;
    return [{ name: type, text: `${status}${why}` }];
  });
  const version = crd?.spec.versions.find(({ name }) => cr.apiVersion.endsWith(`/${name}`));
  const columns = (version?.additionalPrinterColumns ?? []).flatMap(({ name, jsonPath }) => {
    const text = statusValues(cr, jsonPath).join(', ');
    return text === '' ? [] : [{ name, text }];
  });
  return [...conditions, ...columns];
}

/** Returns the values of a printer column that is a field of the status, or a list there; none of a condition's. */
function statusValues(cr: AnyObject, jsonPath: string): unknown[] {
  if (!/^\.status(\.\w+)+(\[\*\])?$/.test(jsonPath)) return [];
  const names = jsonPath.replace('[*]', '').split('.').slice(1);
  return names.reduce<unknown[]>(
    (values, name) => values.flatMap((value) => (isMap(value) ? (value[name] ?? []) : [])),
    [cr],
  );
}

/** Returns the state of a child, with those of the pods that it has made. */
function childStatus(
  child: AnyObject,
  pods: readonly AnyObject[],
  hasNode: ReadonlySet<unknown>,
): ChildStatus {
  const { phase, message } = childReadiness(child);
  const own = pods
    .filter((pod) => pod.metadata.namespace === child.metadata.namespace && isPodOf(child, pod))
    .map((pod) => ({ ...podStatus(pod), ...(hasNode.has(pod.metadata.uid) && { nodeAnnounced: true }) }));
  return { ...objectStatus(child), phase, message, pods: own.sort((a, b) => compare(a.name, b.name)) };
}

/** Reports whether a workload has made a pod, itself or through a ReplicaSet, whose name is made of its own. */
export function isPodOf(workload: AnyObject, pod: AnyObject): boolean {
  const controller = controllerOf(pod);
  if (!controller || controller.uid === workload.metadata.uid) return controller !== undefined;
  if (workload.kind !== 'Deployment' || controller.kind !== 'ReplicaSet') return false;
  const hash = pod.metadata.labels?.['pod-template-hash'] ?? '';
  return controller.name === `${workload.metadata.name}-${hash}`;
}

type Pod = Pick<Wire<V1Pod>, 'spec' | 'status'> & AnyObject;

function podStatus(pod: Pod): PodStatus {
  const { spec: { containers = [], nodeName: node } = {}, status = {} } = pod;
  const { containerStatuses: known = [], conditions = [], phase = 'Pending', reason = phase } = status;
  const trouble = podTrouble(pod);
  const message = trouble?.message ?? (phase === 'Failed' ? status.message : undefined);
  return {
    ...objectStatus(pod),
    ready: conditions.some((each) => each.type === 'Ready' && each.status === 'True'),
    readyContainers: known.filter(({ ready }) => ready).length,
    containers: Math.max(containers.length, known.length),
    restarts: known.reduce((sum, { restartCount }) => sum + restartCount, 0),
    ...(node !== undefined && { node }),
    state: pod.metadata.deletionTimestamp ? 'Terminating' : (trouble?.reason ?? reason),
    ...(message !== undefined && { message }),
  };
}

/** Kinds whose objects make pods. */
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Job']);

/**
 * Returns the label selector of a child's pods; undefined if it makes none.
 * @param own the selector by the label of the custom resource: where pods have that too, one list serves all of them
 */
export function podSelector(child: AnyObject, own: string): string | undefined {
  if (!WORKLOADS.has(child.kind)) return undefined;
  const { selector } = (child.spec ?? {}) as { selector?: { matchLabels?: Record<string, string> } };
  const labels = Object.entries(selector?.matchLabels ?? {});
  if (labels.some(([name]) => name === own.split('=')[0])) return own;
  return labels.map(([name, value]) => `${name}=${value}`).join() || undefined;
}

type Event = Partial<Wire<EventsV1Event>> & AnyObject;

/** Reasons of events by which an autoscaler announces a node for a pod. */
const ANNOUNCED: ReadonlySet<string> = new Set(['TriggeredScaleUp', 'Nominated']);

const MAX_EVENTS = 5;

/**
 * Returns the last events of a custom resource, its children, their ReplicaSets and pods: warnings first, then its own, then
 * the rest; of each the latest first.
 */
export function lastEvents(
  uid: string | undefined,
  children: readonly ChildStatus[],
  events: readonly Event[],
): EventStatus[] {
  const uids = new Set([uid, ...children.flatMap((child) => [child, ...child.pods]).map((each) => each.uid)]);
  const deployments = children.filter(({ kind }) => kind === 'Deployment');
  const isOfTree = ({ regarding }: Event): boolean => {
    if (regarding?.uid !== undefined && uids.has(regarding.uid)) return true;
    const [, deployment] = /^(.+)-[a-z0-9]+$/.exec(regarding?.name ?? '') ?? [];
    return regarding?.kind === 'ReplicaSet' && deployments.some(({ name }) => name === deployment);
  };
  const rank = ({ type, regarding }: Event): number =>
    type === 'Warning' ? 0 : regarding?.uid === uid ? 1 : 2;
  const at = ({ series, deprecatedLastTimestamp, eventTime, metadata }: Event): string =>
    series?.lastObservedTime ?? deprecatedLastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
  return events
    .filter(isOfTree)
    .sort((a, b) => rank(a) - rank(b) || Date.parse(at(b)) - Date.parse(at(a)))
    .slice(0, MAX_EVENTS)
    .map((event) => {
      const { type = 'Normal', reason = '', note = '', regarding, series, deprecatedCount = 1 } = event;
      const { kind = '', name = '' } = regarding ?? {};
      const count = series?.count ?? deprecatedCount;
      return { type, reason, note, count, at: at(event), regarding: { kind, name } };
    });
}

/** Returns the types of what a kind makes, or has made, as plain data; the kind may be of another copy of this package. */
export function childTypes(kind: object): ChildType[] {
  const { children = [], formerChildren = [], generated } = kind as Partial<OwnedKind>;
  const former = formerChildren.map((type) => ({ ...type, optional: true }));
  const all = [...children, ...former, ...(generated ? [secretType] : [])];
  return all.filter((type, index) => all.findIndex((one) => groupKind(one) === groupKind(type)) === index);
}

export interface Target {
  readonly kind: KindData;
  readonly name?: string;
}

interface TreeScope {
  readonly targets: readonly Target[];
  readonly namespace?: string | undefined;
  /** Label selector of the custom resources. @default - all */
  readonly selector?: string | undefined;
  /** Whether the operators that are responsible are looked up, too. @default true */
  readonly operators?: boolean;
}

/**
 * Collects custom resources with their children, the pods of those, and the last events of all.
 *
 * **Guarantees.** What may not be read is noted, and doesn't keep the rest from being collected.
 *
 * @throws CliError with exit code 3 where the kinds aren't installed; OperatorError where the cluster refuses
 */
export async function look(scope: TreeScope, list: List, now = new Date()): Promise<StatusDocument> {
  const { found, missing, unreadable } = await customResources(scope, list);
  const resources = await Promise.all(
    found.flatMap(({ target, crs }) => crs.map((cr) => resourceStatus(cr, target, scope, list))),
  );
  const places = found.flatMap(({ target: { kind }, crs }) => {
    const updates = crs.flatMap((cr) =>
      statusOf(cr).conditions.filter(({ type }) => type === UPDATE_PENDING),
    );
    const mentions = (build: string): boolean => updates.some(({ message }) => message?.includes(build));
    const namespaces = new Set(crs.map(({ metadata }) => metadata.namespace));
    return [...namespaces].map((namespace) => ({ kind, namespace, mentions }));
  });
  const { operators, unattended, notes } =
    scope.operators === false
      ? { operators: undefined, unattended: [], notes: [] }
      : await operatorsFor(places, list, now);
  const byChildren = (resource: ResourceStatus): ResourceStatus => {
    const isUnattended = unattended.some(
      ({ kind: { type }, namespace }) =>
        groupKind(type) === groupKind(resource) && namespace === resource.namespace,
    );
    const verdict = isUnattended ? verdictByChildren(resource) : undefined;
    return verdict ? { ...resource, verdict } : resource;
  };
  return {
    ...(operators && { operators }),
    notes: [...failureNotes(unreadable), ...notes],
    resources: resources.map(byChildren),
    ...(missing.length > 0 && { notInstalled: missing.map(({ type }) => type.kind) }),
    ...(unreadable.length > 0 && { unreadable: unreadable.map(({ type }) => type.kind) }),
  };
}

/** Lists the custom resources of a scope, and finds what can't be listed. @throws as `look` where that is all */
export async function customResources(scope: TreeScope, list: List) {
  const found: { readonly target: Target; readonly crs: readonly AnyObject[] }[] = [];
  const failures: ListFailure[] = [];
  for (const target of scope.targets) {
    const { type } = target.kind;
    const namespace = type.namespaced ? scope.namespace : undefined;
    const where = { type, namespace, name: target.name, selector: scope.selector };
    const crs = await list(where).catch(noting(type, failures));
    if (crs) found.push({ target, crs: byName(crs) });
  }
  const missing = failures.filter(({ error }) => error.kindNotServed);
  const unreadable = failures.filter(({ error }) => !error.kindNotServed);
  // A missing right is worth more to the reader than a kind that isn't installed.
  const [worst] = [...unreadable, ...missing];
  if (found.length === 0 && worst)
    throw worst.error.kindNotServed
      ? notInstalled(missing.map(({ type }) => type.kind))
      : classify(worst.error, 'Look for custom resources');
  return { found, missing, unreadable };
}

const podType = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const eventType = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });

/**
 * Collects the tree of one custom resource.
 *
 * **Assumptions.** Children have the label that every rendered object gets, so that objects of others need not be listed.
 * Where all of a kind are asked for, one list of each type serves all of them.
 */
async function resourceStatus(
  cr: AnyObject,
  { kind, name }: Target,
  scope: TreeScope,
  list: List,
): Promise<ResourceStatus> {
  const { uid, namespace } = cr.metadata;
  const failures: ListFailure[] = [];
  const here = name === undefined && namespace !== undefined ? scope.namespace : namespace;
  const everywhere = async (type: ResourceType, selector?: string, where?: string) => {
    const objects = await list({ type, namespace: where, selector }).catch(noting(type, failures));
    return objects ?? [];
  };
  const listed = async (type: ResourceType, selector?: string, where = here) =>
    everywhere(type, selector, where);
  const [[label, value] = ['', '']] = Object.entries(selectorLabels(kind.type, name ?? ''));
  const own = name === undefined ? label : `${label}=${value}`;
  const types = childTypes(kind);
  const faults = new Set<string>();
  const lists = types.map(async (type) => {
    const { namespaces = [] } = type;
    const lists =
      namespaces === '*'
        ? [everywhere(type, own)]
        : [here, ...namespaces].map((place) => listed(type, own, place));
    const found = await Promise.all(lists);
    const all = new Map(found.flat().map((object) => [objectId(object), object]));
    const controlled = [...all.values()].filter((object) => ownerUidOf(object) === uid);
    return controlled.map((object) => asJudged(object, type, faults));
  });
  const objects = (await Promise.all(lists)).flat();
  const selectors = new Set(objects.flatMap((child) => podSelector(child, own) ?? []));
  const podLists = await Promise.all([...selectors].map((selector) => listed(podType, selector)));
  // Events on objects without a namespace are in `default`.
  const places = new Set([cr, ...objects].map(({ metadata }) => metadata.namespace ?? 'default'));
  // The label of the custom resource and the selector of a Job find the same ones.
  const pods = [...new Map(podLists.flat().map((pod) => [pod.metadata.uid, pod])).values()];
  const eventLists = await Promise.all(
    [...places].map((place) => listed(eventType, undefined, place === namespace ? here : place)),
  );
  const events: readonly Event[] = eventLists.flat();
  const announcing = events.filter(({ reason = '' }) => ANNOUNCED.has(reason));
  const announced = new Set(announcing.map(({ regarding }) => regarding?.uid));
  const children = objects.map((child) => childStatus(child, pods, announced));

  const missed = failures.filter(({ type, error }) => !(type.optional && error.kindNotServed));
  const unseen = missed
    .filter(({ type }) => types.includes(type))
    .map(({ type, error }) => ({ plural: type.plural, forbidden: error.code === 403 }));
  return {
    ...objectStatus(cr),
    verdict: verdictOf(cr),
    facts: factsOf(cr, types.length === 0 ? kind.crd : undefined),
    children,
    ...(unseen.length > 0 && { unseen }),
    events: lastEvents(uid, children, events),
    notes: [...faults, ...failureNotes(missed)],
  };
}

/**
 * Returns a child with the status that its kind makes of it.
 * @param faults takes what `keep` throws; of the metadata of a Secret, which is all that is listed, it may miss the rest
 */
function asJudged(child: AnyObject, type: ChildType, faults: Set<string>): AnyObject {
  try {
    return withKeptStatus(child, type.keep?.(child));
  } catch (error) {
    const what = `"keep" of the kind's ${type.plural} throws, so they are judged by their own status`;
    if (groupKind(type) !== 'Secret') faults.add(`${what}: ${messageOf(error)}`);
    return child;
  }
}

interface ListFailure {
  readonly type: ResourceType & Pick<ChildType, 'optional'>;
  readonly error: ApiError;
}

/** Returns a handler that adds answers of the API server to failures, and throws any other error. */
function noting(type: ResourceType, failures: ListFailure[]): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof ApiError)) throw error;
    failures.push({ type, error });
  };
}

/** Returns sentences on what couldn't be read: one for all types whose right is missing, one for those that aren't served. */
function failureNotes(failures: readonly ListFailure[]): string[] {
  const groups = Map.groupBy(failures, ({ error }) =>
    error.code === 403 ? 'forbidden' : error.kindNotServed ? 'unserved' : 'other',
  );
  const forbidden = groups.get('forbidden')?.map(({ type }) => type.plural);
  const unserved = groups.get('unserved')?.map(({ type }) => `${type.plural} of ${type.apiVersion}`);
  const list = (names: readonly string[]): string => [...new Set(names)].sort().join(', ');
  return [
    ...(unserved ? [`Not served by the API server: ${list(unserved)}`] : []),
    ...(forbidden ? [`Not shown, since the right to list them is missing: ${list(forbidden)}`] : []),
    ...new Set(groups.get('other')?.map(({ error }) => `Not seen: ${error.message}`)),
  ];
}

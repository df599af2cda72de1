import type { Phase } from '../../contract/conditions.js';
import { ROTATED, secretType } from '../../contract/generated.js';
import type { OwnedKind } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { controllerOf, isMap, keyOf, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { ChildType } from '../../author/owned-children.js';
import { withKeptStatus } from '../../contract/projections.js';
import { childReadiness, statusOf } from '../../author/readiness.js';
import { groupKind, resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Api, Scope } from '../../client/api.js';
import { sleep } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import { podTrouble } from '../../author/pods.js';
import type { JobWatcherStatus } from '../../kinds/job-watcher/spec.js';
import type { StreamIngressStatus } from '../../kinds/stream-ingress/spec.js';
import { notInstalled } from '../cluster.js';
import { operatorsFor } from '../operators.js';
import type { List, OperatorStatus, SeenKind } from '../operators.js';

/** Custom resources with their children, pods and events; as JSON, it is printed as it is. */
export interface StatusDocument {
  /** The operators of the cluster. @default - they may not be read, or weren't asked for */
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
  /** Required types of children that the API server doesn't serve, as in `deployments of apps/v9`. @default - none */
  readonly notServed?: readonly string[];
  /** The last events of the resource, its children and their pods: warnings first, then its own, then the rest. */
  readonly events: readonly EventStatus[];
  readonly notes: readonly string[];
}

export interface Verdict {
  /** `Unknown`: no controller has reported yet. */
  readonly word: 'Ready' | 'Reconciling' | 'Stalled' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  /** When the condition changed; RFC 3339. @default - unknown */
  readonly since?: string;
  /** The conditions are of the present generation. */
  readonly current: boolean;
  /** The verdict follows from the children alone, since no operator is responsible. @default false */
  readonly byChildren?: boolean;
}

interface Fact {
  /** Text such as `Programmed` or `last run`. */
  readonly name: string;
  readonly text: string;
  /** @default - it is neither good nor bad */
  readonly good?: boolean;
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
  /** @default - it isn't scheduled */
  readonly node?: string;
  /** The phase, as `Running`, or the reason of a container that is stuck. */
  readonly state: string;
  /** Reason why it is stuck. @default - it isn't */
  readonly message?: string;
  /** An autoscaler has announced a node for it. @default false */
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
    ...{ word: wordByChildren(resource), reason: 'ByChildren', current: true, byChildren: true },
    message: 'Drift is not corrected: no operator is responsible for it',
  };
}

/** Children that can't be seen may be in any state; a right that is missing doesn't come by waiting. */
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
const KNOWN: ReadonlySet<string> = new Set([...WORDS, ...['Available', 'Progressing', 'ReplicaFailure']]);

/** Conditions that are bad where they are True, and left out otherwise. */
const WARNINGS: ReadonlySet<string> = new Set([
  'ScopeLimited',
  'Overlapping',
  'ClockSkewed',
  'Paused',
  'Drifted',
  'Waiting',
]);

/** Facts of kinds that have no children of their own, by group and kind. */
const FACTS: ReadonlyMap<string, (cr: AnyObject) => Readonly<Record<string, string | undefined>>> = new Map([
  [groupKind({ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' }), jobWatcherFacts],
  [groupKind({ apiVersion: 'nginx-stream.jeffthecoder.xyz/v1beta1', kind: 'StreamIngress' }), streamFacts],
]);

/** Returns the facts of a status beside the verdict: other conditions, and what a kind reports in fields of its own. */
export function factsOf(cr: AnyObject): Fact[] {
  const conditions = statusOf(cr).conditions.flatMap(({ type = '', status = 'Unknown', reason, message }) => {
    const isWarning = WARNINGS.has(type);
    if (KNOWN.has(type) || (isWarning && status !== 'True')) return [];
    const good = (status === 'True') !== isWarning;
    const why = good && type !== ROTATED ? '' : ` (${[reason, message].filter(Boolean).join(': ')})`;
    return [{ name: type, text: `${status}${why}`, ...(status !== 'Unknown' && { good }) }];
  });
  const own = Object.entries(FACTS.get(groupKind(cr))?.(cr) ?? {});
  return [...conditions, ...own.flatMap(([name, text]) => (text ? [{ name, text }] : []))];
}

function streamFacts({ status }: AnyObject): Readonly<Record<string, string | undefined>> {
  const { target, upstream, addresses = [] } = (status ?? {}) as StreamIngressStatus;
  return { target, upstream, addresses: addresses.join(', ') };
}

function jobWatcherFacts({ status }: AnyObject): Readonly<Record<string, string | undefined>> {
  const { lastRun: run, lastFinished = '', nextDeletion } = (status ?? {}) as JobWatcherStatus;
  const skipped = Object.entries(run?.skipped ?? {}).map(([reason, count]) => `${reason} ${count}`);
  return {
    'last run':
      run &&
      `${lastFinished}: ${run.deleted} deleted, ${run.failed} failed, of ${run.matched} matched and ` +
        `${run.finished} finished`,
    skipped: skipped.join(', '),
    'next deletion': nextDeletion,
  };
}

/** Returns the state of a child, with those of the pods that it has made. */
function childStatus(
  child: AnyObject,
  pods: readonly AnyObject[],
  announced: ReadonlySet<string | undefined>,
): ChildStatus {
  const { phase, message } = childReadiness(child);
  const own = pods
    .filter((pod) => pod.metadata.namespace === child.metadata.namespace && isPodOf(child, pod))
    .map((pod) => ({
      ...podStatus(pod),
      ...(announced.has(pod.metadata.uid) && { nodeAnnounced: true }),
    }));
  return { ...objectStatus(child), phase, message, pods: own.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Reports whether a workload has made a pod, itself or through a ReplicaSet, whose name is made of its own. */
export function isPodOf(workload: AnyObject, pod: AnyObject): boolean {
  const controller = controllerOf(pod);
  if (controller?.uid === workload.metadata.uid) return controller !== undefined;
  if (workload.kind !== 'Deployment' || controller?.kind !== 'ReplicaSet') return false;
  const hash = pod.metadata.labels?.['pod-template-hash'] ?? '';
  return controller.name === `${workload.metadata.name}-${hash}`;
}

type PodObjectStatus = Partial<Record<'phase' | 'reason' | 'message', string>> & {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly containerStatuses?: readonly { readonly ready?: boolean; readonly restartCount?: number }[];
};

function podStatus(pod: AnyObject): PodStatus {
  const status = (pod.status ?? {}) as PodObjectStatus;
  const { containers = [], nodeName: node } = (pod.spec ?? {}) as {
    readonly containers?: readonly unknown[];
    readonly nodeName?: string;
  };
  const trouble = podTrouble(pod);
  const known = status.containerStatuses ?? [];
  const message = trouble?.message ?? (status.phase === 'Failed' ? status.message : undefined);
  const state = trouble?.reason ?? status.reason ?? status.phase ?? 'Pending';
  return {
    ...objectStatus(pod),
    ready: status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false,
    readyContainers: known.filter(({ ready }) => ready).length,
    containers: Math.max(containers.length, known.length),
    restarts: known.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    ...(node !== undefined && { node }),
    state: pod.metadata.deletionTimestamp ? 'Terminating' : state,
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
  return labels.length === 0 ? undefined : labels.map(([name, value]) => `${name}=${value}`).join();
}

interface Event extends AnyObject {
  readonly type?: string;
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly eventTime?: string | null;
  readonly series?: { readonly count: number; readonly lastObservedTime: string } | null;
  readonly deprecatedCount?: number;
  readonly deprecatedLastTimestamp?: string | null;
}

/** Reasons of events by which an autoscaler announces a node for a pod. */
const ANNOUNCED: ReadonlySet<string> = new Set(['TriggeredScaleUp', 'Nominated']);

const MAX_EVENTS = 5;

/**
 * Returns the last events of some objects: warnings first, then those of the custom resource, then the rest; of each the
 * latest first.
 * @param uid of the custom resource
 * @param regards reports whether an event is of one of the objects
 */
export function lastEvents(
  events: readonly AnyObject[],
  uid: string | undefined,
  regards: (regarding: NonNullable<Event['regarding']>) => boolean,
): EventStatus[] {
  const rank = ({ type, regarding }: Event): number =>
    type === 'Warning' ? 0 : regarding?.uid === uid ? 1 : 2;
  return (events as readonly Event[])
    .filter(({ regarding }) => regarding !== undefined && regards(regarding))
    .map((event) => {
      const { type = 'Normal', reason = '', note = '', regarding, series, deprecatedCount = 1 } = event;
      const last = series?.lastObservedTime ?? event.deprecatedLastTimestamp ?? event.eventTime;
      const { kind = '', name = '' } = regarding ?? {};
      const status: EventStatus = {
        ...{ type, reason, note, count: series?.count ?? deprecatedCount },
        ...{ at: last ?? event.metadata.creationTimestamp ?? '', regarding: { kind, name } },
      };
      return { rank: rank(event), status };
    })
    .sort((a, b) => a.rank - b.rank || Date.parse(b.status.at) - Date.parse(a.status.at))
    .slice(0, MAX_EVENTS)
    .map(({ status }) => status);
}

/** Returns the types of what a kind makes, or has made, as plain data; the kind may be of another copy of this package. */
export function childTypes(kind: object): ChildType[] {
  const { children = [], formerChildren = [], generated } = kind as Partial<OwnedKind>;
  const former = formerChildren.map((type) => ({ ...type, optional: true }));
  const all = [...children, ...former, ...(generated ? [secretType] : [])];
  return all.filter((type, index) => all.findIndex((one) => groupKind(one) === groupKind(type)) === index);
}

export interface Target {
  readonly kind: SeenKind;
  readonly name?: string;
}

interface TreeScope {
  readonly targets: readonly Target[];
  readonly namespace?: string | undefined;
  /** Label selector of the custom resources. @default - all */
  readonly selector?: string | undefined;
  /** Looks for the operators that are responsible, too. @default true */
  readonly operators?: boolean;
}

/** Lists the objects of a scope; of Secrets, the metadata alone. @throws ApiError */
export function lister(api: Api, signal?: AbortSignal): List {
  const listed = new Map<string, Promise<readonly AnyObject[]>>();
  return (scope) => {
    const id = JSON.stringify(scope);
    const metadataOnly = groupKind(scope.type) === 'Secret';
    const objects = listed.get(id) ?? api.listAll({ ...scope, metadataOnly }, signal);
    listed.set(id, objects);
    return objects;
  };
}

/**
 * Collects custom resources as `collect` does, for a command.
 * @throws CliError with exit code 3 where the kinds aren't installed; OperatorError where the cluster refuses
 */
export async function look(scope: TreeScope, list: List): Promise<StatusDocument> {
  return collect(scope, list, new Date()).catch((error: unknown) => {
    if (error instanceof ApiError && error.kindNotServed)
      throw notInstalled(scope.targets.map(({ kind }) => kind.type.kind));
    throw classify(error, 'Look for custom resources');
  });
}

const POLL_MILLISECONDS = 1_000;
/** Share of the time that may be spent on looks, so that large clusters are asked less often. */
const BUSY_SHARE = 0.2;

interface FollowProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly look: (list: List) => Promise<StatusDocument>;
  /** Called with each state. @returns true to end */
  readonly onDocument: (document: StatusDocument) => boolean | Promise<boolean>;
  /** Called when a look fails, before the next one. @default - the first failure ends it, later ones are retried */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Looks every second until the signal aborts or `onDocument` ends it. Lists come from the API server's cache, and need no
 * right to watch.
 * @throws what `look` throws the first time, unless there is `onFailed`
 */
export async function follow({
  api,
  clock,
  signal,
  onDocument,
  onFailed,
  ...props
}: FollowProps): Promise<void> {
  const isOver = (): boolean => signal.aborted;
  for (let isFirst = true; !isOver(); isFirst = false) {
    const began = clock.monotonic();
    try {
      const document = await props.look(lister(api, signal));
      if (isOver() || (await onDocument(document))) return;
    } catch (error) {
      if (isOver()) return;
      if (isFirst && !onFailed) throw error;
      onFailed?.(error);
    }
    const took = clock.monotonic() - began;
    await sleep(clock, Math.max(POLL_MILLISECONDS, took / BUSY_SHARE - took), signal);
  }
}

/**
 * Collects custom resources with their children, the pods of those, and the last events of all.
 *
 * **Guarantees.** What may not be read is noted, and doesn't keep the rest from being collected.
 *
 * @throws ApiError where none of the kinds can be read
 */
export async function collect(scope: TreeScope, list: List, now: Date): Promise<StatusDocument> {
  const found: { readonly target: Target; readonly crs: readonly AnyObject[] }[] = [];
  const refused: Missed[] = [];
  for (const target of scope.targets) {
    const { type } = target.kind;
    const namespace = type.namespaced ? scope.namespace : undefined;
    try {
      const crs = await list(scopeOf({ type, namespace, name: target.name, selector: scope.selector }));
      found.push({ target, crs: [...crs].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)) });
    } catch (error) {
      refused.push(missed(type, error));
    }
  }
  const unreadable = refused.filter(({ error }) => !error.kindNotServed);
  // A missing right is worth more to the reader than a kind that isn't installed.
  const [worst] = [...unreadable, ...refused];
  if (found.length === 0 && worst) throw worst.error;
  const missing = refused.filter(({ error }) => error.kindNotServed);
  const resources = await Promise.all(
    found.flatMap(({ target, crs }) => crs.map((cr) => resourceStatus(cr, target, scope, list))),
  );
  const places = found.flatMap(({ target: { kind }, crs }) =>
    [...new Set(crs.map(({ metadata }) => metadata.namespace))].map((namespace) => ({ kind, namespace })),
  );
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
    notes: [...missedNotes(unreadable), ...notes],
    resources: resources.map(byChildren),
    ...(missing.length > 0 && { notInstalled: missing.map(({ type }) => type.kind) }),
    ...(unreadable.length > 0 && { unreadable: unreadable.map(({ type }) => type.kind) }),
  };
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
  { namespace: ofScope }: TreeScope,
  list: List,
): Promise<ResourceStatus> {
  const { uid, namespace } = cr.metadata;
  const all: Missed[] = [];
  const listed = async (type: ResourceType, selector?: string, own = namespace) => {
    const where = name === undefined && namespace !== undefined ? ofScope : own;
    return list(scopeOf({ type, namespace: where, selector })).catch((error: unknown) => {
      all.push(missed(type, error));
      return [];
    });
  };
  const [[label, value] = ['', '']] = Object.entries(selectorLabels(kind.type, name ?? ''));
  const own = name === undefined ? label : `${label}=${value}`;
  const types = childTypes(kind);
  const candidates = await Promise.all(types.map((type) => listed(type, own)));
  const objects = candidates
    .flatMap((found, index) => found.map((each) => asJudged(each, types[index])))
    .filter((object) => controllerOf(object)?.uid === uid);
  const selectors = new Set(objects.flatMap((child) => podSelector(child, own) ?? []));
  const podLists = await Promise.all([...selectors].map((selector) => listed(podType, selector)));
  // Events on objects without a namespace are in `default`.
  const places = new Set([cr, ...objects].map(({ metadata }) => metadata.namespace ?? 'default'));
  // The label of the custom resource and the selector of a Job find the same ones.
  const found = new Map(podLists.flat().map((pod) => [pod.metadata.uid, pod])).values();
  const pods = [...found].filter((pod) => places.has(pod.metadata.namespace ?? ''));
  const eventLists = await Promise.all([...places].map((place) => listed(eventType, undefined, place)));
  const allEvents: readonly Event[] = eventLists.flat();
  const announcing = allEvents.filter(({ reason = '' }) => ANNOUNCED.has(reason));
  const announced = new Set(announcing.map(({ regarding }) => regarding?.uid));
  const children = objects.map((child) => childStatus(child, pods, announced));
  const events = eventsOf(uid, children, allEvents);

  const optional = new Map<ResourceType, boolean>(types.map((type) => [type, type.optional ?? false]));
  const isUnserved = ({ type, error }: Missed): boolean => optional.has(type) && error.kindNotServed;
  const notServed = all
    .filter((each) => isUnserved(each) && !optional.get(each.type))
    .map(({ type }) => `${type.plural} of ${type.apiVersion}`)
    .sort();
  const others = all.filter((each) => !isUnserved(each));
  const unseen = others.filter(({ type }) => optional.has(type));
  return {
    ...objectStatus(cr),
    ...{ verdict: verdictOf(cr), facts: factsOf(cr), children },
    ...(unseen.length > 0 && {
      unseen: unseen.map(({ type, error }) => ({ plural: type.plural, forbidden: error.code === 403 })),
    }),
    ...(notServed.length > 0 && { notServed }),
    events,
    notes: [
      ...(notServed.length > 0 ? [`Not served by the API server: ${notServed.join(', ')}`] : []),
      ...missedNotes(others),
    ],
  };
}

/** Returns a child as the operator judges it; of what is listed, as the metadata of a Secret, `keep` may lack what it reads. */
function asJudged(child: AnyObject, type?: ChildType): AnyObject {
  try {
    return withKeptStatus(child, type?.keep?.(child));
  } catch {
    return child;
  }
}

function eventsOf(
  uid: string | undefined,
  children: readonly ChildStatus[],
  events: readonly AnyObject[],
): EventStatus[] {
  const uids = new Set([uid, ...children.flatMap((child) => [child, ...child.pods]).map((each) => each.uid)]);
  const deployments = children.filter(({ kind }) => kind === 'Deployment');
  return lastEvents(events, uid, (regarding) => {
    if (regarding.uid !== undefined && uids.has(regarding.uid)) return true;
    const [, deployment] = /^(.+)-[a-z0-9]+$/.exec(regarding.name ?? '') ?? [];
    return regarding.kind === 'ReplicaSet' && deployments.some((each) => each.name === deployment);
  });
}

export function scopeOf(scope: { readonly [Name in keyof Scope]: Scope[Name] | undefined }): Scope {
  return Object.fromEntries(
    Object.entries(scope).filter(([, value]) => value !== undefined),
  ) as unknown as Scope;
}

interface Missed {
  readonly type: ResourceType;
  readonly error: ApiError;
}

/** @throws the error where it isn't an answer of the API server */
function missed(type: ResourceType, error: unknown): Missed {
  if (error instanceof ApiError) return { type, error };
  throw error;
}

/** Returns sentences on what couldn't be read, one for all types whose right is missing. */
function missedNotes(all: readonly Missed[]): string[] {
  const forbidden = all.filter(({ error }) => error.code === 403).map(({ type }) => type.plural);
  const plurals = [...new Set(forbidden)].sort().join(', ');
  const others = all.filter(({ error }) => error.code !== 403);
  return [
    ...(plurals === '' ? [] : [`Not shown, since the right to list them is missing: ${plurals}`]),
    ...new Set(others.map(({ error }) => `Not seen: ${error.message}`)),
  ];
}

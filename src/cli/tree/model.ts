import type { Condition, Phase } from '../../contract/conditions.js';
import { controllerOf, isMap, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { childReadiness } from '../../contract/readiness.js';
import { groupKind } from '../../contract/resource.js';
import { podTrouble } from '../../kinds/app-service/pods.js';
import type { JobWatcherStatus } from '../../kinds/job-watcher/spec.js';
import type { StreamIngressStatus } from '../../kinds/stream-ingress/spec.js';

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

export interface OperatorStatus {
  readonly namespace: string;
  readonly available: number;
  readonly replicas: number;
  /** The holder of the lease. @default - there is none, or the lease may not be read */
  readonly leader?: string;
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
  readonly unseen?: readonly UnseenType[];
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

export interface Fact {
  /** As in `Programmed` or `last run`. */
  readonly name: string;
  readonly text: string;
  /** @default - it is neither good nor bad */
  readonly good?: boolean;
}

export interface UnseenType {
  readonly plural: string;
  readonly forbidden: boolean;
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
  /** The phase, as `Running`, or the reason of a container that is stuck. */
  readonly state: string;
  /** Why it is stuck. @default - it isn't */
  readonly message?: string;
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
export function objectStatus(object: AnyObject): ObjectStatus {
  const { creationTimestamp, uid = '' } = object.metadata;
  return { ...refOf(object), uid, ...(creationTimestamp !== undefined && { created: creationTimestamp }) };
}

/** Returns the well-formed conditions of a status: that of an author's kind may have any form. */
function conditionsOf({ status }: AnyObject): Partial<Condition>[] {
  const conditions = isMap(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return conditions
    .filter(isMap)
    .map((each) => Object.fromEntries(Object.entries(each).filter(([, value]) => typeof value === 'string')));
}

/** Conditions of the verdict, the strongest first. */
const WORDS = ['Stalled', 'Ready', 'Reconciling'] as const;

export function verdictOf(cr: AnyObject): Verdict {
  const conditions = conditionsOf(cr);
  const { observedGeneration } = isMap(cr.status) ? cr.status : {};
  const current = typeof observedGeneration === 'number' && observedGeneration === cr.metadata.generation;
  const word = WORDS.find((each) =>
    conditions.some(({ type, status }) => type === each && status === 'True'),
  );
  const condition = conditions.find(({ type }) => type === (word ?? 'Ready'));
  if (!condition)
    return {
      ...{ word: 'Unknown', reason: 'NotSeen', current },
      message: 'No controller has said anything of it yet',
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
  const isStalled = children.some(({ phase }) => phase === 'stalled');
  const isReady = children.every(({ phase }) => phase === 'ready');
  return {
    word: isStalled ? 'Stalled' : isReady ? 'Ready' : 'Reconciling',
    ...{ reason: 'ByChildren', current: true, byChildren: true },
    message: 'Drift is not corrected: no operator is responsible for it',
  };
}

/** Conditions of the verdict, and those of a Deployment. */
const KNOWN: ReadonlySet<string> = new Set([...WORDS, ...['Available', 'Progressing', 'ReplicaFailure']]);

/** Conditions that are bad where they are True, and left out otherwise. */
const WARNINGS: ReadonlySet<string> = new Set(['ScopeLimited', 'Overlapping', 'ClockSkewed']);

/** Facts of kinds that have no children of their own, by group and kind. */
const FACTS: ReadonlyMap<string, (cr: AnyObject) => Readonly<Record<string, string | undefined>>> = new Map([
  [groupKind({ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' }), jobWatcherFacts],
  [groupKind({ apiVersion: 'nginx-stream.jeffthecoder.xyz/v1beta1', kind: 'StreamIngress' }), streamFacts],
]);

/** Returns the facts of a status beside the verdict: other conditions, and what a kind reports in fields of its own. */
export function factsOf(cr: AnyObject): Fact[] {
  const conditions = conditionsOf(cr).flatMap(({ type = '', status = 'Unknown', reason, message }) => {
    const isWarning = WARNINGS.has(type);
    if (KNOWN.has(type) || (isWarning && status !== 'True')) return [];
    const good = (status === 'True') !== isWarning;
    const why = good ? '' : ` (${[reason, message].filter(Boolean).join(': ')})`;
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
export function childStatus(child: AnyObject, pods: readonly AnyObject[]): ChildStatus {
  const { phase, message } = childReadiness(child);
  const own = pods.filter((pod) => isPodOf(child, pod)).map(podStatus);
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

export function podStatus(pod: AnyObject): PodStatus {
  const status = (pod.status ?? {}) as PodObjectStatus;
  const { containers = [] } = (pod.spec ?? {}) as { readonly containers?: readonly unknown[] };
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

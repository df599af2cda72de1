import type { Wait } from '../contract/change.js';
import type { Condition, Phase, Readiness } from '../contract/conditions.js';
import { asRecorded } from './created.js';
import { recordOf } from './projections.js';
import { contentHash, isMap } from './json.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind, isBuiltIn } from '../contract/resource.js';

/** Pattern of a reason. @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go */
export const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

interface WorkloadStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly availableReplicas?: number;
  readonly unavailableReplicas?: number;
  readonly desiredNumberScheduled?: number;
  readonly updatedNumberScheduled?: number;
  readonly numberAvailable?: number;
  readonly conditions?: readonly Partial<Condition>[];
  /** Set on Pods and PersistentVolumeClaims. */
  readonly phase?: string;
  /** Set on Jobs. */
  readonly startTime?: string;
}

interface WorkloadSpec {
  readonly replicas?: number;
  readonly updateStrategy?: {
    readonly type?: string;
    readonly rollingUpdate?: { readonly partition?: number };
  };
}

/** Returns the status of an object, of its conditions what is well formed: the schemas of others allow anything. */
export function statusOf({ status }: AnyObject): WorkloadStatus & {
  readonly conditions: readonly Partial<Condition>[];
} {
  const { conditions, ...counts } = isMap(status) ? status : {};
  const isFormed = ([name, value]: [string, unknown]): boolean =>
    typeof value === (name === 'observedGeneration' ? 'number' : 'string');
  const formed = (Array.isArray(conditions) ? conditions : [])
    .filter(isMap)
    .map((each) => Object.fromEntries(Object.entries(each).filter(isFormed)));
  return { ...counts, conditions: formed };
}

/**
 * Reports whether an object is what it is meant to be, judged from what `keepStatus` keeps of it, for kinds that bring no
 * status function. What runs pods counts them, Jobs and claims have rules of their own; anything else is judged by its
 * conditions `Stalled`, `Reconciling` and `Ready`, or is ready once it exists.
 *
 * **Caveats.** A Deployment scaled up is seen as rolling out only from its next status on, which its controller
 * writes as soon as it has seen the change (`observedGeneration`). A Pod that isn't ready is failing.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/status/core.go
 */
export function childReadiness(child: AnyObject): Readiness {
  const status = statusOf(child);
  const { conditions, phase = 'Unknown' } = status;
  const name = describeRef(child);
  const type = groupKind(child);
  const is = (phase: Phase, reason: string, text: string): Readiness => ({
    ...{ phase, reason, message: `${name}${text}` },
  });
  const ready = (text: string): Readiness => is('ready', 'Available', text);
  const progressing = (text: string, reason = 'RollingOut'): Readiness => is('progressing', reason, text);
  const said = (phase: Phase, condition: Partial<Condition>, fallback: string, text = ''): Readiness => {
    const { reason = fallback, message = text } = condition;
    return is(phase, REASON.test(reason) ? reason : fallback, `: ${message}`);
  };
  const holding = (wanted: string): Partial<Condition> | undefined =>
    conditions.find((condition) => condition.type === wanted && condition.status === 'True');

  const seen = status.observedGeneration ?? (COUNTED.has(type) ? 0 : Infinity);
  if (seen < (child.metadata.generation ?? 0)) return progressing(' has yet to be seen by its controller');
  const expired = conditions.find(
    (condition) => condition.status === 'False' && condition.reason === 'ProgressDeadlineExceeded',
  );
  if (expired) return said('stalled', expired, 'ProgressDeadlineExceeded');
  const refused = holding('ReplicaFailure');
  // No pod of this template is admitted until the template or the label of the namespace is changed.
  const isHopeless = refused?.message?.includes('violates PodSecurity');
  if (refused) return said(isHopeless ? 'stalled' : 'failing', refused, 'ReplicaFailure');
  const paused = pausedRollout(child);
  if (paused) return is('stalled', 'DeploymentPaused', `: ${paused}`);
  if (COUNTED.has(type)) {
    const counts = podCounts(type, child.spec ?? {}, status);
    const missing = missingPods(type, counts);
    return missing === undefined ? ready(availableText(counts)) : progressing(missing);
  }
  if (type === 'PersistentVolumeClaim' && phase !== 'Bound') return progressing(` is ${phase}`, 'NotBound');
  if (type === 'Pod' && phase === 'Succeeded') return ready(' has succeeded');
  if (type === 'Pod' && phase === 'Unknown') return progressing(' has yet to be seen');
  if (type === 'Job.batch') {
    const failed = holding('Failed');
    if (failed) return said('stalled', failed, 'JobFailed', 'failed');
    const hasBegun = status.startTime !== undefined || holding('Complete') || holding('Suspended');
    return hasBegun ? ready(' is applied') : progressing(' has yet to begin', 'NotStarted');
  }
  const [stalled, reconciling] = [holding('Stalled'), holding('Reconciling')];
  const condition = conditions.find((one) => one.type === 'Ready');
  if (type === 'Pod' && phase === 'Pending' && !condition) {
    const unscheduled = conditions.find((one) => one.type === 'PodScheduled' && one.status === 'False');
    return said('progressing', unscheduled ?? {}, 'Pending', 'has yet to be scheduled');
  }
  if (stalled) return said('stalled', stalled, 'Stalled', 'stalled');
  if (reconciling && condition?.status !== 'False')
    return progressing(`: ${reconciling.message ?? 'under way'}`);
  if (!condition || condition.status === 'True') return ready(' is applied');
  if (condition.status === 'False') return said('failing', condition, 'NotReady', 'not ready');
  return progressing(`: ${condition.message ?? 'not ready'}`);
}

/**
 * Reports whether what depends on an object may be applied: once it is ready; of a Job, once that has completed; of a claim,
 * once it exists, since many are bound only when a Pod uses them, which waits for its volume by itself.
 * @see https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode
 */
export function dependencyReadiness(child: AnyObject): Readiness {
  const readiness = childReadiness(child);
  const { conditions, phase } = statusOf(child);
  if (groupKind(child) === 'PersistentVolumeClaim' && phase === 'Pending')
    return { phase: 'ready', reason: 'Pending', message: `${describeRef(child)} is applied` };
  const unseen = readiness.phase === 'ready' && !isBuiltIn(child) ? unseenText(child) : undefined;
  if (unseen !== undefined)
    return { phase: 'progressing', reason: 'NotObserved', message: `${describeRef(child)} ${unseen}` };
  const isDone = conditions.some(({ type, status }) => type === 'Complete' && status === 'True');
  if (groupKind(child) !== 'Job.batch' || readiness.phase === 'stalled' || isDone) return readiness;
  const isSuspended = conditions.some(({ type, status }) => type === 'Suspended' && status === 'True');
  // Queues such as Kueue resume a Job by themselves, so this is no stall.
  const why = isSuspended ? ': it is suspended; set its spec.suspend to false, or see its queue' : '';
  const message = `${describeRef(child)} has yet to complete${why}`;
  return { phase: 'progressing', reason: 'NotComplete', message };
}

/**
 * Returns why a rollout of a Deployment stops halfway, where it is paused, with the remedy; undefined where it isn't. A paused
 * Deployment is still scaled.
 * @see https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pausing-and-resuming-a-deployment
 */
export function pausedRollout(deployment: AnyObject): string | undefined {
  const { name, namespace = '' } = deployment.metadata;
  const { conditions, replicas = 0, updatedReplicas = 0 } = statusOf(deployment);
  const has = (reason: string): boolean => conditions.some((condition) => condition.reason === reason);
  const lacks = updatedReplicas < replicas || (replicas === 0 && has('MinimumReplicasUnavailable'));
  if (!lacks || !has('DeploymentPaused')) return undefined;
  const remedy = `"kubectl rollout resume deployment/${name} --namespace ${namespace}"`;
  return `the rollout is paused with ${updatedReplicas} of ${replicas} replicas updated; resume it with ${remedy}`;
}

/** Returns what is missing for a custom resource to say anything of its present spec. */
function unseenText(child: AnyObject): string | undefined {
  const { generation } = child.metadata;
  const { conditions, observedGeneration } = statusOf(child);
  if (conditions.length === 0 && observedGeneration === undefined)
    return "has no status yet; one whose controller never writes any can't be waited for";
  const ready = conditions.find(({ type }) => type === 'Ready');
  const isOld = generation !== undefined && (ready?.observedGeneration ?? generation) < generation;
  return isOld ? 'is ready in an earlier generation' : undefined;
}

/** Returns the readiness of the whole: the worst of its parts. */
export function worstReadiness(parts: readonly Readiness[]): Readiness {
  for (const phase of ['stalled', 'failing', 'progressing']) {
    const part = parts.find((candidate) => candidate.phase === phase);
    if (part) return part;
  }
  return { phase: 'ready', reason: 'Available', message: 'All objects are applied and ready' };
}

const COUNTED = new Set(['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps', 'ReplicaSet.apps']);

interface PodCounts {
  readonly wanted: number;
  /** Number of pods, old ones included. */
  readonly made: number;
  /** Number of pods that have to be of the present template. */
  readonly newest: number;
  readonly updated: number;
  readonly available: number;
}

function podCounts(type: string, spec: WorkloadSpec, status: WorkloadStatus): PodCounts {
  const { desiredNumberScheduled = 0, updatedNumberScheduled = 0, numberAvailable = 0 } = status;
  const { replicas: made = desiredNumberScheduled, updatedReplicas: updated = updatedNumberScheduled } =
    status;
  const { availableReplicas: available = numberAvailable, unavailableReplicas: missing = 0 } = status;
  if (type === 'Deployment.apps') {
    const wanted = missing > 0 ? Math.max(made, available + missing) : made;
    return { wanted, made, newest: made, updated, available };
  }
  const wanted = spec.replicas ?? made;
  const { type: strategy, rollingUpdate } = spec.updateStrategy ?? {};
  // Old pods stay below the partition, and where the user deletes them himself.
  const hasOldPods = type === 'ReplicaSet.apps' || strategy === 'OnDelete';
  const newest = hasOldPods ? 0 : wanted - (rollingUpdate?.partition ?? 0);
  return { wanted, made, newest, updated, available };
}

/** Describes what a rollout still waits for, as `kubectl rollout status`; nothing when it is complete. */
function missingPods(type: string, counts: PodCounts): string | undefined {
  const { wanted, made, updated, available } = counts;
  const newest = Math.min(counts.newest, made);
  // The pods of a Deployment may be more than its replicas, which aren't kept, by those of a surge.
  if (updated < newest && type === 'Deployment.apps') return `: old pods still to go: ${made - updated}`;
  if (updated < newest) return `: ${updated} of ${newest} pods are updated`;
  if (made > wanted) return `: surplus pods still to go: ${made - wanted}`;
  return Math.min(made, available) < wanted ? availableText(counts) : undefined;
}

function availableText({ available, wanted }: PodCounts): string {
  return `: ${available} of ${wanted} pods are available`;
}

/** Returns the readiness of a rendered object; undefined where it isn't live as it is rendered, or doesn't stay. */
export type ReadinessOf = (rendered: AnyObject) => Readiness | undefined;

/** Returns the readiness of a rendered object, by the object that is live; undefined where that isn't as rendered, or doesn't stay. */
export function presentReadiness(rendered: AnyObject, live: AnyObject): Readiness | undefined {
  const stays = live.metadata.deletionTimestamp === undefined;
  const isPresent = recordOf(live)?.hash === contentHash(asRecorded(rendered, live));
  return stays && isPresent ? dependencyReadiness(live) : undefined;
}

/**
 * Returns what a rendered object waits for: the first of its dependencies that isn't ready in its present rendering. One that
 * has been applied in its present rendering waits for nothing, so that its drift is corrected whatever becomes of the others.
 */
export function waitOf(
  object: AnyObject,
  dependencies: Iterable<AnyObject>,
  readinessOf: ReadinessOf,
): Wait | undefined {
  if (readinessOf(object)) return undefined;
  for (const dependency of dependencies) {
    const readiness = readinessOf(dependency);
    if (readiness?.phase === 'ready') continue;
    const ref = refOf(dependency);
    const message = `${describeRef(ref)} has yet to be applied`;
    return { ref, readiness: readiness ?? { phase: 'progressing', reason: 'NotApplied', message } };
  }
  return undefined;
}

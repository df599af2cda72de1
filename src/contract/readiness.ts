import type { Condition, Readiness } from './conditions.js';
import { describeRef, refOf } from './object.js';
import type { AnyObject } from './object.js';
import { groupKind } from './resource.js';

interface WorkloadStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly unavailableReplicas?: number;
  readonly desiredNumberScheduled?: number;
  readonly updatedNumberScheduled?: number;
  readonly numberAvailable?: number;
  readonly conditions?: readonly Partial<Condition>[];
  /** Of Pods and PersistentVolumeClaims. */
  readonly phase?: string;
  /** Of Jobs. */
  readonly startTime?: string;
}

interface WorkloadSpec {
  readonly replicas?: number;
  readonly updateStrategy?: {
    readonly type?: string;
    readonly rollingUpdate?: { readonly partition?: number };
  };
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
  const status = (child.status ?? {}) as WorkloadStatus;
  const name = describeRef(refOf(child));
  const type = groupKind(child);
  const seen = status.observedGeneration ?? (COUNTED.has(type) ? 0 : Infinity);
  if (seen < (child.metadata.generation ?? 0)) {
    return progressing(`${name} has yet to be seen by its controller`);
  }
  const stalled = status.conditions?.find(
    (condition) => condition.status === 'False' && condition.reason === 'ProgressDeadlineExceeded',
  );
  if (stalled)
    return {
      phase: 'stalled',
      reason: 'ProgressDeadlineExceeded',
      message: `${name}: ${stalled.message ?? ''}`,
    };
  const failed = status.conditions?.find(
    ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
  );
  if (failed)
    return {
      phase: 'failing',
      reason: failed.reason ?? 'ReplicaFailure',
      message: `${name}: ${failed.message ?? ''}`,
    };
  if (COUNTED.has(type)) return countedReadiness(podCounts(type, child.spec ?? {}, status), name);
  const reached = phaseReadiness(type, name, status);
  return reached ?? conditionReadiness(name, status);
}

/** Returns the readiness of the whole: the worst of its parts. */
export function worstReadiness(parts: readonly Readiness[]): Readiness {
  const order = ['stalled', 'failing', 'progressing'] as const;
  for (const phase of order) {
    const part = parts.find((candidate) => candidate.phase === phase);
    if (part) return part;
  }
  return { phase: 'ready', reason: 'Available', message: 'All objects are applied and ready' };
}

const COUNTED = new Set(['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps', 'ReplicaSet.apps']);

interface PodCounts {
  readonly wanted: number;
  readonly made: number;
  /** How many are to be of the newest spec. */
  readonly newest: number;
  readonly updated: number;
  readonly available: number;
  /** What a Deployment says of itself. */
  readonly missing?: number;
}

function podCounts(type: string, spec: WorkloadSpec, status: WorkloadStatus): PodCounts {
  const { replicas: made = 0, updatedReplicas: updated = 0, availableReplicas: available = 0 } = status;
  if (type === 'Deployment.apps') {
    const { unavailableReplicas: missing = 0 } = status;
    return { wanted: made, made, newest: made, updated, available, missing };
  }
  if (type === 'DaemonSet.apps') {
    const { desiredNumberScheduled: wanted = 0, updatedNumberScheduled = 0, numberAvailable = 0 } = status;
    const counts = { updated: updatedNumberScheduled, available: numberAvailable };
    return { wanted, made: wanted, newest: wanted, ...counts };
  }
  const wanted = spec.replicas ?? made;
  if (type === 'ReplicaSet.apps') return { wanted, made, newest: 0, updated, available };
  const { type: strategy, rollingUpdate } = spec.updateStrategy ?? {};
  // Old pods stay below the partition, and where the user deletes them himself.
  const newest = strategy === 'OnDelete' ? 0 : wanted - (rollingUpdate?.partition ?? 0);
  return { wanted, made, newest, updated, available };
}

function countedReadiness(counts: PodCounts, name: string): Readiness {
  const { wanted, made, newest, updated, available, missing = 0 } = counts;
  const all = missing > 0 ? Math.max(wanted, available + missing) : wanted;
  if (made !== wanted || updated < newest || available < wanted || missing > 0)
    return progressing(`${name}: ${available} of ${all} pods are available`);
  return ready(`${name}: ${available} of ${wanted} pods are available`);
}

/** What tells by a phase, or by having begun. @returns undefined where conditions tell */
function phaseReadiness(type: string, name: string, status: WorkloadStatus): Readiness | undefined {
  const { phase = 'Unknown', conditions = [] } = status;
  const holds = (type: string): Partial<Condition> | undefined =>
    conditions.find((condition) => condition.type === type && condition.status === 'True');
  if (type === 'PersistentVolumeClaim' && phase !== 'Bound')
    return { ...progressing(`${name} is ${phase}`), reason: 'NotBound' };
  if (type === 'Pod' && phase === 'Succeeded') return ready(`${name} has succeeded`);
  if (type === 'Pod' && phase === 'Unknown') return progressing(`${name} has yet to be seen`);
  if (type !== 'Job.batch') return undefined;
  const failed = holds('Failed');
  if (failed)
    return {
      ...{ phase: 'stalled', reason: failed.reason ?? 'JobFailed' },
      message: `${name}: ${failed.message ?? 'failed'}`,
    };
  const begun = status.startTime !== undefined || holds('Complete') || holds('Suspended');
  return begun
    ? ready(`${name} is applied`)
    : { ...progressing(`${name} has yet to begin`), reason: 'NotStarted' };
}

function conditionReadiness(name: string, status: WorkloadStatus): Readiness {
  const [stalled, reconciling] = ['Stalled', 'Reconciling'].map((type) =>
    status.conditions?.find((condition) => condition.type === type && condition.status === 'True'),
  );
  const condition = status.conditions?.find(({ type }) => type === 'Ready');
  if (stalled) {
    const message = `${name}: ${stalled.message ?? 'stalled'}`;
    return { phase: 'stalled', reason: stalled.reason ?? 'Stalled', message };
  }
  if (reconciling && condition?.status !== 'False')
    return progressing(`${name}: ${reconciling.message ?? 'under way'}`);
  if (!condition || condition.status === 'True') return ready(`${name} is applied`);
  const message = `${name}: ${condition.message ?? 'not ready'}`;
  return condition.status === 'False'
    ? { phase: 'failing', reason: condition.reason ?? 'NotReady', message }
    : progressing(message);
}

function ready(message: string): Readiness {
  return { phase: 'ready', reason: 'Available', message };
}

function progressing(message: string): Readiness {
  return { phase: 'progressing', reason: 'RollingOut', message };
}

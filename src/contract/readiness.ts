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
}

/**
 * Whether an object is what it is meant to be, judged from its metadata and status alone, for kinds that bring no
 * status function. Deployments, StatefulSets and DaemonSets count their pods; anything else is judged by its
 * `Ready` condition, or is ready once it exists.
 *
 * **Caveats.** The spec isn't looked at, so a Deployment scaled up is seen as rolling out only from its next
 * status on, which its controller writes as soon as it has seen the change (`observedGeneration`).
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/status/core.go
 */
export function childReadiness(child: AnyObject): Readiness {
  const status = (child.status ?? {}) as WorkloadStatus;
  const name = describeRef(refOf(child));
  const type = groupKind(child);
  if (COUNTED.has(type) && (status.observedGeneration ?? 0) < (child.metadata.generation ?? 0)) {
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
  return COUNTED.has(type) ? countedReadiness(type, name, status) : conditionReadiness(name, status);
}

/** The readiness of the whole: the worst of its parts. */
export function worstReadiness(parts: readonly Readiness[]): Readiness {
  const order = ['stalled', 'failing', 'progressing'] as const;
  for (const phase of order) {
    const part = parts.find((candidate) => candidate.phase === phase);
    if (part) return part;
  }
  return { phase: 'ready', reason: 'Available', message: 'All objects are applied and ready' };
}

const COUNTED = new Set(['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps']);

function countedReadiness(type: string, name: string, status: WorkloadStatus): Readiness {
  const daemon = type === 'DaemonSet.apps';
  const wanted = (daemon ? status.desiredNumberScheduled : status.replicas) ?? 0;
  const updated = (daemon ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0;
  const available = (daemon ? status.numberAvailable : status.availableReplicas) ?? 0;
  const missing = status.unavailableReplicas ?? 0;
  if (updated < wanted || available < wanted || missing > 0) {
    return progressing(
      `${name}: ${available} of ${Math.max(wanted, available + missing)} pods are available`,
    );
  }
  return ready(`${name}: ${available} of ${wanted} pods are available`);
}

function conditionReadiness(name: string, status: WorkloadStatus): Readiness {
  const condition = status.conditions?.find(({ type }) => type === 'Ready');
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

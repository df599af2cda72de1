import type { V1DeploymentCondition, V1DeploymentStatus } from '@kubernetes/client-node';
import type { ConditionProps, ConditionStatus, Readiness } from '../../contract/conditions.js';
import type { AnyObject } from '../../contract/object.js';
import type { StatusInput, StatusReport } from '../../contract/status.js';
import type { AppServiceSpec, AppServiceStatus, ReplicaCounts } from './spec.js';
import type { Wire } from './wire.js';

type DeploymentStatus = Wire<V1DeploymentStatus>;
type DeploymentCondition = Wire<V1DeploymentCondition>;

/** The status of an AppService: the counters and conditions of its Deployment, and the verdict on them. */
export function appServiceStatus(
  input: StatusInput<AppServiceSpec, AppServiceStatus>,
): StatusReport<AppServiceStatus> {
  const deployment = input.children.find(({ kind }) => kind === 'Deployment');
  const status = deployment?.status as DeploymentStatus | undefined;
  // A Deployment's status without a generation is one that its controller hasn't written yet.
  if (!deployment || status?.observedGeneration === undefined) {
    return { readiness: progressing('Pending', "The Deployment's controller has yet to report on it") };
  }
  return {
    readiness: readiness(input.cr.spec.size, deployment, status),
    conditions: mirroredConditions(status),
    fields: replicaCounts(status),
  };
}

/**
 * The verdict of `kubectl rollout status`, and of kstatus where that is the stricter: surplus replicas of the
 * present spec are waited for too.
 * @see https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go
 */
function readiness(size: number, deployment: AnyObject, status: DeploymentStatus): Readiness {
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) {
    return progressing('RollingOut', "The Deployment's controller has yet to see the latest change");
  }
  const missing = whatIsMissing(size, replicaCounts(status));
  const failure = find(status, 'ReplicaFailure', 'True');
  const overdue = find(status, 'Progressing', 'False');
  if (overdue?.reason === 'ProgressDeadlineExceeded') {
    return {
      phase: 'stalled',
      reason: overdue.reason,
      message: sentence(overdue.message, missing, failure?.message),
    };
  }
  if (missing === undefined) {
    return size === 0
      ? { phase: 'ready', reason: 'ScaledToZero', message: 'The size is 0, and no replica is left' }
      : { phase: 'ready', reason: 'Available', message: `${size} of ${size} replicas are available` };
  }
  if (failure) {
    return { phase: 'failing', reason: 'ReplicaFailure', message: sentence(missing, failure.message) };
  }
  return progressing('RollingOut', missing);
}

/** What a rollout still waits for; nothing when it is complete. */
function whatIsMissing(size: number, counts: ReplicaCounts): string | undefined {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = counts;
  if (updatedReplicas < size) return `${updatedReplicas} of ${size} replicas run the present spec`;
  const outdated = replicas - updatedReplicas;
  if (outdated > 0) return `Replicas of an earlier spec still to go: ${outdated}`;
  if (replicas > size) return `Surplus replicas still to go: ${replicas - size}`;
  if (availableReplicas < size) return `${availableReplicas} of ${size} replicas are available`;
  return undefined;
}

/**
 * The Deployment's counters. A counter of 0 is left out on the wire, so it is put back for readers; the last two
 * are left out by clusters that don't count them, so there is nothing to put back.
 */
function replicaCounts(status: DeploymentStatus): ReplicaCounts {
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const { unavailableReplicas = 0, terminatingReplicas, collisionCount } = status;
  return {
    replicas,
    updatedReplicas,
    readyReplicas,
    availableReplicas,
    unavailableReplicas,
    ...(terminatingReplicas !== undefined && { terminatingReplicas }),
    ...(collisionCount !== undefined && { collisionCount }),
  };
}

const MIRRORED: readonly string[] = ['Available', 'Progressing', 'ReplicaFailure'];

/** Without `lastUpdateTime`, which moves although nothing else does. */
function mirroredConditions({ conditions = [] }: DeploymentStatus): ConditionProps[] {
  return MIRRORED.flatMap((wanted) => conditions.filter(({ type }) => type === wanted)).map(
    // A reason is optional in a Deployment's conditions and required in ours.
    ({ type, status, reason, message = '' }) => ({
      type,
      status: status as ConditionStatus,
      reason: reason || type,
      message,
    }),
  );
}

function find(
  { conditions = [] }: DeploymentStatus,
  type: string,
  status: ConditionStatus,
): DeploymentCondition | undefined {
  return conditions.find((condition) => condition.type === type && condition.status === status);
}

function sentence(...parts: readonly (string | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined)
    .map((part) => part.replace(/\.$/, ''))
    .join('; ');
}

function progressing(reason: string, message: string): Readiness {
  return { phase: 'progressing', reason, message };
}

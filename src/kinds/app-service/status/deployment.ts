import type { V1DeploymentCondition, V1DeploymentStatus } from '@kubernetes/client-node';
import type { ConditionProps, ConditionStatus } from '../../../contract/conditions.js';
import type { KeptPod } from '../pods.js';
import type { ReplicaCounts } from '../spec.js';
import type { Wire } from '../wire.js';

export type DeploymentStatus = Wire<V1DeploymentStatus>;
export type DeploymentCondition = Wire<V1DeploymentCondition>;

/**
 * The Deployment's counters. A counter of 0 is left out on the wire, so it is put back for readers; the last two
 * are left out by clusters that don't count them, so there is nothing to put back.
 */
export function replicaCounts(status: DeploymentStatus): ReplicaCounts {
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
export function mirroredConditions({ conditions = [] }: DeploymentStatus): ConditionProps[] {
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

export function findCondition(
  { conditions = [] }: DeploymentStatus,
  type: string,
  status?: ConditionStatus,
): DeploymentCondition | undefined {
  return conditions.find(
    (condition) => condition.type === type && (status === undefined || condition.status === status),
  );
}

/**
 * The ReplicaSet of the present template, which a Deployment names nowhere but in this message, as in
 * `ReplicaSet "web-5d8f" is progressing.`; nothing where the message is of another form.
 * @see https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/deployment/progress.go
 */
function presentReplicaSet(status: DeploymentStatus): string | undefined {
  const message = findCondition(status, 'Progressing')?.message ?? '';
  return /replica ?set "([^"]+)"/i.exec(message)?.[1];
}

/** Those of an earlier spec are on their way out, so their troubles are over. */
export function podsOfPresentSpec(
  status: DeploymentStatus | undefined,
  pods: readonly KeptPod[],
): readonly KeptPod[] {
  const present = status && pods.length > 0 && presentReplicaSet(status);
  return present ? pods.filter(({ replicaSet }) => replicaSet === present) : pods;
}

import type { Readiness } from '../../../contract/conditions.js';
import type { AnyObject, CustomResource } from '../../../contract/object.js';
import type { KeptPod } from '../pods.js';
import type { AppServiceSpec, AppServiceStatus, ReplicaCounts } from '../spec.js';
import { findCondition, replicaCounts } from './deployment.js';
import type { DeploymentStatus } from './deployment.js';
import { worstFirst } from './pod-trouble.js';
import type { PodTrouble } from './pod-trouble.js';
import { replicaFailure } from './replica-failure.js';
import { sentence } from './sentence.js';
import { slowStart } from './slow-start.js';

/** More of them make no message better. */
const TROUBLES_TOLD = 3;

export interface ReadinessInput {
  readonly cr: CustomResource<AppServiceSpec, AppServiceStatus>;
  readonly deployment: AnyObject;
  readonly status: DeploymentStatus;
  /** How many replicas there are to be now. */
  readonly wanted: number;
  /** The pods of the present spec that are in trouble, or may be. */
  readonly pods: readonly KeptPod[];
  readonly now: Date;
}

/**
 * The verdict of `kubectl rollout status`, and of kstatus where that is the stricter: surplus replicas of the present
 * spec are waited for too. Where replicas are missing, what keeps them away gives the reason; what only an edit can
 * end comes first, then the end of the Deployment's patience.
 * @see https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go
 */
export function readiness({ cr, deployment, status, wanted, pods, now }: ReadinessInput): Readiness {
  const { spec } = cr;
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) {
    return progressing('RollingOut', "The Deployment's controller has yet to see the latest change");
  }
  const missing = whatIsMissing(wanted, replicaCounts(status));
  const overdue = findCondition(status, 'Progressing', 'False');
  const late = overdue?.reason === 'ProgressDeadlineExceeded' ? overdue : undefined;
  if (missing === undefined && !late) return complete(wanted, spec);

  const slow = slowStart(cr, pods, now);
  const causes = [...replicaFailures(spec, status), ...podFailures(spec, pods), ...(slow ? [slow] : [])];
  const told = causes.map(({ message }) => message);
  const hopeless = causes.find(({ phase }) => phase === 'stalled');
  if (hopeless) return { ...hopeless, message: sentence(missing, ...told) };
  if (late) {
    return {
      phase: 'stalled',
      reason: 'ProgressDeadlineExceeded',
      message: sentence(late.message, missing, ...told),
    };
  }
  const [cause] = causes;
  return cause ? { ...cause, message: sentence(missing, ...told) } : progressing('RollingOut', missing ?? '');
}

export function progressing(reason: string, message: string): Readiness {
  return { phase: 'progressing', reason, message };
}

function complete(wanted: number, { autoscaling }: AppServiceSpec): Readiness {
  if (wanted > 0)
    return { phase: 'ready', reason: 'Available', message: `${wanted} of ${wanted} replicas are available` };
  const message = autoscaling
    ? 'The Deployment is scaled to 0, and no replica is left; its autoscaling rests until it is scaled up'
    : 'The size is 0, and no replica is left';
  return { phase: 'ready', reason: 'ScaledToZero', message };
}

/** What a rollout still waits for; nothing when it is complete. */
function whatIsMissing(wanted: number, counts: ReplicaCounts): string | undefined {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = counts;
  if (updatedReplicas < wanted) return `${updatedReplicas} of ${wanted} replicas run the present spec`;
  const outdated = replicas - updatedReplicas;
  if (outdated > 0) return `Replicas of an earlier spec still to go: ${outdated}`;
  if (replicas > wanted) return `Surplus replicas still to go: ${replicas - wanted}`;
  if (availableReplicas < wanted) return `${availableReplicas} of ${wanted} replicas are available`;
  return undefined;
}

function replicaFailures({ securityProfile }: AppServiceSpec, status: DeploymentStatus): Readiness[] {
  const failure = findCondition(status, 'ReplicaFailure', 'True');
  return failure ? [replicaFailure(failure.message ?? '', securityProfile)] : [];
}

function podFailures(spec: AppServiceSpec, pods: readonly KeptPod[]): Readiness[] {
  return worstFirst(pods.flatMap(({ trouble }) => trouble ?? []))
    .slice(0, TROUBLES_TOLD)
    .map((trouble) => podFailure(trouble, spec));
}

function podFailure({ reason, message }: PodTrouble, { securityProfile }: AppServiceSpec): Readiness {
  if (reason !== 'ImageRunsAsRoot') return { phase: 'failing', reason, message };
  const remedy = 'use an image with a numeric USER other than 0, as in "USER 65532"';
  const way =
    securityProfile === 'Restricted' ? ', or say "securityProfile: Baseline" where that is allowed' : '';
  return { phase: 'stalled', reason, message: sentence(message, remedy + way) };
}

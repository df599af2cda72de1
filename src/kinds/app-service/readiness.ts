import type { V1DeploymentStatus } from '@kubernetes/client-node';
import type { ConditionStatus, Readiness } from '../../contract/conditions.js';
import { selectorLabels } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { worstFirst } from './pods.js';
import type { KeptPod, PodTrouble } from './pods.js';
import type { AppServiceSpec, AppServiceStatus, FileMount, ReplicaCounts, Wire } from './spec.js';

export type Resource = CustomResource<AppServiceSpec, AppServiceStatus>;
export type DeploymentStatus = Wire<V1DeploymentStatus>;

/** More of them make no message better. */
const MOST_TROUBLES = 3;

/**
 * Judges as `kubectl rollout status`, and as kstatus where that is the stricter: surplus replicas of the present
 * spec are waited for too. Where replicas are missing, what keeps them away gives the reason; what only an edit can
 * end comes first, then the end of the Deployment's patience.
 * @see https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go
 * @param pods those of the present spec that are in trouble, or may be
 */
export function readiness(
  cr: Resource,
  deployment: AnyObject,
  status: DeploymentStatus,
  pods: readonly KeptPod[],
  now: Date,
): Readiness {
  const { size, autoscaling, securityProfile } = cr.spec;
  // An autoscaler decides on the Deployment's replicas, and `size` is where it began.
  const { replicas: live } = deployment as { readonly replicas?: { readonly value?: number } };
  const wanted = autoscaling ? (live?.value ?? size) : size;
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0))
    return progressing('RollingOut', "The Deployment's controller has yet to see the latest change");
  const missing = missingReplicas(wanted, status);
  const overdue = findCondition(status, 'Progressing', 'False');
  const late = overdue?.reason === 'ProgressDeadlineExceeded' ? overdue : undefined;
  if (missing === undefined && !late) return complete(wanted, cr.spec);

  const failure = findCondition(status, 'ReplicaFailure', 'True');
  const troubles = worstFirst(pods.flatMap(({ trouble }) => trouble ?? [])).slice(0, MOST_TROUBLES);
  const causes = [
    ...(failure ? [replicaFailure(failure.message ?? '', securityProfile)] : []),
    ...troubles.map((trouble) => podFailure(trouble, cr.spec)),
    ...slowStart(cr, pods, now),
  ];
  const message = sentence(missing, ...causes.map((cause) => cause.message));
  const hopeless = causes.find(({ phase }) => phase === 'stalled');
  if (hopeless) return { ...hopeless, message };
  if (late)
    return {
      ...{ phase: 'stalled', reason: 'ProgressDeadlineExceeded' },
      message: sentence(late.message, message),
    };
  return causes[0] ? { ...causes[0], message } : progressing('RollingOut', missing ?? '');
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

/** Describes what a rollout still waits for; nothing when it is complete. */
function missingReplicas(wanted: number, status: DeploymentStatus): string | undefined {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if (updatedReplicas < wanted) return `${updatedReplicas} of ${wanted} replicas run the present spec`;
  const outdated = replicas - updatedReplicas;
  if (outdated > 0) return `Replicas of an earlier spec still to go: ${outdated}`;
  if (replicas > wanted) return `Surplus replicas still to go: ${replicas - wanted}`;
  if (availableReplicas < wanted) return `${availableReplicas} of ${wanted} replicas are available`;
  return undefined;
}

function podFailure({ reason, message }: PodTrouble, { securityProfile }: AppServiceSpec): Readiness {
  if (reason !== 'ImageRunsAsRoot') return { phase: 'failing', reason, message };
  const remedy = 'use an image with a numeric USER other than 0, as in "USER 65532"';
  const way =
    securityProfile === 'Restricted' ? ', or say "securityProfile: Baseline" where that is allowed' : '';
  return { phase: 'stalled', reason, message: sentence(message, remedy + way) };
}

/** Volumes, sandbox and network take a moment in any pod that starts. */
const PATIENCE_SECONDS = 10;

/**
 * Describes a pod that its node has been preparing for too long. That is all that can be seen without reading
 * Secrets and events, and it may come to a good end, so nothing is said to have failed. Always the same words.
 */
function slowStart(cr: Resource, pods: readonly KeptPod[], now: Date): Readiness[] {
  if (!ends(pods).some((end) => end <= now.getTime())) return [];
  const { files = [], serviceAccountName = 'default' } = cr.spec;
  const mounted = [...new Set(files.flatMap((file) => mountedObject(file, serviceAccountName)))].sort();
  const selector = `--namespace ${cr.metadata.namespace ?? ''} --selector ${selectorText(cr)}`;
  const look = `see the events of the pods for the reason: kubectl describe pods ${selector}`;
  // Older kubelets report that a pod is prepared only once its images are pulled.
  const waiting = (what: string): string =>
    `a pod has been waiting for more than ${PATIENCE_SECONDS} s for ${what} sandbox or, on nodes before Kubernetes 1.36, its image`;
  if (mounted.length === 0) return [progressing('WaitingForSandbox', sentence(waiting('its'), look))];
  const mounts = `these have to be there, with the keys that are asked for: ${mounted.join(', ')}`;
  return [progressing('WaitingForVolumes', sentence(waiting('its volumes, its'), mounts, look))];
}

/** Returns when the first of the pods will have been prepared for too long; nothing where one has already, or none is. */
export function nextSlowStart(pods: readonly KeptPod[], now: Date): Date | undefined {
  const first = Math.min(...ends(pods));
  return Number.isFinite(first) && first > now.getTime() ? new Date(first) : undefined;
}

/** Until when each of them is taken to be on its way, in milliseconds. */
function ends(pods: readonly KeptPod[]): number[] {
  return pods
    .flatMap(({ startingSince }) => startingSince ?? [])
    .map((since) => Date.parse(since) + PATIENCE_SECONDS * 1_000)
    .filter((end) => !Number.isNaN(end));
}

/** Names what has to be there for a file to be mounted. */
function mountedObject(
  { configMap, secret, persistentVolumeClaim, token }: FileMount,
  account: string,
): string[] {
  if (configMap && !configMap.optional) return [`ConfigMap "${configMap.name}"`];
  if (secret && !secret.optional) return [`Secret "${secret.name}"`];
  if (persistentVolumeClaim) return [`PersistentVolumeClaim "${persistentVolumeClaim.claimName}"`];
  return token ? [`ServiceAccount "${account}"`] : [];
}

export function selectorText(cr: Resource): string {
  const labels = Object.entries(selectorLabels(cr, cr.metadata.name));
  return labels.map(([label, value]) => `${label}=${value}`).join(',');
}

/** Explains why replicas can't be created, in the words of the API server and with a remedy where one is known. */
export function replicaFailure(text: string, profile: AppServiceSpec['securityProfile']): Readiness {
  // Without the name of the pod that was tried, which is another one each time.
  const refusal = text.replace(/^pods "[^"]*" is forbidden: /, '');
  const security = /^violates PodSecurity "([^":]+)(?::[^"]*)?": (.*)$/s.exec(refusal);
  if (!security) {
    const reason = refusal.startsWith('exceeded quota') ? 'QuotaExceeded' : 'ReplicaFailure';
    return { phase: 'failing', reason, message: refusal };
  }
  const [, level = '', violations = ''] = security;
  const remedy =
    level === 'restricted' && profile !== 'Restricted'
      ? 'add "securityProfile: Restricted" to the spec'
      : 'the AppService asks for none of it, so look for what changes its pods, such as an admission webhook, ' +
        'or lower the label pod-security.kubernetes.io/enforce of the namespace';
  const enforced = `the namespace enforces the Pod Security Standard "${level}", and the pods don't meet it: ${violations}`;
  return { phase: 'stalled', reason: 'PodSecurityViolation', message: sentence(enforced, remedy) };
}

/**
 * Returns the Deployment's counters. A counter of 0 is left out on the wire, so it is put back for readers; the last two
 * are left out by clusters that don't count them, so there is nothing to put back.
 */
export function replicaCounts(status: DeploymentStatus): ReplicaCounts {
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const { unavailableReplicas = 0, terminatingReplicas, collisionCount } = status;
  return {
    ...{ replicas, updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas },
    ...(terminatingReplicas !== undefined && { terminatingReplicas }),
    ...(collisionCount !== undefined && { collisionCount }),
  };
}

export function findCondition({ conditions = [] }: DeploymentStatus, type: string, status?: ConditionStatus) {
  return conditions.find((condition) => condition.type === type && (!status || condition.status === status));
}

/**
 * Leaves out pods of an earlier spec: they are on their way out, so their troubles are over. A Deployment names the
 * ReplicaSet of the present template nowhere but in this message, as in `ReplicaSet "web-5d8f" is progressing.`; all pods
 * count where the message is of another form.
 * @see https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/deployment/progress.go
 */
export function podsOfPresentSpec(
  status: DeploymentStatus | undefined,
  pods: readonly KeptPod[],
): readonly KeptPod[] {
  const message = (status && findCondition(status, 'Progressing')?.message) ?? '';
  const [, present] = /replica ?set "([^"]+)"/i.exec(message) ?? [];
  return present ? pods.filter(({ replicaSet }) => replicaSet === present) : pods;
}

/** Joins the parts that there are into one line for people. */
export function sentence(...parts: readonly (string | undefined)[]): string {
  return parts.flatMap((part) => (part ? part.replace(/\.$/, '') : [])).join('; ');
}

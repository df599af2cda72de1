import type { V1DeploymentCondition, V1DeploymentStatus } from '@kubernetes/client-node';
import type { ConditionProps, ConditionStatus, Readiness } from '../../contract/conditions.js';
import { selectorLabels } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { worstFirst } from './pods.js';
import type { KeptPod, PodTrouble } from './pods.js';
import type { AppServiceSpec, AppServiceStatus, FileMount, ReplicaCounts, Wire } from './spec.js';

/** More of them make no message better. */
const TROUBLES_TOLD = 3;

interface ReadinessInput {
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

/** Volumes, sandbox and network take a moment in any pod that starts. */
const PATIENCE_SECONDS = 10;

type Resource = CustomResource<AppServiceSpec, AppServiceStatus>;

/**
 * What is told while the node of a pod has been preparing it for too long. That is all that can be seen without reading
 * Secrets and events, and it may come to a good end, so nothing is said to have failed. Always the same words.
 */
function slowStart(cr: Resource, pods: readonly KeptPod[], now: Date): Readiness | undefined {
  if (!ends(pods).some((end) => end <= now.getTime())) return undefined;
  const mounted = mountedObjects(cr.spec);
  const look = `see the events of the pods for the reason: ${describeCommand(cr)}`;
  if (mounted.length === 0)
    return { phase: 'progressing', reason: 'WaitingForSandbox', message: sentence(waiting('its'), look) };
  const message = waiting('its volumes, its');
  const mounts = `these have to be there, with the keys that are asked for: ${mounted.join(', ')}`;
  return { phase: 'progressing', reason: 'WaitingForVolumes', message: sentence(message, mounts, look) };
}

/** Older kubelets tell that a pod is prepared only once its images are pulled. */
function waiting(what: string): string {
  return `a pod has been waiting for more than ${PATIENCE_SECONDS} s for ${what} sandbox or, on nodes before Kubernetes 1.36, its image`;
}

/** When the first of the pods will have been prepared for too long; nothing where one has already, or none is. */
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

/** What has to be there for the files to be mounted. */
function mountedObjects({ files = [], serviceAccountName = 'default' }: AppServiceSpec): string[] {
  return [...new Set(files.flatMap((file) => mountedObject(file, serviceAccountName)))].sort();
}

function mountedObject(
  { configMap, secret, persistentVolumeClaim, token }: FileMount,
  account: string,
): string[] {
  if (configMap && !configMap.optional) return [`ConfigMap "${configMap.name}"`];
  if (secret && !secret.optional) return [`Secret "${secret.name}"`];
  if (persistentVolumeClaim) return [`PersistentVolumeClaim "${persistentVolumeClaim.claimName}"`];
  return token ? [`ServiceAccount "${account}"`] : [];
}

function describeCommand(cr: Resource): string {
  return `kubectl describe pods --namespace ${cr.metadata.namespace ?? ''} --selector ${selectorText(cr)}`;
}

export function selectorText(cr: Resource): string {
  return Object.entries(selectorLabels(cr, cr.metadata.name))
    .map(([label, value]) => `${label}=${value}`)
    .join(',');
}

type Profile = AppServiceSpec['securityProfile'];

/** Why replicas can't be created, in the words of the API server and with a remedy where one is known. */
export function replicaFailure(text: string, profile: Profile): Readiness {
  const refusal = withoutPod(text);
  const security = /^violates PodSecurity "([^":]+)(?::[^"]*)?": (.*)$/s.exec(refusal);
  if (security) {
    const [, level = '', violations = ''] = security;
    return {
      phase: 'stalled',
      reason: 'PodSecurityViolation',
      message: sentence(
        `the namespace enforces the Pod Security Standard "${level}", and the pods don't meet it: ${violations}`,
        securityRemedy(level, profile),
      ),
    };
  }
  const reason = refusal.startsWith('exceeded quota') ? 'QuotaExceeded' : 'ReplicaFailure';
  return { phase: 'failing', reason, message: refusal };
}

function securityRemedy(level: string, profile: Profile): string {
  if (level === 'restricted' && profile !== 'Restricted')
    return 'add "securityProfile: Restricted" to the spec';
  return (
    'the AppService asks for none of it, so look for what changes its pods, such as an admission webhook, ' +
    'or lower the label pod-security.kubernetes.io/enforce of the namespace'
  );
}

/** Without the name of the pod that was tried, which is another one each time. */
function withoutPod(text: string): string {
  return text.replace(/^pods "[^"]*" is forbidden: /, '');
}

export type DeploymentStatus = Wire<V1DeploymentStatus>;
type DeploymentCondition = Wire<V1DeploymentCondition>;

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

function findCondition(
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

/** The parts that there are, as one line for people. */
export function sentence(...parts: readonly (string | undefined)[]): string {
  return parts
    .filter((part) => part !== undefined && part !== '')
    .map((part) => (part as string).replace(/\.$/, ''))
    .join('; ');
}

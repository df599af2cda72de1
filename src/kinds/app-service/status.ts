import type { V1Deployment, V1DeploymentStatus, V1Service, V1ServicePort } from '@kubernetes/client-node';
import type { ConditionProps, ConditionStatus, Phase, Readiness } from '../../contract/conditions.js';
import { keepReplicas } from '../../author/hand-over.js';
import type { Wire } from '../../author/kubernetes-types.js';
import { selectorLabels } from '../../contract/names.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { pausedRollout } from '../../values/readiness.js';
import type { Failure, StatusInput, StatusReport } from '../../author/status.js';
import { condition, given } from '../common.js';
import { MAX_TROUBLES, podsOfPresentSpec, worstFirst } from '../../author/pods.js';
import type { KeptPod, PodTrouble } from '../../author/pods.js';
import { DEFAULT_PROTOCOL } from './spec.js';
import type { AppServiceSpec, AppServiceStatus, FileMount, Route, RouteParent } from './spec.js';

type Resource = CustomResource<AppServiceSpec, AppServiceStatus>;
type DeploymentStatus = Wire<V1DeploymentStatus>;

/** Reports the counters and conditions of the Deployment, the ports, the route, and the readiness that follows. */
export function appServiceStatus(
  input: StatusInput<AppServiceSpec, AppServiceStatus>,
): StatusReport<AppServiceStatus> {
  const { cr, failures, now } = input;
  const children = new Map(input.children.map((child) => [child.kind, child]));
  const deployment = children.get('Deployment');
  const service = children.get('Service');
  const httpRoute = children.get('HTTPRoute');
  const reported = deployment?.status as DeploymentStatus | undefined;
  // A status without a generation is one that the Deployment's controller hasn't written yet.
  const status = reported?.observedGeneration === undefined ? undefined : reported;
  const { route } = cr.spec;
  const url = route && httpRoute && routeUrl(route);
  const image = deployment && runningImage(deployment);
  const ports = service && servicePorts(service);
  const pods = podsOfPresentSpec(deployment ? [deployment] : [], input.related);
  const requeueAt = nextSlowStart(pods, now);
  // It appears only where it is False: nothing waits for a policy to allow something.
  const denied = failures.find(({ error }) => error.reason === 'PolicyDenied')?.error;
  return {
    readiness:
      deployment && status
        ? readiness(cr, deployment, status, pods, now)
        : as('progressing', 'Pending', "The Deployment's controller has yet to report on it"),
    ...(requeueAt && { requeueAt }),
    conditions: [
      ...(status ? mirroredConditions(status) : []),
      ...(denied ? [condition('Accepted', 'False', denied)] : []),
      ...(route ? [routeReady(route, httpRoute, failures)] : []),
    ],
    fields: {
      ...(status && replicaCounts(status)),
      selector: selectorText(cr),
      ...(ports && { ports, portSummary: portSummary(ports) }),
      ...(url && { url }),
      ...(image && { image }),
    },
  };
}

function as(phase: Phase, reason: string, message: string): Readiness {
  return { phase, reason, message };
}

/** Joins the parts that there are into one line for people. */
function sentence(...parts: readonly (string | undefined)[]): string {
  return parts.flatMap((part) => (part ? part.replace(/\.$/, '') : [])).join('; ');
}

function findCondition({ conditions = [] }: DeploymentStatus, type: string, status?: ConditionStatus) {
  for (const each of conditions) if (each.type === type && (!status || each.status === status)) return each;
  return undefined;
}

/**
 * Judges as `kubectl rollout status`, and as kstatus where that is the stricter: surplus replicas of the present
 * spec are waited for too. Where replicas are missing, what keeps them away gives the reason; what only an edit can
 * end comes first, then the end of the Deployment's patience.
 * @see https://github.com/kubernetes/kubectl/blob/master/pkg/polymorphichelpers/rollout_status.go
 * @param pods those of the present spec that are in trouble, or may be
 */
function readiness(
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
    return as('progressing', 'RollingOut', "The Deployment's controller has yet to see the latest change");
  const missing = missingReplicas(wanted, status);
  const overdue = findCondition(status, 'Progressing', 'False');
  const late = overdue?.reason === 'ProgressDeadlineExceeded' ? overdue : undefined;
  if (missing === undefined && !late) return complete(wanted, cr.spec);

  const failure = findCondition(status, 'ReplicaFailure', 'True');
  const troubles = worstFirst(pods.flatMap(({ trouble }) => trouble ?? [])).slice(0, MAX_TROUBLES);
  const causes = [
    ...(failure ? [replicaFailure(failure.message ?? '', securityProfile)] : []),
    ...troubles.map((trouble) => podFailure(trouble, cr.spec)),
    ...slowStart(cr, pods, now),
  ];
  const message = sentence(missing, ...causes.map((cause) => cause.message));
  const hopeless = causes.find(({ phase }) => phase === 'stalled');
  if (hopeless) return { ...hopeless, message };
  if (late) return as('stalled', 'ProgressDeadlineExceeded', sentence(late.message, message));
  const paused = pausedRollout(deployment);
  if (paused) return as('stalled', 'DeploymentPaused', sentence(paused, message));
  return causes[0] ? { ...causes[0], message } : as('progressing', 'RollingOut', missing ?? '');
}

function complete(wanted: number, { autoscaling }: AppServiceSpec): Readiness {
  if (wanted > 0) return as('ready', 'Available', `${wanted} of ${wanted} replicas are available`);
  const message = autoscaling
    ? 'The Deployment is scaled to 0, and no replica is left; its autoscaling rests until it is scaled up'
    : 'The size is 0, and no replica is left';
  return as('ready', 'ScaledToZero', message);
}

/** Describes what a rollout still waits for; nothing when it is complete. */
function missingReplicas(wanted: number, status: DeploymentStatus): string | undefined {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if (updatedReplicas < wanted) return `${updatedReplicas} of ${wanted} replicas run the present spec`;
  const outdated = replicas - updatedReplicas;
  if (outdated > 0) return `Replicas of an earlier spec still to go: ${outdated}`;
  if (replicas > wanted) return `Surplus replicas still to go: ${replicas - wanted}`;
  return availableReplicas < wanted ? `${availableReplicas} of ${wanted} replicas are available` : undefined;
}

function podFailure({ reason, message }: PodTrouble, { securityProfile }: AppServiceSpec): Readiness {
  if (reason !== 'ImageRunsAsRoot') return as('failing', reason, message);
  const remedy = 'use an image with a numeric USER other than 0, as in "USER 65532"';
  const way =
    securityProfile === 'Restricted' ? ', or say "securityProfile: Baseline" where that is allowed' : '';
  return as('stalled', reason, sentence(message, remedy + way));
}

/** Explains why replicas can't be created, in the words of the API server and with a remedy where one is known. */
export function replicaFailure(text: string, profile: AppServiceSpec['securityProfile']): Readiness {
  // Without the name of the pod that was tried, which is another one each time.
  const refusal = text.replace(/^pods "[^"]*" is forbidden: /, '');
  const security = /^violates PodSecurity "([^":]+)(?::[^"]*)?": (.*)$/s.exec(refusal);
  if (!security)
    return as('failing', refusal.startsWith('exceeded quota') ? 'QuotaExceeded' : 'ReplicaFailure', refusal);
  const [, level = '', violations = ''] = security;
  const remedy =
    level === 'restricted' && profile !== 'Restricted'
      ? 'add "securityProfile: Restricted" to the spec'
      : 'the AppService asks for none of it, so look for what changes its pods, such as an admission webhook, ' +
        'or lower the label pod-security.kubernetes.io/enforce of the namespace';
  const enforced = `the namespace enforces the Pod Security Standard "${level}", and the pods don't meet it: ${violations}`;
  return as('stalled', 'PodSecurityViolation', sentence(enforced, remedy));
}

/** Time that volumes, sandbox and network take in any pod that starts. */
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
  if (mounted.length === 0) return [as('progressing', 'WaitingForSandbox', sentence(waiting('its'), look))];
  const mounts = `these have to be there, with the keys that are asked for: ${mounted.join(', ')}`;
  const message = sentence(waiting('its volumes, its'), mounts, look);
  return [as('progressing', 'WaitingForVolumes', message)];
}

/** Returns when the first of the pods will have been prepared for too long; nothing where one has already, or none is. */
function nextSlowStart(pods: readonly KeptPod[], now: Date): Date | undefined {
  const first = Math.min(...ends(pods));
  return Number.isFinite(first) && first > now.getTime() ? new Date(first) : undefined;
}

/** Returns the times, in milliseconds, up to which each of the pods may still be starting. */
function ends(pods: readonly KeptPod[]): number[] {
  return pods
    .flatMap(({ startingSince }) => startingSince ?? [])
    .map((since) => Date.parse(since) + PATIENCE_SECONDS * 1_000)
    .filter((end) => !Number.isNaN(end));
}

/** Names what has to be there for a file to be mounted. */
function mountedObject(file: FileMount, account: string): string[] {
  const { configMap, secret, persistentVolumeClaim, token } = file;
  if (configMap && !configMap.optional) return [`ConfigMap "${configMap.name}"`];
  if (secret && !secret.optional) return [`Secret "${secret.name}"`];
  if (persistentVolumeClaim) return [`PersistentVolumeClaim "${persistentVolumeClaim.claimName}"`];
  return token ? [`ServiceAccount "${account}"`] : [];
}

function selectorText(cr: Resource): string {
  const [label] = Object.entries(selectorLabels(cr, cr.metadata.name));
  return label?.join('=') ?? '';
}

/**
 * Returns the Deployment's counters. A counter of 0 is left out on the wire, so it is put back for readers; the last two
 * are left out by clusters that don't count them, so there is nothing to put back.
 */
function replicaCounts(status: DeploymentStatus): AppServiceStatus {
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const { unavailableReplicas = 0 } = status;
  return {
    ...{ replicas, updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas },
    ...given(status, 'terminatingReplicas', 'collisionCount'),
  };
}

/** Leaves out `lastUpdateTime`, which moves although nothing else does. */
function mirroredConditions(status: DeploymentStatus): ConditionProps[] {
  return ['Available', 'Progressing', 'ReplicaFailure'].flatMap((type) => {
    const found = findCondition(status, type);
    if (!found) return [];
    // A reason is optional in a Deployment's conditions and required in ours.
    const { reason, message = '' } = found;
    return condition(type, found.status as ConditionStatus, { reason: reason || type, message });
  });
}

/** The part of an HTTPRoute's status that is read. @see https://gateway-api.sigs.k8s.io/reference/spec/#routestatus */
interface RouteStatus {
  readonly parents?: readonly {
    readonly parentRef: RouteParent;
    readonly conditions?: readonly (Omit<ConditionProps, 'status'> & {
      readonly status: string;
      readonly observedGeneration?: number;
    })[];
  }[];
}

/** The conditions that have to hold; not every Gateway reports the last. */
const ASKED: readonly string[] = ['Accepted', 'ResolvedRefs', 'Programmed'];

/**
 * Summarizes what the Gateways say of the present generation of the HTTPRoute, or why there is no HTTPRoute. One refusal
 * makes it False; a Gateway that hasn't said anything makes it Unknown.
 */
function routeReady(
  route: Route,
  httpRoute: AnyObject | undefined,
  failures: readonly Failure[],
): ConditionProps {
  const type = 'RouteReady';
  const failed = failures.find(({ ref }) => ref?.kind === 'HTTPRoute')?.error;
  if (failed) return condition(type, 'False', failed);
  const pending = { reason: 'Pending', message: 'The HTTPRoute has yet to be applied' };
  if (!httpRoute) return condition(type, 'Unknown', pending);
  const verdicts = route.parentRefs.map((parent) => verdictOf(parent, httpRoute));
  const worst = (['False', 'Unknown', 'True'] as const).find((wanted) =>
    verdicts.some(({ status }) => status === wanted),
  );
  const said = verdicts.filter(({ status }) => status === worst);
  const message = sentence(...said.map((verdict) => verdict.message));
  return condition(type, worst ?? 'True', { reason: said[0]?.reason ?? 'Accepted', message });
}

/** Returns what one Gateway says. */
function verdictOf(parent: RouteParent, { metadata, status }: AnyObject): ConditionProps {
  const { namespace, generation = 0 } = metadata;
  const name = `Gateway ${parent.namespace ?? namespace ?? ''}/${parent.name}`;
  const { parents = [] } = (status ?? {}) as RouteStatus;
  const conditions = parents
    .filter(
      ({ parentRef }) =>
        parentRef.name === parent.name &&
        (parentRef.namespace ?? namespace) === (parent.namespace ?? namespace) &&
        parentRef.sectionName === parent.sectionName,
    )
    .flatMap((reported) => reported.conditions ?? [])
    .filter(
      ({ type, observedGeneration = generation }) => ASKED.includes(type) && observedGeneration >= generation,
    );
  const verdict = (held: ConditionStatus, reason: string, text: string): ConditionProps =>
    condition('RouteReady', held, { reason, message: name + text });
  const refusal = conditions.find((each) => each.status === 'False');
  if (refusal) return verdict('False', refusal.reason, `: ${refusal.message}`);
  const accepted = conditions.some((each) => each.type === 'Accepted' && each.status === 'True');
  const open = conditions.find((each) => each.status !== 'True');
  if (accepted && !open) return verdict('True', 'Accepted', ' has accepted the route');
  return verdict('Unknown', open?.reason ?? 'Pending', ' has yet to accept the route');
}

/**
 * Returns where the route leads in: the first full host name and the path. It begins with `http`, since whether a Gateway
 * has a certificate is its own matter, and one that has usually sends callers on to https. Nothing where only the
 * Gateway knows the host.
 */
function routeUrl({ hostnames = [], path = '/' }: Route): string | undefined {
  const host = hostnames.find((name) => !name.startsWith('*'));
  return host && `http://${host}${path}`;
}

/** Projection of a Deployment for the hand-over of its fields and the status, beside its identity and status. */
export function keepDeployment(object: AnyObject): Readonly<Record<string, unknown>> {
  const { spec } = object as unknown as Wire<V1Deployment>;
  // Other containers were injected.
  const containers: object[] = [];
  for (const container of spec?.template.spec?.containers ?? [])
    if (container.name === object.metadata.name) containers.push(given(container, 'name', 'image'));
  return { ...keepReplicas(object), spec: { template: { spec: { containers } } } };
}

function runningImage(deployment: AnyObject): string | undefined {
  const { spec } = deployment as unknown as Partial<Wire<V1Deployment>>;
  return spec?.template.spec?.containers.find(({ name }) => name === deployment.metadata.name)?.image;
}

/** Keeps the ports, with the node ports that the cluster has given them. */
export function keepService(object: AnyObject): Readonly<Record<string, unknown>> {
  const { spec } = object as unknown as Wire<V1Service>;
  const ports = (spec?.ports ?? []).map((port) => given(port, 'name', 'port', 'nodePort', 'protocol'));
  return { spec: { ...given(spec ?? {}, 'type'), ports } };
}

/** Returns the node ports that a Service has or asks for: only one in the cluster may have each. */
export function nodePortsOf(service: AnyObject): string[] {
  return (servicePorts(service) ?? []).flatMap(({ nodePort }) => (nodePort ? `node port ${nodePort}` : []));
}

/** Keeps where the route leads in. */
export function keepRoute(object: AnyObject): Readonly<Record<string, unknown>> {
  const spec = (object.spec ?? {}) as { hostnames?: unknown; parentRefs?: unknown };
  return { spec: given(spec, 'hostnames', 'parentRefs') };
}

/** In the order of the Service; nothing where there are none. */
function servicePorts(service: AnyObject): AppServiceStatus['ports'] {
  const { ports } = (service.spec ?? {}) as { readonly ports?: readonly Wire<V1ServicePort>[] };
  // A Service that needs none any more may have the node port 0.
  return ports?.length
    ? ports.map(({ nodePort, ...port }) =>
        given({ ...port, nodePort: nodePort || undefined }, 'name', 'port', 'nodePort', 'protocol'),
      )
    : undefined;
}

/** Returns ports as `kubectl get service` shows them: `port:nodePort/protocol`, without a node port where there is none. */
function portSummary(ports: NonNullable<AppServiceStatus['ports']>): string {
  const shown: string[] = [];
  for (const { port, nodePort, protocol = DEFAULT_PROTOCOL } of ports)
    shown.push(`${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol}`);
  return shown.join(',');
}

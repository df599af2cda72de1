import type { ConditionProps, ConditionStatus, Readiness } from '../../contract/conditions.js';
import type { AnyObject } from '../../contract/object.js';
import type { Failure, StatusInput, StatusReport } from '../../contract/status.js';
import type { KeptPod } from './pods.js';
import {
  mirroredConditions,
  nextSlowStart,
  podsOfPresentSpec,
  progressing,
  readiness,
  replicaCounts,
  selectorText,
  sentence,
} from './readiness.js';
import type { DeploymentStatus } from './readiness.js';
import type { AppServiceSpec, AppServiceStatus, Route, RouteParent, Wire } from './spec.js';
import type { V1Deployment, V1Service, V1ServicePort } from '@kubernetes/client-node';
import { keepReplicas } from '../../contract/hand-over.js';
import type { KeptReplicas } from '../../contract/hand-over.js';
import { keepStrategy } from './hand-over.js';
import type { KeptStrategy } from './hand-over.js';
import { DEFAULT_PROTOCOL } from './service.js';
import { given } from './spec.js';

type Input = StatusInput<AppServiceSpec, AppServiceStatus>;

/** The status of an AppService: the counters and conditions of its Deployment, and the verdict on them. */
export function appServiceStatus(input: Input): StatusReport<AppServiceStatus> {
  const deployment = child(input, 'Deployment');
  const service = child(input, 'Service');
  const status = reportedStatus(deployment);
  const image = deployment && runningImage(deployment);
  const ports = service && servicePorts(service);
  const url = input.cr.spec.route && child(input, 'HTTPRoute') && routeUrl(input.cr.spec.route);
  const pods = podsOfPresentSpec(status, input.related as unknown as readonly KeptPod[]);
  const requeueAt = nextSlowStart(pods, input.now);
  return {
    readiness: verdict(input, deployment, pods),
    ...(requeueAt && { requeueAt }),
    conditions: [...(status ? mirroredConditions(status) : []), ...accepted(input), ...routed(input)],
    fields: {
      ...(status && replicaCounts(status)),
      selector: selectorText(input.cr),
      ...(ports && { ports, portSummary: portSummary(ports) }),
      ...(url && { url }),
      ...(image && { image }),
    },
  };
}

function child({ children }: Input, wanted: string): AnyObject | undefined {
  return children.find(({ kind }) => kind === wanted);
}

/** A Deployment's status without a generation is one that its controller hasn't written yet. */
function reportedStatus(deployment: AnyObject | undefined): DeploymentStatus | undefined {
  const status = deployment?.status as DeploymentStatus | undefined;
  return status?.observedGeneration === undefined ? undefined : status;
}

function verdict({ cr, now }: Input, deployment: AnyObject | undefined, pods: readonly KeptPod[]): Readiness {
  const { spec } = cr;
  const status = reportedStatus(deployment);
  if (!deployment || !status)
    return progressing('Pending', "The Deployment's controller has yet to report on it");
  // An autoscaler decides on the Deployment's replicas, and `size` is where it began.
  const wanted = spec.autoscaling ? (liveReplicas(deployment) ?? spec.size) : spec.size;
  return readiness({ cr, deployment, status, wanted, pods, now });
}

/** Said only where it is refused: that a policy allows something is nothing that anybody waits for. */
function accepted({ failures }: Input): ConditionProps[] {
  const error = failures.find((failure) => failure.error.reason === 'PolicyDenied')?.error;
  return error ? [{ type: 'Accepted', status: 'False', reason: error.reason, message: error.message }] : [];
}

function routed(input: Input): ConditionProps[] {
  const { route } = input.cr.spec;
  return route ? [routeReady(route, child(input, 'HTTPRoute'), input.failures)] : [];
}

/** The part of an HTTPRoute's status that is read. @see https://gateway-api.sigs.k8s.io/reference/spec/#routestatus */
interface RouteStatus {
  readonly parents?: readonly {
    readonly parentRef: RouteParent;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
      readonly observedGeneration?: number;
    }[];
  }[];
}

/** What one Gateway says. */
interface Verdict {
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** The conditions that have to hold; not every Gateway reports the last. */
const ASKED: readonly string[] = ['Accepted', 'ResolvedRefs', 'Programmed'];

/**
 * Whether the Gateways take the route: what they say of the present generation of the HTTPRoute, or why there is no
 * HTTPRoute. One refusal makes it False; a Gateway that hasn't said anything makes it Unknown.
 */
function routeReady(
  route: Route,
  httpRoute: AnyObject | undefined,
  failures: readonly Failure[],
): ConditionProps {
  const failed = failures.find(({ ref }) => ref?.kind === 'HTTPRoute')?.error;
  if (failed) return { type: 'RouteReady', status: 'False', reason: failed.reason, message: failed.message };
  if (!httpRoute) return unknown('The HTTPRoute has yet to be applied');

  const verdicts = route.parentRefs.map((parent) => verdictOf(parent, httpRoute));
  const tell = (status: ConditionStatus) => {
    const said = verdicts.filter((verdict) => verdict.status === status);
    return said[0] && { reason: said[0].reason, message: sentence(...said.map(({ message }) => message)) };
  };
  const refused = tell('False');
  if (refused) return { type: 'RouteReady', status: 'False', ...refused };
  const open = tell('Unknown');
  if (open) return { type: 'RouteReady', status: 'Unknown', ...open };
  return { type: 'RouteReady', status: 'True', reason: 'Accepted', message: tell('True')?.message ?? '' };
}

/**
 * Where the route leads in: the first full host name and the path. It begins with `http`, since whether a Gateway has
 * a certificate is its own matter, and one that has sends callers on to https as a rule. Nothing where only the
 * Gateway knows the host.
 */
function routeUrl({ hostnames = [], path = '/' }: Route): string | undefined {
  const host = hostnames.find((name) => !name.startsWith('*'));
  return host && `http://${host}${path}`;
}

function verdictOf(parent: RouteParent, httpRoute: AnyObject): Verdict {
  const { namespace, generation = 0 } = httpRoute.metadata;
  const name = `Gateway ${parent.namespace ?? namespace ?? ''}/${parent.name}`;
  const conditions = ((httpRoute.status ?? {}) as RouteStatus).parents
    ?.filter(({ parentRef }) => isSame(parentRef, parent, namespace))
    .flatMap((reported) => reported.conditions ?? [])
    .filter(
      ({ type, observedGeneration = generation }) => ASKED.includes(type) && observedGeneration >= generation,
    );
  const refusal = conditions?.find(({ status }) => status === 'False');
  if (refusal)
    return gatewayVerdict('False', refusal.reason ?? refusal.type, `${name}: ${refusal.message ?? ''}`);
  const accepted = conditions?.some(({ type, status }) => type === 'Accepted' && status === 'True');
  const open = conditions?.find(({ status }) => status !== 'True');
  if (accepted && !open) return gatewayVerdict('True', 'Accepted', `${name} has accepted the route`);
  return gatewayVerdict('Unknown', open?.reason ?? 'Pending', `${name} has yet to accept the route`);
}

function isSame(reported: RouteParent, wanted: RouteParent, namespace: string | undefined): boolean {
  return (
    reported.name === wanted.name &&
    (reported.namespace ?? namespace) === (wanted.namespace ?? namespace) &&
    reported.sectionName === wanted.sectionName
  );
}

function gatewayVerdict(status: ConditionStatus, reason: string, message: string): Verdict {
  return { status, reason, message };
}

function unknown(message: string): ConditionProps {
  return { type: 'RouteReady', status: 'Unknown', reason: 'Pending', message };
}

/** A Deployment as it is kept beside its identity and status. */
export interface KeptDeployment {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly containers: readonly { name: string; image?: string }[] };
    };
  };
  readonly replicas: KeptReplicas;
  readonly strategy: KeptStrategy;
}

/** What the hand-over of `spec.replicas` and the status read of a Deployment. */
export function keepDeployment(object: AnyObject): Readonly<Record<string, unknown>> & KeptDeployment {
  const { spec } = object as unknown as Wire<V1Deployment>;
  // Others were injected.
  const own = (spec?.template.spec?.containers ?? []).filter(({ name }) => name === object.metadata.name);
  return {
    ...keepReplicas(object),
    spec: { template: { spec: { containers: own.map((container) => given(container, 'name', 'image')) } } },
    strategy: keepStrategy(object),
  };
}

/** The ports, with the node ports that the cluster has given them. */
export function keepService(object: AnyObject): Readonly<Record<string, unknown>> {
  const { spec } = object as unknown as Wire<V1Service>;
  const ports = (spec?.ports ?? []).map((port) => given(port, 'name', 'port', 'nodePort', 'protocol'));
  return { spec: { ...given(spec ?? {}, 'type'), ports } };
}

/** Returns the node ports that a Service has or asks for: only one in the cluster may have each. */
export function nodePortsOf(service: AnyObject): string[] {
  return (servicePorts(service) ?? []).flatMap(({ nodePort }) => (nodePort ? `node port ${nodePort}` : []));
}

/** Where the route leads in. */
export function keepRoute(object: AnyObject): Readonly<Record<string, unknown>> {
  const spec = (object.spec ?? {}) as { hostnames?: unknown; parentRefs?: unknown };
  return { spec: given(spec, 'hostnames', 'parentRefs') };
}

/** The replicas that are wanted now, whoever has set them. */
export function liveReplicas(deployment: AnyObject): number | undefined {
  return (deployment as Partial<KeptDeployment>).replicas?.value;
}

/** Of the container that is named as the Deployment; others were injected. */
export function runningImage(deployment: AnyObject): string | undefined {
  const containers = (deployment as Partial<KeptDeployment>).spec?.template.spec.containers;
  return containers?.find(({ name }) => name === deployment.metadata.name)?.image;
}

/** In the order of the Service; nothing where there are none. */
export function servicePorts(service: AnyObject): AppServiceStatus['ports'] {
  const { ports } = (service.spec ?? {}) as { readonly ports?: readonly Wire<V1ServicePort>[] };
  if (!ports?.length) return undefined;
  return ports.map(({ name, port, nodePort, protocol }) => ({
    ...(name !== undefined && { name }),
    port,
    // A Service that needs none any more may have 0.
    ...(nodePort && { nodePort }),
    ...(protocol !== undefined && { protocol }),
  }));
}

/** As `kubectl get service` shows the ports: `port:nodePort/protocol`, without a node port where there is none. */
export function portSummary(ports: NonNullable<AppServiceStatus['ports']>): string {
  return ports
    .map(
      ({ port, nodePort, protocol = DEFAULT_PROTOCOL }) =>
        `${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol}`,
    )
    .join(',');
}

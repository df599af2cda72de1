import type { V1Deployment, V1Service, V1ServicePort } from '@kubernetes/client-node';
import type { ConditionProps, ConditionStatus } from '../../contract/conditions.js';
import { keepReplicas } from '../../contract/hand-over.js';
import type { AnyObject } from '../../contract/object.js';
import type { Failure, StatusInput, StatusReport } from '../../contract/status.js';
import { keepStrategy } from './hand-over.js';
import type { KeptPod } from './pods.js';
import {
  findCondition,
  nextSlowStart,
  podsOfPresentSpec,
  progressing,
  readiness,
  replicaCounts,
  selectorText,
  sentence,
} from './readiness.js';
import type { DeploymentStatus } from './readiness.js';
import { DEFAULT_PROTOCOL, given } from './spec.js';
import type { AppServiceSpec, AppServiceStatus, Route, RouteParent, Wire } from './spec.js';

/** Reports the counters and conditions of the Deployment, the ports, the route, and the readiness that follows. */
export function appServiceStatus(
  input: StatusInput<AppServiceSpec, AppServiceStatus>,
): StatusReport<AppServiceStatus> {
  const { cr, failures, now } = input;
  const child = (wanted: string) => input.children.find(({ kind }) => kind === wanted);
  const deployment = child('Deployment');
  const service = child('Service');
  const httpRoute = child('HTTPRoute');
  const reported = deployment?.status as DeploymentStatus | undefined;
  // A status without a generation is one that the Deployment's controller hasn't written yet.
  const status = reported?.observedGeneration === undefined ? undefined : reported;
  const { route } = cr.spec;
  const url = route && httpRoute && routeUrl(route);
  const image = deployment && runningImage(deployment);
  const ports = service && servicePorts(service);
  const pods = podsOfPresentSpec(status, input.related as unknown as readonly KeptPod[]);
  const requeueAt = nextSlowStart(pods, now);
  // It appears only where it is False: nothing waits for a policy to allow something.
  const denied = failures.find(({ error }) => error.reason === 'PolicyDenied')?.error;
  return {
    readiness:
      deployment && status
        ? readiness(cr, deployment, status, pods, now)
        : progressing('Pending', "The Deployment's controller has yet to report on it"),
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

type Cause = Pick<ConditionProps, 'reason' | 'message'>;

function condition(type: string, status: ConditionStatus, { reason, message }: Cause): ConditionProps {
  return { type, status, reason, message };
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
function verdictOf(parent: RouteParent, httpRoute: AnyObject): ConditionProps {
  const { namespace, generation = 0 } = httpRoute.metadata;
  const name = `Gateway ${parent.namespace ?? namespace ?? ''}/${parent.name}`;
  const { parents = [] } = (httpRoute.status ?? {}) as RouteStatus;
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
  const verdict = (status: ConditionStatus, reason: string, text: string): ConditionProps =>
    condition('RouteReady', status, { reason, message: name + text });
  const refusal = conditions.find(({ status }) => status === 'False');
  if (refusal) return verdict('False', refusal.reason, `: ${refusal.message}`);
  const accepted = conditions.some(({ type, status }) => type === 'Accepted' && status === 'True');
  const open = conditions.find(({ status }) => status !== 'True');
  if (accepted && !open) return verdict('True', 'Accepted', ' has accepted the route');
  return verdict('Unknown', open?.reason ?? 'Pending', ' has yet to accept the route');
}

/**
 * Returns where the route leads in: the first full host name and the path. It begins with `http`, since whether a Gateway
 * has a certificate is its own matter, and one that has sends callers on to https as a rule. Nothing where only the
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
  const own = (spec?.template.spec?.containers ?? []).filter(({ name }) => name === object.metadata.name);
  return {
    ...keepReplicas(object),
    spec: { template: { spec: { containers: own.map((container) => given(container, 'name', 'image')) } } },
    strategy: keepStrategy(object),
  };
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
    ? ports.map(({ nodePort, ...port }) => ({
        ...given({ ...port, nodePort: nodePort || undefined }, 'name', 'port', 'nodePort', 'protocol'),
      }))
    : undefined;
}

/** As `kubectl get service` shows the ports: `port:nodePort/protocol`, without a node port where there is none. */
function portSummary(ports: NonNullable<AppServiceStatus['ports']>): string {
  return ports
    .map(
      ({ port, nodePort, protocol = DEFAULT_PROTOCOL }) =>
        `${port}${nodePort === undefined ? '' : `:${nodePort}`}/${protocol}`,
    )
    .join(',');
}

import { hash } from 'node:crypto';
import type {
  V1Container,
  V1DeploymentSpec,
  V1PodSpec,
  V1ServicePort,
  V1ServiceSpec,
  V2HorizontalPodAutoscalerSpec,
} from '@kubernetes/client-node';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import type { Wire } from '../../author/kubernetes-types.js';
import { childLabels, selectorLabels } from '../../contract/names.js';
import { given } from '../common.js';
import { checkPolicy } from './policy.js';
import { DEFAULT_PROTOCOL, DEFAULT_SERVICE_TYPE } from './spec.js';
import type { AppServiceSpec, FileMount, Route } from './spec.js';

/** The properties of the construct. */
export type AppServiceProps = CustomResourceProps<AppServiceSpec>;

/**
 * An application: a Deployment, a Service where there are ports, and on demand a HorizontalPodAutoscaler, a
 * PodDisruptionBudget and an HTTPRoute, all named as the custom resource.
 *
 * Only what the custom resource says is rendered, since every rendered field is owned and its drift corrected. The one
 * exception is `imagePullPolicy: IfNotPresent`, without which the API server would choose by the image's tag.
 *
 * @throws OperatorError `InvalidName`, `PortNameConflict`, `RoutePortNotFound` or `PolicyDenied`
 */
export class AppService extends Construct {
  constructor(scope: Construct, id: string, props: AppServiceProps) {
    super(scope, id);
    const { spec, apiVersion: version = 'kosmos.io/v1' } = props;
    const { name, namespace } = props.metadata;
    checkName(name);
    checkPolicy(props);
    const own = { apiVersion: version, kind: 'AppService' };
    const app = { name, labels: childLabels(own, name), selector: selectorLabels(own, name) };
    // Labels and annotations of the custom resource belong to whatever set them there.
    const metadata = { name, ...(namespace && { namespace }), labels: app.labels };
    const children = [
      ['apps/v1', 'Deployment', deploymentSpec(app, spec)],
      ['v1', 'Service', serviceSpec(app, spec)],
      ['autoscaling/v2', 'HorizontalPodAutoscaler', autoscalerSpec(app, spec)],
      ['policy/v1', 'PodDisruptionBudget', disruptionBudgetSpec(app, spec)],
      ['gateway.networking.k8s.io/v1', 'HTTPRoute', routeSpec(app, spec)],
    ] as const;
    for (const [apiVersion, kind, childSpec] of children) {
      if (!childSpec) continue;
      const child = new ApiObject(this, kind, { apiVersion, kind, metadata, spec: childSpec });
      this.node.defaultChild ??= child;
    }
  }
}

/** Name and labels of an application's objects. */
interface Identity {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Selects the pods, by the one label that never changes: a Deployment's selector is immutable. */
  readonly selector: Readonly<Record<string, string>>;
}

/**
 * A custom resource may have a longer name, and one with dots. The container that is named after it may not, and
 * a label's value, which is what the selector holds, has at most 63 characters too.
 */
function checkName(name: string): void {
  if (name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return;
  throw new OperatorError({
    reason: 'InvalidName',
    path: ['metadata', 'name'],
    message:
      `metadata.name: "${name}" can't name a container: at most 63 lower-case letters, digits and "-" are allowed, ` +
      'with a letter or digit at both ends. Create the AppService under another name',
  });
}

/**
 * While there is an autoscaler, `replicas` is its field and isn't rendered: each apply of it would take it back.
 * `handOverReplicas` has it pass without a dip.
 */
function deploymentSpec(app: Identity, spec: AppServiceSpec): Wire<V1DeploymentSpec> {
  return {
    ...(!spec.autoscaling && { replicas: spec.size }),
    ...given(spec, 'strategy', 'minReadySeconds', 'progressDeadlineSeconds'),
    selector: { matchLabels: app.selector },
    template: { metadata: { labels: app.labels }, spec: podSpec(app, spec) },
  };
}

function podSpec(app: Identity, spec: AppServiceSpec): Wire<V1PodSpec> {
  const { files, serviceAccountName } = spec;
  const topologySpreadConstraints = spreadConstraints(app, spec);
  return {
    containers: [container(app.name, spec)],
    ...given(spec, 'imagePullSecrets', 'terminationGracePeriodSeconds'),
    // Under its deprecated name too: the API server copies the name there, and from there back again once ours is no
    // longer given, so that a service account could never be given up. https://github.com/kubernetes/kubernetes/issues/108208
    ...(serviceAccountName !== undefined && { serviceAccountName, serviceAccount: serviceAccountName }),
    ...podSecurity(spec),
    ...(files?.length && { volumes: inOrder(files).map(volume) }),
    ...(topologySpreadConstraints.length > 0 && { topologySpreadConstraints }),
  };
}

function container(name: string, spec: AppServiceSpec): Wire<V1Container> {
  const { ports, envs, files, preStop, securityProfile } = spec;
  // None is made up: a probe that doesn't fit an application stops or restarts it.
  const { readiness, liveness, startup } = spec.probes ?? {};
  return {
    name,
    image: spec.image,
    imagePullPolicy: spec.imagePullPolicy ?? 'IfNotPresent',
    ...given(spec, 'command', 'args', 'workingDir', 'resources', 'envFrom'),
    ...(ports?.length && { ports: containerPorts(ports) }),
    ...(envs?.length && { env: envs }),
    ...(files?.length && { volumeMounts: inOrder(files).map(volumeMount) }),
    ...(readiness && { readinessProbe: readiness }),
    ...(liveness && { livenessProbe: liveness }),
    ...(startup && { startupProbe: startup }),
    ...(preStop && { lifecycle: { preStop } }),
    ...(securityProfile === 'Restricted' && {
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    }),
  };
}

/**
 * Renders what a profile asks of the pod. Both take the runtime's own seccomp filter and leave the token of the service
 * account away unless it is asked for, which no image notices that doesn't talk to the API server.
 *
 * - `Baseline` adds nothing else, so that every image runs that runs without it, as root too.
 * - `Restricted` adds what the Pod Security Standard of that name demands. Variables for each Service of the
 *   namespace, which show an intruder the way, aren't injected either.
 *
 * @see https://kubernetes.io/docs/concepts/security/pod-security-standards/
 */
function podSecurity(spec: AppServiceSpec): Partial<Wire<V1PodSpec>> {
  const { securityProfile, automountServiceAccountToken } = spec;
  if (!securityProfile) return given(spec, 'automountServiceAccountToken');
  const isRestricted = securityProfile === 'Restricted';
  return {
    automountServiceAccountToken: automountServiceAccountToken ?? false,
    securityContext: {
      ...(isRestricted && { runAsNonRoot: true }),
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(isRestricted && { enableServiceLinks: false }),
  };
}

/**
 * Spreads over zones and hosts, as far as possible: a pod that can't be placed well is still placed. Counted per rollout,
 * by the hash of the template, so that outgoing pods don't push the new ones together. Constraints that are given stand
 * instead; one without a selector, which would count no pod at all, gets ours.
 * @see https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
 */
function spreadConstraints({ selector }: Identity, { topologySpread }: AppServiceSpec) {
  if (!topologySpread) return [];
  const labelSelector = { matchLabels: selector };
  const byDefault = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((topologyKey) => ({
    ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway' },
    ...{ labelSelector, matchLabelKeys: ['pod-template-hash'] },
  }));
  return (topologySpread.constraints ?? byDefault).map((constraint) => ({
    ...constraint,
    labelSelector: constraint.labelSelector ?? labelSelector,
  }));
}

/** Sorts by path: in a pod's template the order counts, and two lists that mean the same must not restart anything. */
function inOrder(files: readonly FileMount[]): FileMount[] {
  return [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Read-only unless it is set otherwise, but for an emptyDir, which would stay empty. */
function volumeMount({ path, emptyDir, readOnly = !emptyDir }: FileMount) {
  return { name: volumeName(path), mountPath: path, ...(readOnly && { readOnly }) };
}

function volume({ path, ...file }: FileMount) {
  const name = volumeName(path);
  const { configMap, secret, emptyDir, persistentVolumeClaim, token } = file;
  const keys = given(configMap ?? secret ?? { name }, 'items', 'defaultMode', 'optional');
  if (configMap) return { name, configMap: { name: configMap.name, ...keys } };
  if (secret) return { name, secret: { secretName: secret.name, ...keys } };
  if (persistentVolumeClaim) return { name, persistentVolumeClaim };
  // The file is named as that of the token which is mounted by default.
  if (token) return { name, projected: { sources: [{ serviceAccountToken: { path: 'token', ...token } }] } };
  // Kubernetes itself makes this of a volume without a source.
  return { name, emptyDir: emptyDir ?? {} };
}

/**
 * Names a volume by the path in readable form, and its hash, which distinguishes what looks the same in that form. Made of
 * nothing but the path, so that a volume keeps its name whatever is added, removed or moved around it.
 */
export function volumeName(path: string): string {
  const words = path.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const readable = words.join('-').slice(0, 40).replace(/-$/, '');
  return [...(readable ? [readable] : []), hash('sha256', path, 'hex').slice(0, 16)].join('-');
}

/** Each port passes through whole, so that fields which Kubernetes adds later arrive too. No ports, no Service. */
function serviceSpec({ selector }: Identity, spec: AppServiceSpec): Wire<V1ServiceSpec> | undefined {
  const { ports, service = {} } = spec;
  if (!ports?.length) return undefined;
  return {
    type: service.type ?? DEFAULT_SERVICE_TYPE,
    ...given(service, 'sessionAffinity', 'externalTrafficPolicy', 'trafficDistribution'),
    selector,
    ports: ports.map((port) => ({
      ...port,
      protocol: port.protocol ?? DEFAULT_PROTOCOL,
      targetPort: port.targetPort ?? port.port,
    })),
  };
}

/**
 * Returns the container ports behind the ports of a Service: one for each distinct number and protocol, in the order in
 * which they come up. The number is `targetPort` where that is a number, else `port`; a `targetPort` that is a
 * name becomes the name of the container port.
 *
 * @throws OperatorError `PortNameConflict` where a name would stand on two container ports; a container's port
 *   names are unique, whatever the protocol
 */
function containerPorts(ports: readonly Wire<V1ServicePort>[]): NonNullable<Wire<V1Container>['ports']> {
  const found = new Map<string, { containerPort: number; protocol: string; name?: string }>();
  const named = new Map<string, { readonly port: string; readonly index: number }>();
  ports.forEach(({ port, protocol = DEFAULT_PROTOCOL, targetPort: name }, index) => {
    const containerPort = typeof name === 'number' ? name : port;
    const key = `${containerPort}/${protocol}`;
    if (!found.has(key)) found.set(key, { containerPort, protocol });
    if (typeof name !== 'string') return;
    const holder = named.get(name);
    if (holder && holder.port !== key)
      throw new OperatorError({
        reason: 'PortNameConflict',
        path: ['spec', 'ports', index, 'targetPort'],
        message:
          `spec.ports[${index}].targetPort: "${name}" can't name container port ${key}, since it names ${holder.port} ` +
          `already (spec.ports[${holder.index}].targetPort); ` +
          'a name stands on one container port only. Use the number of the container port, or another name',
      });
    named.set(name, { port: key, index });
    found.set(key, { containerPort, name, protocol });
  });
  return [...found.values()];
}

/** Scales the Deployment, not the AppService, so that `size` stays as it is written in Git. */
function autoscalerSpec(
  { name }: Identity,
  { autoscaling }: AppServiceSpec,
): Wire<V2HorizontalPodAutoscalerSpec> | undefined {
  if (!autoscaling) return undefined;
  // The two that need only a number come first, then those that are given whole.
  const byNumber = (['cpu', 'memory'] as const).flatMap((resource) => {
    const target = {
      type: 'Utilization',
      ...given({ averageUtilization: autoscaling[resource] }, 'averageUtilization'),
    };
    return autoscaling[resource] === undefined
      ? []
      : { type: 'Resource', resource: { name: resource, target } };
  });
  return {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
    ...given(autoscaling, 'minReplicas', 'maxReplicas', 'behavior'),
    ...given({ metrics: [...byNumber, ...(autoscaling.metrics ?? [])] }, 'metrics'),
  };
}

/**
 * Sets `maxUnavailable`, since a `minAvailable` that equals the number of replicas stops every drain of a node. Pods
 * that aren't ready may always go: a broken application must not hold a node. One replica can't be both moved and kept, so
 * a budget for it would promise nothing, or block a drain.
 * @see https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy
 */
function disruptionBudgetSpec(
  { selector }: Identity,
  { disruption, size, autoscaling }: AppServiceSpec,
): object | undefined {
  if (!disruption || (autoscaling?.maxReplicas ?? size) < 2) return undefined;
  return {
    maxUnavailable: disruption.maxUnavailable ?? 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: selector },
  };
}

/** @throws OperatorError `RoutePortNotFound` where the route would lead to a port that the Service doesn't have */
function routeSpec({ name }: Identity, spec: AppServiceSpec): object | undefined {
  const { route } = spec;
  if (!route) return undefined;
  const matches = [{ path: { type: 'PathPrefix', value: route.path ?? '/' } }];
  return {
    ...given(route, 'hostnames', 'parentRefs'),
    rules: [{ matches, backendRefs: [{ name, port: backendPort(route, spec) }] }],
  };
}

/** A backend is named by number: port names are free to change, and a Gateway speaks TCP only. */
function backendPort({ port }: Route, { ports = [] }: AppServiceSpec): number {
  const tcp = ports.filter(({ protocol = DEFAULT_PROTOCOL }) => protocol === 'TCP').map((each) => each.port);
  const [first] = tcp;
  if (port !== undefined && tcp.includes(port)) return port;
  if (port === undefined && first !== undefined) return first;
  const problem =
    port === undefined
      ? 'spec.route: leads to the first port of protocol TCP, and spec.ports has none'
      : `spec.route.port: ${port} is not the number of a port of protocol TCP in spec.ports, which has ${tcp.join(', ') || 'none'}`;
  throw new OperatorError({
    reason: 'RoutePortNotFound',
    path: ['spec', 'route', ...(port === undefined ? [] : ['port'])],
    message: `${problem}; ${first === undefined ? 'add one, or remove the route' : `give one of them, or add ${port ?? 'one'}`}`,
  });
}

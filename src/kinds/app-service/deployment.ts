import { hash } from 'node:crypto';
import type {
  V1Container,
  V1DeploymentSpec,
  V1PodSpec,
  V1TopologySpreadConstraint,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';
import { strategyOf } from './hand-over.js';
import { childMetadata, given, podSelector } from './spec.js';
import type {
  AppServiceSpec,
  FileMount,
  Identity,
  ObjectFiles,
  Probes,
  SecurityProfile,
  TopologySpread,
  Wire,
} from './spec.js';
import { containerPorts } from './service.js';

/**
 * While there is an autoscaler, `replicas` is its field and isn't rendered: whoever renders it takes it back at each
 * apply. How it changes hands without a dip is in `hand-over.ts`.
 * @throws OperatorError `PortNameConflict`
 */
export function deploymentSpec(app: Identity, spec: AppServiceSpec): Wire<V1DeploymentSpec> {
  return {
    ...(!spec.autoscaling && { replicas: spec.size }),
    ...(spec.strategy && { strategy: strategyOf(spec.strategy) }),
    ...given(spec, 'minReadySeconds', 'progressDeadlineSeconds'),
    selector: podSelector(app),
    template: { metadata: { labels: childMetadata(app).labels }, spec: podSpec(app, spec) },
  };
}

/** @throws OperatorError `PortNameConflict` */
function podSpec(app: Identity, spec: AppServiceSpec): Wire<V1PodSpec> {
  const { files, topologySpread } = spec;
  const topologySpreadConstraints = topologySpread && spreadConstraints(app, topologySpread);
  return {
    containers: [container(app.name, spec)],
    ...given(spec, 'imagePullSecrets', 'terminationGracePeriodSeconds'),
    ...serviceAccount(spec),
    ...podSecurity(spec),
    ...(files?.length && { volumes: volumes(files) }),
    ...(topologySpreadConstraints?.length && { topologySpreadConstraints }),
  };
}

/**
 * Under its deprecated name too: the API server copies the name there, and from there back again once ours is no longer
 * given, so that a service account could never be given up.
 * @see https://github.com/kubernetes/kubernetes/issues/108208
 */
function serviceAccount({ serviceAccountName }: AppServiceSpec): Partial<Wire<V1PodSpec>> {
  return serviceAccountName === undefined ? {} : { serviceAccountName, serviceAccount: serviceAccountName };
}

/** @throws OperatorError `PortNameConflict` */
function container(name: string, spec: AppServiceSpec): Wire<V1Container> {
  const { ports, envs, files, preStop } = spec;
  return {
    name,
    image: spec.image,
    imagePullPolicy: spec.imagePullPolicy ?? 'IfNotPresent',
    ...given(spec, 'command', 'args', 'workingDir', 'resources', 'envFrom'),
    ...(ports?.length && { ports: containerPorts(ports) }),
    ...(envs?.length && { env: envs }),
    ...(files?.length && { volumeMounts: volumeMounts(files) }),
    ...probes(spec.probes),
    ...(preStop && { lifecycle: { preStop } }),
    ...containerSecurity(spec.securityProfile),
  };
}

/** None is made up: a probe that doesn't fit an application stops or restarts it. */
function probes({ readiness, liveness, startup }: Probes = {}): Partial<Wire<V1Container>> {
  return {
    ...(readiness && { readinessProbe: readiness }),
    ...(liveness && { livenessProbe: liveness }),
    ...(startup && { startupProbe: startup }),
  };
}

/**
 * What a profile asks of the pod. Both take the runtime's own seccomp filter and leave the token of the service
 * account away unless it is asked for, which no image notices that doesn't talk to the API server.
 *
 * - `Baseline` adds nothing else, so that every image runs that runs without it, as root too.
 * - `Restricted` adds what the Pod Security Standard of that name demands. Variables for each Service of the
 *   namespace, which tell an intruder the way, aren't injected either.
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

/** What a profile asks of the container, where a pod can't say it for all of them. */
function containerSecurity(profile: SecurityProfile | undefined): Partial<Wire<V1Container>> {
  if (profile !== 'Restricted') return {};
  return { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } };
}

type Constraint = Wire<V1TopologySpreadConstraint>;

const KEYS = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'] as const;

/**
 * Over zones and hosts, as far as possible: a pod that can't be placed well is still placed. Counted per rollout, by
 * the hash of the template, so that outgoing pods don't push the new ones together. Constraints that are given stand
 * instead; one without a selector, which would count no pod at all, gets ours.
 * @see https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
 */
function spreadConstraints(app: Identity, { constraints }: TopologySpread): Constraint[] {
  const labelSelector = podSelector(app);
  if (!constraints) return KEYS.map((topologyKey) => spread(topologyKey, labelSelector));
  return constraints.map((given) => ({ ...given, labelSelector: given.labelSelector ?? labelSelector }));
}

function spread(topologyKey: string, labelSelector: ReturnType<typeof podSelector>): Constraint {
  return {
    ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway' },
    labelSelector,
    matchLabelKeys: ['pod-template-hash'],
  };
}

/** The file that holds a service account's token, below the path of its mount; as in the token that is mounted by default. */
const TOKEN_FILE = 'token';

/** The volumes behind the files, one for each path; in the order of the paths, as the mounts are. */
function volumes(files: readonly FileMount[]): Wire<V1Volume>[] {
  return inOrder(files).map((file) => ({ name: volumeName(file.path), ...source(file) }));
}

/** Where they are mounted: read-only unless told otherwise, but for an emptyDir, which would stay empty. */
function volumeMounts(files: readonly FileMount[]): Wire<V1VolumeMount>[] {
  return inOrder(files).map(({ path, emptyDir, readOnly = !emptyDir }) => ({
    name: volumeName(path),
    mountPath: path,
    ...(readOnly && { readOnly }),
  }));
}

/**
 * Says the path in readable form, and its hash, which tells apart what looks the same in that form. Made of nothing
 * but the path, so that a volume keeps its name whatever is added, removed or moved around it.
 */
export function volumeName(path: string): string {
  const words = path.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const readable = words.join('-').slice(0, 40).replace(/-$/, '');
  return [...(readable ? [readable] : []), hash('sha256', path, 'hex').slice(0, 16)].join('-');
}

/** By path: in a pod's template the order counts, and two lists that mean the same must not restart anything. */
function inOrder(files: readonly FileMount[]): FileMount[] {
  return [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function source(file: FileMount): Omit<Wire<V1Volume>, 'name'> {
  const { configMap, secret, emptyDir, persistentVolumeClaim, token } = file;
  if (configMap) return { configMap: { name: configMap.name, ...keys(configMap) } };
  if (secret) return { secret: { secretName: secret.name, ...keys(secret) } };
  if (persistentVolumeClaim) return { persistentVolumeClaim };
  if (token) return { projected: { sources: [{ serviceAccountToken: { path: TOKEN_FILE, ...token } }] } };
  // What Kubernetes itself makes of a volume without a source.
  return { emptyDir: emptyDir ?? {} };
}

function keys(files: ObjectFiles): Pick<ObjectFiles, 'items' | 'defaultMode' | 'optional'> {
  return given(files, 'items', 'defaultMode', 'optional');
}

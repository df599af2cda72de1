import { isGroup, isKubernetesGroup, isLabel } from './api-names.js';
import { OperatorError } from './error.js';
import { groupOf } from './object.js';
import { suggest } from './suggest.js';

/** The kinds of Kubernetes' own groups that have no dot, in which nobody else may define any. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: [
    ...['ConfigMap', 'Endpoints', 'Event', 'LimitRange', 'Namespace', 'Node', 'PersistentVolume'],
    ...['PersistentVolumeClaim', 'Pod', 'PodTemplate', 'ReplicationController', 'ResourceQuota', 'Secret'],
    ...['Service', 'ServiceAccount'],
  ],
  'apps/v1': ['ControllerRevision', 'DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet'],
  'autoscaling/v2': ['HorizontalPodAutoscaler'],
  'batch/v1': ['CronJob', 'Job'],
  'policy/v1': ['PodDisruptionBudget'],
};

/** Some of the others, for those who leave out the group. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'coordination.k8s.io/v1': ['Lease'],
  'discovery.k8s.io/v1': ['EndpointSlice'],
  'gateway.networking.k8s.io/v1': ['Gateway', 'HTTPRoute'],
  'networking.k8s.io/v1': ['Ingress', 'NetworkPolicy'],
  'rbac.authorization.k8s.io/v1': ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  'storage.k8s.io/v1': ['StorageClass'],
};

/** Every kind whose group is known here. */
export const KNOWN_KINDS: readonly string[] = Object.values({ ...KINDS, ...OTHERS }).flat();

const API_VERSIONS = new Map(
  Object.entries({ ...KINDS, ...OTHERS }).flatMap(([apiVersion, kinds]) =>
    kinds.map((kind) => [kind, apiVersion] as const),
  ),
);

/** What is only posted, to groups that have no dot. */
const REQUESTS = ['Binding', 'Eviction', 'Scale'];

/**
 * A type that can't be served leaves the controller waiting for it, so what is surely none is told at once.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`
 */
export function checkType(where: string, { apiVersion, kind }: { apiVersion: string; kind: string }): void {
  if (!isApiVersion(apiVersion))
    throw invalid(where, `${apiVersion} is no apiVersion, which is v1 or group/version`, kind);
  const group = groupOf(apiVersion);
  const known = Object.entries(KINDS).find(([of]) => groupOf(of) === group)?.[1];
  if (known && REQUESTS.includes(kind))
    throw refused(
      where,
      `${kind} is a request, which the API server stores nowhere, so it can be no child; list what it makes or changes`,
    );
  if (known && !known.includes(kind))
    throw invalid(where, `${group || 'The core group'} has no ${kind}`, kind);
  if (known && isPreliminary(apiVersion))
    throw invalid(where, `${apiVersion} has no ${kind} any more, which has a stable version`, kind);
  if (!/^[A-Z][A-Za-z0-9]*$/.test(kind))
    throw invalid(where, `${kind} is no kind, which is in PascalCase and singular`, kind);
}

function isPreliminary(apiVersion: string): boolean {
  return /v\d+(alpha|beta)\d+$/.test(apiVersion);
}

/** Kubernetes' own versions are v1, v1beta1 and the like; in other groups they may be called anything. */
function isApiVersion(apiVersion: string): boolean {
  const [version = '', group, ...more] = apiVersion.split('/').reverse();
  if (more.length > 0) return false;
  if (group !== undefined && isGroup(group) && !isKubernetesGroup(group)) return isLabel(version);
  const isName = group === undefined || /^[a-z0-9][-.a-z0-9]*$/.test(group);
  return isName && /^v\d+((alpha|beta)\d+)?$/.test(version);
}

function invalid(where: string, what: string, kind: string): OperatorError {
  const near = API_VERSIONS.has(kind) ? kind : suggest(kind, [...API_VERSIONS.keys()]);
  const known = near === undefined ? undefined : API_VERSIONS.get(near);
  const line =
    near === undefined || known === undefined
      ? "{ apiVersion: 'apps/v1', kind: 'Deployment' } or the like"
      : `{ apiVersion: '${known}', kind: '${near}' }`;
  return refused(where, `${what}; write ${line}`);
}

function refused(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}

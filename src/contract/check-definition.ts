import { isGroup, isKubernetesGroup, isLabel } from './api-names.js';
import type { CrdVersion, CustomResourceDefinition } from './crd.js';
import { misdefined } from './error.js';
import type { OperatorError } from './error.js';
import { groupOf, isMap } from './object.js';
import { suggest } from './suggest.js';

const OPTIONS = [
  'crd',
  'construct',
  'children',
  'formerChildren',
  'related',
  'handOver',
  'policySchema',
  'status',
];
const TYPE_OPTIONS = ['apiVersion', 'kind', 'plural', 'namespaced'];
const CHILD_OPTIONS = [...TYPE_OPTIONS, 'recreate', 'optional', 'keep'];
const RELATED_OPTIONS = [...TYPE_OPTIONS, 'selector', 'keep', 'nameOf'];
const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";

/**
 * Holds what was given to `defineKind` against what it takes, for authors who write plain JavaScript.
 * @throws OperatorError `InvalidDefinition`
 */
export function checkKindProps(props: unknown): void {
  if (!isMap(props))
    throw misdefined('defineKind', `takes { crd, construct, children }, not ${shown(props)}`);
  checkOptions('defineKind', props, OPTIONS);
  if (!isMap(props.crd) && typeof props.crd !== 'string') {
    throw misdefined(
      'defineKind: crd',
      `give the CRD or its file, e.g. new URL('./crd.yaml', import.meta.url)`,
    );
  }
  // Known by what a subclass inherits, of whatever copy of the package.
  if (typeof (props.construct as { isConstruct?: unknown } | undefined)?.isConstruct !== 'function') {
    throw misdefined(
      'defineKind: construct',
      `give a class that extends Construct, such as class Website extends Construct { constructor(scope, id, { metadata, spec }) { super(scope, id); ... } }, not ${shown(props.construct)}`,
    );
  }
  checkTypes('defineKind: children', props.children, CHILD_OPTIONS);
  if (props.formerChildren !== undefined)
    checkTypes('defineKind: formerChildren', props.formerChildren, TYPE_OPTIONS);
  if (props.related !== undefined) checkRelated(props.related);
  for (const option of ['handOver', 'status'])
    if (props[option] !== undefined) checkFunction(`defineKind: ${option}`, props[option]);
  if (props.policySchema !== undefined && !isMap(props.policySchema))
    throw misdefined('defineKind: policySchema', `give a schema, not ${shown(props.policySchema)}`);
}

/**
 * The status is written by the engine, and the API server drops what the schema doesn't list: such a status would
 * differ each time.
 * @throws OperatorError `InvalidDefinition`
 */
export function checkStatusSchema(crd: CustomResourceDefinition, version: CrdVersion): void {
  const where = `CRD ${crd.metadata.name}, version ${version.name}`;
  if (!version.subresources?.status) {
    throw misdefined(where, 'add "subresources: { status: {} }", the status is written through it');
  }
  const status = version.schema.openAPIV3Schema.properties?.status;
  if (status?.['x-kubernetes-preserve-unknown-fields']) return;
  for (const [field, type] of [
    ['observedGeneration', 'integer'],
    ['conditions', 'array'],
  ] as const) {
    if (status?.properties?.[field]?.type === type) continue;
    throw misdefined(
      where,
      `add "${field}", of type ${type}, to the properties of the status: it is written for every kind`,
    );
  }
}

function checkTypes(path: string, types: unknown, options: readonly string[]): void {
  if (!Array.isArray(types)) throw misdefined(path, `give a list such as [${EXAMPLE}], not ${shown(types)}`);
  types.forEach((type: unknown, index) => {
    const at = `${path}[${String(index)}]`;
    if (!isMap(type) || typeof type.apiVersion !== 'string' || typeof type.kind !== 'string') {
      throw misdefined(at, `write ${EXAMPLE}, not ${shown(type)}`);
    }
    checkOptions(at, type, options);
    checkType(at, { apiVersion: type.apiVersion, kind: type.kind });
    for (const option of ['recreate', 'optional'])
      if (type[option] !== undefined && typeof type[option] !== 'boolean')
        throw misdefined(`${at}.${option}`, `give true or false, not ${shown(type[option])}`);
    if (type.keep !== undefined) checkFunction(`${at}.keep`, type.keep);
  });
}

function checkRelated(types: unknown): void {
  checkTypes('defineKind: related', types, RELATED_OPTIONS);
  (types as readonly Record<string, unknown>[]).forEach(({ selector, keep, nameOf }, index) => {
    const at = `defineKind: related[${String(index)}]`;
    if (typeof selector !== 'string' || selector.trim() === '') {
      const why =
        "every object of the type in the cluster would be read; give a label selector such as 'demo.io/widget'";
      throw misdefined(`${at}.selector`, `${why}, not ${shown(selector)}`);
    }
    checkFunction(`${at}.keep`, keep);
    checkFunction(`${at}.nameOf`, nameOf);
  });
}

function checkFunction(path: string, value: unknown): void {
  if (typeof value !== 'function') throw misdefined(path, `give a function, not ${shown(value)}`);
}

function checkOptions(path: string, given: Record<string, unknown>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((option) => !known.includes(option));
  if (unknown) throw misdefined(path, `doesn't know the option ${unknown}; it takes ${known.join(', ')}`);
}

function shown(value: unknown): string {
  if (typeof value === 'function') return `the function ${value.name || 'without a name'}`;
  if (isMap(value)) return `an object with ${Object.keys(value).join(', ') || 'nothing in it'}`;
  if (value === undefined) return 'nothing';
  return Array.isArray(value) ? 'a list' : JSON.stringify(value);
}

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
function checkType(where: string, { apiVersion, kind }: { apiVersion: string; kind: string }): void {
  if (!isApiVersion(apiVersion))
    throw invalid(where, `${apiVersion} is no apiVersion, which is v1 or group/version`, kind);
  const group = groupOf(apiVersion);
  const known = Object.entries(KINDS).find(([of]) => groupOf(of) === group)?.[1];
  if (known && REQUESTS.includes(kind))
    throw misdefined(
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
  return misdefined(where, `${what}; write ${line}`);
}

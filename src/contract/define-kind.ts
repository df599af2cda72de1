import type { Controller } from './controller.js';
import { loadCrd, servedType, storedVersion } from './crd.js';
import type { CrdVersion, StructuralSchema, CustomResourceDefinition } from './crd.js';
import { misdefined } from './error.js';
import type { OperatorError } from './error.js';
import type { HandOverFunction } from './hand-over.js';
import type { KindConstruct, OwnedKind, Render } from './kind.js';
import { isGroup, isKubernetesGroup, isLabel } from './names.js';
import { groupOf, isMap } from './object.js';
import type { AnyObject } from './object.js';
import { OwnedChildren } from './owned-children.js';
import type { ChildType, RelatedType, OwnFunctions } from './owned-children.js';
import { groupKind, resourceType } from './resource.js';
import type { ResourceType, ResourceTypeProps } from './resource.js';
import type { StatusFunction } from './status.js';
import { suggest } from './suggest.js';
import type { TypedCrd } from './typed-crd.js';

/** A type that a construct may make. */
export interface ChildTypeProps extends ResourceTypeProps {
  /**
   * Where a field has to change that can't be changed, such as the template of a Job, the object is deleted and made
   * anew. Only for objects that are of no value in themselves.
   * @default false - the custom resource is stalled with the reason `ImmutableField`
   */
  readonly recreate?: boolean;
  /**
   * The kind works where this type isn't installed. A custom resource that needs it is stalled with the reason
   * `KindNotInstalled` until it is.
   * @default false - the controller starts once the type is served
   */
  readonly optional?: boolean;
  /**
   * What `status` and `handOver` read of a child, beside its identity and status: kept in memory, so little is best.
   * It is given the object as the API server sent it, managedFields included. Kinds that share the function share the
   * memory.
   * @default - nothing
   */
  readonly keep?: (object: AnyObject) => Readonly<Record<string, unknown>>;
  /** See `Watch.claims`. @default - none */
  readonly claims?: (object: AnyObject) => readonly string[];
}

/** Objects that are made of the children by others, such as Pods: read for the status, and never written. */
export interface RelatedTypeProps extends ResourceTypeProps {
  /** A label selector: what doesn't carry it is never sent to us. */
  readonly selector: string;
  /**
   * What of an object `status` reads, beside its identity, its labels and its owners; nothing is kept of one that it
   * returns undefined for. Where many are well and few are not, keep those few.
   */
  readonly keep: (object: AnyObject) => Readonly<Record<string, unknown>> | undefined;
  /**
   * The name of the custom resource that it belongs to, in the same namespace; undefined if to none. It is given the
   * object as kept.
   */
  readonly nameOf: (object: AnyObject) => string | undefined;
}

/** What a kind is made of. */
export interface KindProps<Spec, Status extends object> {
  /**
   * The CRD, as `defineCrd` makes it, or the YAML file that holds it: `new URL('./crd.yaml', import.meta.url)` for one
   * beside the module, since a plain path is resolved against the working directory. Its stored version is watched and
   * rendered. By a CRD of `defineCrd`, the types of spec and status are known.
   */
  readonly crd: TypedCrd<Spec, Status> | string | URL;
  /** The construct that renders one custom resource. */
  readonly construct: KindConstruct<Spec>;
  /** Every type that the construct may make. They are watched, owned, corrected and pruned. */
  readonly children: readonly ChildTypeProps[];
  /** Types that earlier releases made and this one doesn't: they are pruned. @default - none */
  readonly formerChildren?: readonly ResourceTypeProps[];
  /** What others make of the children, and `status` wants to know of. @default - none */
  readonly related?: readonly RelatedTypeProps[];
  /**
   * What has to be applied under another field manager before the children are, so that a field which the construct
   * stops to set keeps its value; asked at each reconcile, so it must return nothing once that is done.
   * @default - nothing
   */
  readonly handOver?: HandOverFunction<Spec>;
  /**
   * What an admin may restrict: a schema like that of a CRD, for the kind's section of the policy. The construct of an
   * operator whose policy has no such section gets the schema's `default`, if there is one.
   * @default - the kind knows no policy, and a section for it is refused
   */
  readonly policySchema?: StructuralSchema;
  /**
   * How the custom resource fares, judged by its children, of which some may not be there yet. Where something
   * couldn't be rendered or applied, that error stands in the conditions instead of the readiness. A field that the
   * schema of the status lacks fails when it is told; the compiler lets it pass beside a field that is there.
   * @default - ready when every child is, by the rules of kstatus; see `childReadiness`
   */
  readonly status?: StatusFunction<Spec, Status>;
}

/**
 * Makes an operator of a construct: one custom resource, its own children.
 *
 * **Guarantees.** The children are what the construct makes of the custom resource, always: they are created,
 * put right when somebody else changes what the construct says, recreated when they are deleted, deleted when the
 * construct no longer makes them, and collected by the cluster when the custom resource goes. Fields that the
 * construct doesn't set are left to others.
 *
 * **Assumptions.** The construct depends on its props alone: the same props give the same objects. The children
 * of a namespaced custom resource live in its namespace.
 *
 * **Caveats.** An object of the same name that belongs to nobody, or to somebody else, is refused and not taken
 * over; the custom resource then is stalled with the reason `OwnershipConflict`.
 *
 * @throws OperatorError `InvalidDefinition` when the CRD can't be read or the definition contradicts itself
 */
export function defineKind<Spec, Status extends object = Record<string, unknown>>(
  props: KindProps<Spec, Status>,
): OwnedKind {
  checkKindProps(props);
  const crd = loadCrd(props.crd);
  const version = storedVersion(crd);
  checkStatusSchema(crd, version);
  const kind = {
    name: crd.spec.names.kind.toLowerCase(),
    crd,
    type: servedType(crd, version),
    construct: props.construct as KindConstruct<never>,
    children: props.children.map(childType),
    formerChildren: (props.formerChildren ?? []).map(resourceType),
    related: (props.related ?? []).map(relatedType),
    ...statusFieldsOf(version),
    ...(props.policySchema && { policySchema: props.policySchema }),
  };
  checkScopes(kind.type, kind.children);
  const types = [...kind.children, ...kind.formerChildren, ...kind.related].map(groupKind);
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice)
    throw misdefined(
      `Kind ${kind.type.kind}`,
      `type ${twice} is listed twice; list it once, in children, in formerChildren or in related`,
    );
  // The adapter handles kinds of every type, so it can't know this one's.
  const own = {
    ...(props.status && { status: props.status }),
    ...(props.handOver && { handOver: props.handOver }),
  } as unknown as OwnFunctions;
  const controller = (render: Render): Controller => new OwnedChildren(kind, render, own);
  return {
    ...{ ...kind, controller },
    rendering: { each: kind },
    controllers: ({ render }) => [controller(render)],
  };
}

function statusFieldsOf({ schema }: CrdVersion): { readonly statusFields?: readonly string[] } {
  const status = schema.openAPIV3Schema.properties?.status;
  if (!status?.properties || status['x-kubernetes-preserve-unknown-fields']) return {};
  return { statusFields: Object.keys(status.properties) };
}

function childType(props: ChildTypeProps): ChildType {
  const { recreate, optional, keep, claims } = props;
  return {
    ...resourceType(props),
    ...(recreate && { recreate }),
    ...(optional && { optional }),
    ...(keep && { keep }),
    ...(claims && { claims }),
  };
}

function relatedType(props: RelatedTypeProps): RelatedType {
  const { selector, keep, nameOf } = props;
  return { ...resourceType(props), selector, keep, nameOf };
}

/** The types of Kubernetes itself that have no namespace and that somebody may want to make. */
const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  ...['Namespace', 'Node', 'PersistentVolume', 'APIService.apiregistration.k8s.io'],
  ...['ClusterRole.rbac.authorization.k8s.io', 'ClusterRoleBinding.rbac.authorization.k8s.io'],
  'CustomResourceDefinition.apiextensions.k8s.io',
  ...['IngressClass.networking.k8s.io', 'GatewayClass.gateway.networking.k8s.io'],
  ...['StorageClass.storage.k8s.io', 'CSIDriver.storage.k8s.io', 'PriorityClass.scheduling.k8s.io'],
  ...['RuntimeClass.node.k8s.io', 'ValidatingWebhookConfiguration.admissionregistration.k8s.io'],
  'MutatingWebhookConfiguration.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicy.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io',
]);

/**
 * An object without a namespace can't be owned by one that has a namespace: the garbage collector would delete it.
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
 * @throws OperatorError `InvalidDefinition`
 */
function checkScopes(owner: ResourceType, children: readonly ResourceType[]): void {
  children.forEach((child, index) => {
    const name = groupKind(child);
    const where = `defineKind: children[${index}]`;
    if (child.namespaced && !CLUSTER_SCOPED.has(name)) return;
    if (owner.namespaced) {
      throw misdefined(
        where,
        `${name} has no namespace, and ${owner.kind} has one: the cluster would delete it, since nothing in a namespace can own it; set "scope: Cluster" in the CRD, or leave it out`,
      );
    }
    if (child.namespaced) {
      const { apiVersion, kind } = child;
      const type = `{ apiVersion: '${apiVersion}', kind: '${kind}', namespaced: false }`;
      throw misdefined(where, `${name} has no namespace; write ${type}`);
    }
  });
}

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
const CHILD_OPTIONS = [...TYPE_OPTIONS, 'recreate', 'optional', 'keep', 'claims'];
const RELATED_OPTIONS = [...TYPE_OPTIONS, 'selector', 'keep', 'nameOf'];
const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";

/**
 * Holds what was given to `defineKind` against what it takes, for authors who write plain JavaScript.
 * @throws OperatorError `InvalidDefinition`
 */
function checkKindProps(props: unknown): void {
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
    if (type.claims !== undefined) checkFunction(`${at}.claims`, type.claims);
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

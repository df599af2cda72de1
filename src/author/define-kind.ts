import type { Controller } from '../contract/controller.js';
import { loadCrd } from './load-crd.js';
import { servedType, storedVersion } from '../contract/crd.js';
import type { CrdVersion, StructuralSchema, CustomResourceDefinition } from '../contract/crd.js';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isText,
  misdefined,
  optional,
  isGroup,
  isKind,
  isKubernetesGroup,
  isLabel,
} from './definition.js';
import type { Given, Option } from './definition.js';
import { bitsOf, GeneratedSecrets, LEAST_BITS } from './generated.js';
import { secretType } from '../values/generated.js';
import type { Generated, GeneratedValue } from '../contract/generated.js';
import type { HandOverFunction } from './hand-over.js';
import type { KindConstruct, OwnedKind, Render } from '../contract/kind.js';
import type { ChildOf } from './kubernetes-types.js';
import { inNamespaces } from './namespace-selector.js';
import { groupOf, isMap } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { parseLabelSelector } from './label-selector.js';
import { mistakeIn, ReferenceResolver } from './references.js';
import type { ReferenceProps, ReferencesOf } from './references.js';
import { OwnedChildren } from './owned-children.js';
import type { OwnFunctions } from './owned-children.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType, ResourceTypeProps } from '../contract/resource.js';
import type { RelatedTypeProps, StatusFunction } from './status.js';
import { suggest } from '../values/suggest.js';
import type { TypedCrd } from './typed-crd.js';

/** A type that a construct may make. */
export interface ChildTypeProps extends ResourceTypeProps {
  /**
   * Deletes and creates an object again where an immutable field has to change, such as the template of a Job. Only for
   * objects that are of no value in themselves.
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
   * Returns what `status` and `handOver` read of a child as the API server sent it, beside its identity and status: kept in
   * memory, so little is best. A `status` among it stands for the object's own, as with a condition `Ready` for what has none.
   * Kinds that share the function share the memory.
   * @default - nothing
   */
  readonly keep?: (object: AnyObject) => Readonly<Record<string, unknown>>;
  /** See `Watch.claims`. @default - none */
  readonly claims?: (object: AnyObject) => readonly string[];
}

/** Parts of a kind. */
export interface KindProps<
  Spec,
  Status extends object,
  Children extends readonly ChildTypeProps[] = readonly ChildTypeProps[],
  References = unknown,
  Values = unknown,
  Observes extends boolean = false,
> {
  /**
   * The CRD, as `defineCrd` makes it, or the YAML file that holds it: `new URL('./crd.yaml', import.meta.url)` for one
   * beside the module, since a plain path is resolved against the working directory. Its stored version is watched and
   * rendered. By a CRD of `defineCrd`, the types of spec and status are known.
   */
  readonly crd: TypedCrd<Spec, Status> | string | URL;
  /** The construct that renders one custom resource. */
  readonly construct: KindConstruct<
    Spec,
    ReferencesOf<References>,
    Generated<keyof Values & string>,
    Observes extends true ? readonly ChildOf<Children[number]>[] : undefined
  >;
  /**
   * Other objects that the construct reads, by the names of its props' `references`. A change of one renders again; nothing
   * else of their types is read.
   * @default - none
   */
  readonly references?: References & Readonly<Record<string, ReferenceProps<Spec>>>;
  /**
   * Passwords, keys and tokens that the operator makes for each custom resource, by their keys in a Secret of its own,
   * `<name>-<kind in lower case>-generated`; the construct gets its name as `generated`. A value is made once and stays: the annotation
   * `reconstruct.kosmos.io/rotate` on a custom resource has all of them replaced.
   * @default - none
   */
  readonly generated?: Values & Readonly<Record<string, GeneratedValue>>;
  /** Every type that the construct may make. They are watched, owned, corrected and pruned. */
  readonly children: Children;
  /**
   * The construct reads its children as `observed` of its props: metadata, status, and what `keep` of their type returns. A
   * change of that renders again.
   * @default false
   */
  readonly observes?: Observes;
  /** Types that earlier releases made and this one doesn't: they are pruned. @default - none */
  readonly formerChildren?: readonly ResourceTypeProps[];
  /** Objects that others make of the children, and that `status` reads. @default - none */
  readonly related?: readonly RelatedTypeProps[];
  /**
   * Returns what has to be applied under another field manager before the children are, so that a field which the construct
   * stops to set keeps its value; asked at each reconcile, so it must return nothing once that is done.
   * @default - nothing
   */
  readonly handOver?: HandOverFunction<Spec, ChildOf<Children[number]>>;
  /**
   * Restrictions for admins: a schema like that of a CRD, for the kind's section of the policy. The construct of an
   * operator whose policy has no such section gets the schema's `default`, if there is one.
   * @default - the kind knows no policy, and a section for it is refused
   */
  readonly policySchema?: StructuralSchema;
  /**
   * Computes the status of the custom resource from its children, of which some may not be there yet. Where something
   * couldn't be rendered or applied, that error stands in the conditions instead of the readiness. A field that the
   * schema of the status lacks is an error; the compiler lets it pass beside a field that is there.
   * @default - ready when every child is, by the rules of kstatus; see `childReadiness`
   */
  readonly status?: StatusFunction<Spec, Status, ChildOf<Children[number]>>;
}

/**
 * Makes an operator of a construct: one custom resource, its own children.
 *
 * **Guarantees.** The children are what the construct makes of the custom resource, always: they are created,
 * corrected when another writer changes what the construct says, recreated when they are deleted, deleted when the
 * construct no longer makes them, and collected by the cluster when the custom resource goes. Fields that the
 * construct doesn't set are left to others.
 *
 * **Assumptions.** The construct depends on its props alone: the same props give the same objects. The children
 * of a namespaced custom resource live in its namespace.
 *
 * **Caveats.** An object of the same name that the custom resource doesn't control is refused, and stalls it with the reason
 * `OwnershipConflict`, unless the object is annotated for adoption, or was made for this very name and lost its owner.
 *
 * @throws OperatorError `InvalidDefinition` when the CRD can't be read or the definition contradicts itself
 */
export function defineKind<
  Spec,
  Status extends object = Record<string, unknown>,
  const Children extends readonly ChildTypeProps[] = readonly ChildTypeProps[],
  References = unknown,
  Values = unknown,
  const Observes extends boolean = false,
>(props: KindProps<Spec, Status, Children, References, Values, Observes>): OwnedKind {
  checkOptions('defineKind', props, OPTIONS, 'takes { crd, construct, children }');
  for (const [list, options] of TYPE_LISTS)
    (props[list] ?? []).forEach((type: object, index) => {
      checkType(`defineKind: ${list}[${index}]`, type, options);
    });
  const crd = loadCrd(props.crd);
  const version = storedVersion(crd);
  checkStatusSchema(crd, version);
  const type = servedType(crd, version);
  const references = props.references && referencesOf(type, props.references);
  const generated = props.generated && generatedOf(type, props.generated);
  const kind = {
    name: crd.spec.names.kind.toLowerCase(),
    crd,
    type,
    ...{ ...(references && { references }), ...(generated && { generated }) },
    ...(props.observes && { observes: true }),
    construct: props.construct as KindConstruct<never>,
    children: props.children.map((type) => ({ ...type, ...resourceType(type) })),
    formerChildren: (props.formerChildren ?? []).map(resourceType),
    related: (props.related ?? []).map((type) => ({ ...type, ...resourceType(type) })),
    ...statusFieldsOf(version),
    ...(props.policySchema && { policySchema: props.policySchema }),
  };
  checkScopes(kind.type, kind.children);
  const secrets =
    generated && kind.related.some((related) => groupKind(related) === 'Secret') ? [secretType] : [];
  const types = [...kind.children, ...kind.formerChildren, ...kind.related, ...secrets].map(groupKind);
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice)
    throw misdefined(
      `Kind ${kind.type.kind}`,
      `type ${twice} is listed twice; list it once, in children, in formerChildren or in related`,
    );
  // The adapter reads `status` and `handOver` alone, and knows no kind's types.
  const own = props as unknown as OwnFunctions;
  const controller = (render: Render, selector?: string): Controller =>
    new OwnedChildren(kind, render, own, selector);
  return {
    ...{ ...kind, controller },
    rendering: { each: kind },
    controllers: ({ render, selector, namespaceSelector }) => {
      const all = controller(render, selector);
      return [namespaceSelector === undefined ? all : inNamespaces(all, namespaceSelector)];
    },
  };
}

const A_REFERENCE = "{ apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.secretName }";

function referencesOf(owner: ResourceType, given: object): ReferenceResolver {
  for (const [name, props] of Object.entries(given)) {
    const where = `defineKind: references.${name}`;
    checkType(where, props as object, REFERENCE, A_REFERENCE);
    const { labels, name: one, namespace, namespaced = true, data, kind } = props as ReferenceProps<never>;
    if ((one === undefined) === (labels === undefined))
      throw misdefined(where, `give either name or labels, as in ${A_REFERENCE}`);
    if (!owner.namespaced && namespaced && !namespace)
      throw misdefined(where, `${owner.kind} has no namespace; add namespace: (cr) => cr.spec.namespace`);
    if (data !== undefined && kind !== 'Secret') throw misdefined(where, 'data is for Secrets; leave it out');
    const mistake = mistakeIn(constantOf(namespace), constantOf(one), constantOf(labels));
    if (mistake !== undefined) throw misdefined(where, `${mistake}; change what the function returns`);
  }
  return new ReferenceResolver(owner, given as Readonly<Record<string, ReferenceProps<never>>>);
}

/** Returns what a function without parameters always returns; undefined where that is nothing, or can't be found out. */
function constantOf<T>(given: ((cr: never) => T | undefined) | undefined): T | undefined {
  try {
    return given?.length === 0 ? (given as () => T | undefined)() || undefined : undefined;
  } catch {
    return undefined;
  }
}

const A_VALUE = '{ password: { length: 32 }, key: { bytes: 32 } }';

function generatedOf(owner: ResourceType, given: Readonly<Record<string, GeneratedValue>>): GeneratedSecrets {
  const names = Object.keys(given);
  if (names.length === 0) throw misdefined('defineKind: generated', `name a value, as in ${A_VALUE}`);
  if (!owner.namespaced)
    throw misdefined(
      'defineKind: generated',
      `${owner.kind} has no namespace for a Secret; leave it out, and generate the values for a kind in namespaces`,
    );
  for (const [name, value] of Object.entries(given)) {
    const where = `defineKind: generated.${name}`;
    if (!/^[-._a-zA-Z0-9]{1,253}$/.test(name) || name.startsWith('..') || name === '.')
      throw misdefined(
        where,
        'is no key of a Secret, which has letters, digits, dashes, dots and underscores',
      );
    checkOptions(where, value, A_GENERATED_VALUE, `write ${A_VALUE}`);
    if (value.bytes !== undefined && (value.length ?? value.alphabet) !== undefined)
      throw misdefined(where, `give either bytes or length and alphabet, as in ${A_VALUE}`);
    if (bitsOf(value) < LEAST_BITS)
      throw misdefined(where, `can be guessed: it has less than ${LEAST_BITS} random bits; make it longer`);
  }
  return new GeneratedSecrets(owner, given);
}

function statusFieldsOf({ schema }: CrdVersion): { readonly statusFields?: readonly string[] } {
  const status = schema.openAPIV3Schema.properties?.status;
  if (!status?.properties || status['x-kubernetes-preserve-unknown-fields']) return {};
  return { statusFields: Object.keys(status.properties) };
}

/** The types of Kubernetes itself that have no namespace and that a construct may make. */
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
    if (owner.namespaced)
      throw misdefined(
        where,
        `${name} has no namespace, and ${owner.kind} has one: nothing in a namespace can own it, so the cluster would delete it; set "scope: Cluster" in the CRD, or leave it out`,
      );
    if (child.namespaced) {
      const { apiVersion, kind } = child;
      const type = `{ apiVersion: '${apiVersion}', kind: '${kind}', namespaced: false }`;
      throw misdefined(where, `${name} has no namespace; write ${type}`);
    }
  });
}

const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";
const TYPES = `give a list such as [${EXAMPLE}]`;

/** Known by what a subclass inherits, of whatever copy of the package. */
function isConstruct(value: unknown): boolean {
  return isFunction((value as { readonly isConstruct?: unknown } | undefined)?.isConstruct);
}

const OPTIONS: readonly Option[] = [
  [
    'crd',
    (crd) => isMap(crd) || isText(crd),
    `give the CRD or its file, as a URL beside the module: new URL('./crd.yaml', ...)`,
  ],
  ['construct', isConstruct, 'give a class that extends Construct'],
  ['children', Array.isArray, TYPES],
  ['references', optional(isMap), `give a map such as { tls: ${A_REFERENCE} }`],
  ['generated', optional(isMap), `give a map such as ${A_VALUE}`],
  ['observes', optional(isBoolean), 'give true or false'],
  ['formerChildren', optional(Array.isArray), TYPES],
  ['related', optional(Array.isArray), TYPES],
  ['handOver', optional(isFunction), 'give a function'],
  ['policySchema', optional(isMap), 'give a schema'],
  ['status', optional(isFunction), 'give a function'],
];

const OF_A_TYPE: readonly Option[] = [
  ['apiVersion', isText, `write ${EXAMPLE}`],
  ['kind', isText, `write ${EXAMPLE}`],
  ['plural', optional(isText), 'give the name in request paths'],
  ['namespaced', optional(isBoolean), 'give true or false'],
];

const REFERENCE: readonly Option[] = [
  ...OF_A_TYPE,
  ['name', optional(isFunction), 'give a function, as in (cr) => cr.spec.secretName'],
  ['labels', optional(isFunction), 'give a function, as in (cr) => ({ tier: cr.spec.tier })'],
  ['namespace', optional(isFunction), 'give a function, as in (cr) => cr.spec.namespace'],
  ['optional', optional(isBoolean), 'give true or false'],
  ['data', optional(isBoolean), 'give true or false'],
];

const isSize = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= 1_024;
/** Printable ASCII. */
const isAlphabet = (value: unknown): boolean =>
  typeof value === 'string' && /^[ -~]{2,}$/.test(value) && new Set(value).size === value.length;

function isSelector(value: unknown): boolean {
  try {
    return isText(value) && parseLabelSelector(value).matchExpressions !== undefined;
  } catch {
    return false;
  }
}

const A_GENERATED_VALUE: readonly Option[] = [
  ['length', optional(isSize), 'give a number of characters up to 1024'],
  ['alphabet', optional(isAlphabet), "give at least two ASCII characters, each once: '0123456789abcdef'"],
  ['bytes', optional(isSize), 'give a number of bytes up to 1024'],
  ['emptyIsMissing', optional(isBoolean), 'give true or false'],
];

/** Lists of types, and the options of their items. */
const TYPE_LISTS = [
  [
    'children',
    [
      ...OF_A_TYPE,
      ['recreate', optional(isBoolean), 'give true or false'],
      ['optional', optional(isBoolean), 'give true or false'],
      ['keep', optional(isFunction), 'give a function'],
      ['claims', optional(isFunction), 'give a function'],
    ],
  ],
  ['formerChildren', OF_A_TYPE],
  [
    'related',
    [
      ...OF_A_TYPE,
      [
        'selector',
        isSelector,
        "give a label selector such as 'demo.io/widget', or all objects of the type are read",
      ],
      ['keep', isFunction, 'give a function'],
      ['nameOf', isFunction, 'give a function'],
    ],
  ],
] as const satisfies readonly (readonly [string, readonly Option[]])[];

/**
 * Checks that the engine finds in every custom resource where to write its status: the API server drops what the schema
 * doesn't list, so the status would differ each time.
 * @throws OperatorError `InvalidDefinition`
 */
function checkStatusSchema(crd: CustomResourceDefinition, version: CrdVersion): void {
  const where = `CRD ${crd.metadata.name}, version ${version.name}`;
  if (!version.subresources?.status)
    throw misdefined(where, 'add "subresources: { status: {} }", the status is written through it');
  const status = version.schema.openAPIV3Schema.properties?.status;
  if (status?.['x-kubernetes-preserve-unknown-fields']) return;
  for (const [field, type] of [
    ['observedGeneration', 'integer'],
    ['conditions', 'array'],
  ] as const)
    if (status?.properties?.[field]?.type !== type)
      throw misdefined(where, `add "${field}", of type ${type}, to the properties of the status`);
  const conditions = status?.properties?.conditions;
  if (
    conditions?.['x-kubernetes-list-type'] !== 'map' ||
    String(conditions['x-kubernetes-list-map-keys']) !== 'type'
  )
    throw misdefined(
      where,
      'add "x-kubernetes-list-type: map" and "x-kubernetes-list-map-keys: [type]" to the conditions of the status, or a write replaces those of other writers',
    );
}

/** Kinds of Kubernetes' own groups, in some of which only it may define any. */
const KINDS: Readonly<Record<string, string>> = {
  v1:
    'ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate ' +
    'ReplicationController ResourceQuota Secret Service ServiceAccount',
  'apps/v1': 'ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet',
  'autoscaling/v2': 'HorizontalPodAutoscaler',
  'batch/v1': 'CronJob Job',
  'policy/v1': 'PodDisruptionBudget',
  'coordination.k8s.io/v1': 'Lease',
  'discovery.k8s.io/v1': 'EndpointSlice',
  'gateway.networking.k8s.io/v1': 'Gateway HTTPRoute',
  'networking.k8s.io/v1': 'Ingress NetworkPolicy',
  'rbac.authorization.k8s.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
  'storage.k8s.io/v1': 'StorageClass',
};

const API_VERSIONS = new Map(
  Object.entries(KINDS).flatMap(([apiVersion, kinds]) =>
    kinds.split(' ').map((kind) => [kind, apiVersion] as const),
  ),
);

/** Every kind whose group is known here. */
export const KNOWN_KINDS: readonly string[] = [...API_VERSIONS.keys()];

/**
 * Refuses a type that is surely none: the controller would wait until it is served.
 * @throws OperatorError `InvalidDefinition`
 */
function checkType(where: string, type: object, options: readonly Option[], example = EXAMPLE): void {
  const { apiVersion, kind } = checkOptions(where, type, options, `write ${example}`) as Given &
    ResourceTypeProps;
  const group = groupOf(apiVersion);
  const known = group.includes('.')
    ? undefined
    : Object.entries(KINDS).find(([one]) => groupOf(one) === group);
  const isPreliminary = /v\d+(alpha|beta)\d+$/.test(apiVersion);
  const what = !isApiVersion(apiVersion)
    ? `${apiVersion} is no apiVersion, which is v1 or group/version`
    : known && (isPreliminary || !known[1].split(' ').includes(kind))
      ? `${apiVersion} has no ${kind}`
      : isKind(kind)
        ? undefined
        : `${String(kind)} is no kind, which is in PascalCase and singular`;
  if (what === undefined) {
    checkScope(where, resourceType(type as ResourceTypeProps), known?.[1].split(' ').includes(kind) ?? false);
    return;
  }
  const near = API_VERSIONS.has(kind) ? kind : suggest(kind, KNOWN_KINDS);
  const line = near && `{ apiVersion: '${API_VERSIONS.get(near) ?? ''}', kind: '${near}' }`;
  throw misdefined(where, `${what}; write ${line ?? `${EXAMPLE} or the like`}`);
}

/** Refuses a scope that a type of Kubernetes hasn't: asked for without a namespace, objects of all would be found. */
function checkScope(where: string, type: ResourceType, isKnown: boolean): void {
  const name = groupKind(type);
  const isWide = CLUSTER_SCOPED.has(name);
  if (isKnown && !isWide && !type.namespaced)
    throw misdefined(where, `${name} is in namespaces; leave out namespaced: false`);
  // Of children, their owner decides what is to be done.
  if (isWide && type.namespaced && where.includes('references'))
    throw misdefined(where, `${name} has no namespace; add namespaced: false`);
}

/** Kubernetes' own versions are v1, v1beta1 and the like; in other groups they may be called anything. */
function isApiVersion(apiVersion: string): boolean {
  const [version = '', group, ...more] = apiVersion.split('/').reverse();
  if (more.length > 0) return false;
  if (group !== undefined && isGroup(group) && !isKubernetesGroup(group)) return isLabel(version);
  const isName = group === undefined || /^[a-z0-9][-.a-z0-9]*$/.test(group);
  return isName && /^v\d+((alpha|beta)\d+)?$/.test(version);
}

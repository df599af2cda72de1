import { servedType, storedVersion } from '../contract/crd.js';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import type {
  ContributedType,
  Generated,
  GeneratedName,
  KindConstruct,
  OwnedKind,
} from '../contract/kind.js';
import { NAMESPACE } from '../contract/names.js';
import { groupOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType, ResourceTypeProps } from '../contract/resource.js';
import { secretType } from '../values/generated.js';
import { parseFieldPath, showValue } from '../values/path.js';
import { checkNames, misdefined } from './definition.js';
import { CA_KEY, MAX_DAYS } from '../values/certificates.js';
import { bitsOf, GeneratedSecrets, keysOf, MIN_BITS } from './generated.js';
import type { GeneratedCertificate, GeneratedPart } from './generated.js';
import type { HandOverFunction } from './hand-over.js';
import type { ChildOf, KeepFunction, ObservedChildOf } from './kubernetes-types.js';
import { parseLabelSelector } from '../values/label-selector.js';
import { loadCrd } from './load-crd.js';
import { inNamespaces } from './namespace-selector.js';
import { OwnedChildren } from './owned-children.js';
import type { ChildType, OwnFunctions } from './owned-children.js';
import { ReferenceResolver } from './references.js';
import type { AnyReference, ReferenceProps, ReferencesOf } from './references.js';
import type { RelatedTypeProps, StatusFunction } from './status.js';
import type { FromSchema, TypedCrd } from './typed-crd.js';

/** A type that a construct may make. */
export interface ChildTypeProps extends ResourceTypeProps {
  /**
   * Namespaces beside that of the custom resource in which its objects may be; `*` for all. What is there, or has no namespace, has no
   * owner reference: the operator deletes it once the custom resource is gone.
   * @default - none: children live in the namespace of their custom resource
   */
  readonly namespaces?: readonly string[] | '*';
  /**
   * Fate of its objects when their custom resource is deleted: with `keep` they stay as they are, without an owner, and
   * `reconstruct adopt` hands them over to another one. What is no longer rendered is deleted all the same.
   * @default delete
   */
  readonly onDelete?: 'delete' | 'keep';
  /**
   * Whether an object is deleted and created again where an immutable field has to change, such as the template of a Job. Only for
   * objects that hold nothing of value. With `orphan`, what it owns stays, and the next one takes it over: the Pods of a StatefulSet
   * whose claim templates change.
   * @default false - the custom resource is stalled with the reason `ImmutableField`
   */
  readonly recreate?: boolean | 'orphan';
  /**
   * Paths of fields that are applied as they were rendered when the object was created, such as `.spec` or
   * `.spec.volumeClaimTemplates`. Their drift is corrected. An annotation on the object records them. Not for Secrets.
   * @default - none: what is rendered now is applied
   */
  readonly createOnly?: readonly string[];
  /**
   * Whether the kind works where this type isn't installed. A custom resource that needs it is stalled with the reason
   * `KindNotInstalled` until it is.
   * @default false - the controller starts once the type is served
   */
  readonly optional?: boolean;
  /**
   * Returns what `status` and `handOver` read of a child as the API server sent it, beside its identity and status: kept in
   * memory, so little is best. TypeScript knows its fields by `ObjectOf`. A `status` among it stands for the object's own, as with a condition `Ready` for what has none.
   * Kinds that share the function share the memory.
   * @default - nothing
   */
  readonly keep?: KeepFunction<Readonly<Record<string, unknown>>>;
  /** See `Watch.claims`. @default - none */
  readonly claims?: (object: AnyObject) => readonly string[];
}

/** A type of objects of others, of which a construct may set fields. */
export interface ContributedTypeProps extends ResourceTypeProps {
  /** Namespaces beside that of the custom resource in which its objects may be; `*` for all. @default - none */
  readonly namespaces?: readonly string[] | '*';
  /**
   * Paths of fields that are taken from other writers, such as `.spec.replicas`, and given back with the value from before. Autoscalers
   * and other custom resources keep theirs. Not for Secrets.
   * @default - none: a field that others set to another value is refused with the reason `FieldConflict`
   */
  readonly takes?: readonly string[];
}

/** Parts of a kind. */
export interface KindProps<
  Spec,
  Status extends object,
  Children extends readonly ChildTypeProps[] = readonly ChildTypeProps[],
  References = unknown,
  Values = unknown,
  Observes extends boolean = false,
  Remembers extends boolean = false,
  Finalizes extends boolean = false,
  ReadsRelated extends boolean = false,
  Rules extends StructuralSchema = StructuralSchema,
  Config extends StructuralSchema | undefined = undefined,
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
    Generated<GeneratedName<Values>>,
    Observes extends true ? readonly ObservedChildOf<Children[number]>[] : undefined,
    Remembers extends true ? Partial<Status> : undefined,
    Finalizes extends true ? boolean : undefined,
    ReadsRelated extends true ? readonly AnyObject[] : undefined,
    FromSchema<Rules>,
    FromSchema<Config>
  >;
  /**
   * Other objects that the construct reads, by the names of its props' `references`. A change of one renders again; nothing
   * else of their types is read.
   * @default - none
   */
  readonly references?: References & Readonly<Record<string, ReferenceProps<Spec>>>;
  /**
   * Types of objects of others, of which the construct renders single fields: nothing of these types is created, deleted or owned. What is
   * no longer rendered is given up, also on deletion: the custom resources have a finalizer.
   * @default - none
   */
  readonly contributes?: readonly ContributedTypeProps[];
  /**
   * Passwords, keys and tokens that the operator makes for each custom resource, by their keys in a Secret of its own,
   * `<name>-<kind in lower case>-generated`; the construct gets its name as `generated`. A value is made once and stays: the annotation
   * `reconstruct.kosmos.io/rotate` on a custom resource has all of them replaced. Texts that are made of them, such as connection strings,
   * stand beside them, also under keys that the custom resource chooses, and so do certificates.
   * @default - none
   */
  readonly generated?: Values & Readonly<Record<string, GeneratedPart<Spec>>>;
  /**
   * Returns the name of that Secret by the name of its custom resource. It can't change after a release.
   * @default - `<name>-<kind in lower case>-generated`
   */
  readonly generatedSecretName?: (name: string) => string;
  /** Every type that the construct may make. They are watched, owned, corrected and pruned. */
  readonly children: Children;
  /**
   * Whether the construct reads labels and annotations of the custom resource in `metadata` of its props, for `inheritedMetadata`. A
   * change of them renders again.
   * @default false
   */
  readonly readsMetadata?: boolean;
  /**
   * The construct reads its children as `observed` of its props: metadata, status, `isCurrent` of types with `createOnly`, and what
   * `keep` of their type returns. A change of that renders again.
   * @default false
   */
  readonly observes?: Observes;
  /**
   * The construct reads as `status` of its props what the kind's `status` returned last: its fields, not the conditions. They are
   * stored before anything is made of them, so that a process which ends in between repeats nothing. What has to happen once all the same
   * is read from a child, since a status can be lost, as in a restored backup.
   * @default false
   */
  readonly remembers?: Remembers;
  /**
   * The construct renders what is to be done before a custom resource goes: it reads as `deleted` of its props whether that is being
   * deleted. What it renders then, such as a Job, is applied, and once all of it is ready and nothing else is left, the custom resource
   * goes. A finalizer holds it until then; `false`, for a kind that had one in an earlier release, takes it off.
   * @default - the kind has no finalizer
   */
  readonly finalizes?: Finalizes;
  /** Types that earlier releases made and this one doesn't: they are pruned. @default - none */
  readonly formerChildren?: readonly Pick<ChildTypeProps, keyof ResourceTypeProps | 'namespaces'>[];
  /** Objects that others make of the children, or that name the custom resource, and that `status` reads. @default - none */
  readonly related?: readonly RelatedTypeProps[];
  /**
   * Whether the construct reads the objects of `related` too, as `related` of its props: as kept, without UID, versions and owners. A change of
   * that renders again.
   * @default false
   */
  readonly readsRelated?: ReadsRelated;
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
  readonly policySchema?: Rules;
  /**
   * The operator's own configuration, such as a domain: a schema like that of a CRD, for the kind's section of the file of `--settings`.
   * Construct and status function get it as `settings`, with the defaults. Where a required value isn't given, custom resources are
   * stalled with the reason `SettingsMissing`. Not for secrets: name a Secret there.
   * @default - the kind has no settings, and a section for it is refused
   */
  readonly settingsSchema?: Config;
  /**
   * Computes the status of the custom resource from its children, of which some may not be there yet. Where something
   * couldn't be rendered or applied, that error stands in the conditions instead of the readiness. A field that the
   * schema of the status lacks is an error; the compiler lets it pass beside a field that is there.
   * @default - ready when every child is, by the rules of kstatus; see `childReadiness`
   */
  readonly status?: StatusFunction<Spec, Status, ChildOf<Children[number]>, FromSchema<Config>>;
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
 * of a namespaced custom resource live in its namespace, or where their type says.
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
  const Remembers extends boolean = false,
  const Finalizes extends boolean = false,
  const ReadsRelated extends boolean = false,
  const Rules extends StructuralSchema = StructuralSchema,
  const Config extends StructuralSchema | undefined = undefined,
>(
  props: KindProps<
    Spec,
    Status,
    Children,
    References,
    Values,
    Observes,
    Remembers,
    Finalizes,
    ReadsRelated,
    Rules,
    Config
  >,
): OwnedKind {
  checkOptions(props);
  const defined = kindOf(props.crd);
  const { type } = defined;
  const references = props.references && referencesOf(type, props.references);
  const generated = props.generated && generatedOf(type, props.generated, props.generatedSecretName);
  const kind = {
    ...defined,
    ...{ ...(references && { references }), ...(generated && { generated }) },
    ...(props.observes && { observes: true }),
    ...(props.readsMetadata && { readsMetadata: true }),
    ...(props.readsRelated && { readsRelated: true }),
    ...(props.remembers && { remembers: true }),
    ...(props.finalizes !== undefined && { finalizes: props.finalizes }),
    construct: props.construct as KindConstruct<never>,
    children: props.children.map((type) => ({ ...type, ...resourceType(type) })),
    formerChildren: (props.formerChildren ?? []).map((type) => ({ ...type, ...resourceType(type) })),
    ...(props.contributes && {
      contributes: props.contributes.map((type) => ({ ...type, ...resourceType(type) })),
    }),
    related: (props.related ?? []).map((type) => ({ ...type, ...resourceType(type) })),
    ...(props.policySchema && { policySchema: props.policySchema }),
    ...(props.settingsSchema && { settingsSchema: props.settingsSchema }),
  };
  if (props.readsRelated && kind.related.length === 0)
    throw misdefined(
      'defineKind: readsRelated',
      'there is nothing to be read; give related: [{ apiVersion, kind, selector, keep, nameOf }]',
    );
  if (props.remembers && !props.status)
    throw misdefined(
      'defineKind: remembers',
      'nothing is said that could be remembered; give status: ({ last, now }) => ({ fields: { ... } })',
    );
  checkScopes(kind.type, 'defineKind: children', kind.children);
  checkScopes(kind.type, 'defineKind: formerChildren', kind.formerChildren);
  checkScopes(kind.type, 'defineKind: contributes', kind.contributes ?? []);
  if (kind.contributes && kind.finalizes === false)
    throw misdefined(
      'defineKind: finalizes',
      'fields of others are given back on deletion, by the finalizer; leave finalizes: false out',
    );
  const secrets =
    generated && kind.related.some((related) => groupKind(related) === 'Secret') ? [secretType] : [];
  const { contributes = [] } = kind;
  const types = [...kind.children, ...kind.formerChildren, ...contributes, ...kind.related, ...secrets].map(
    groupKind,
  );
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice)
    throw misdefined(
      `Kind ${kind.type.kind}`,
      `type ${twice} is listed twice; list it once, in children, formerChildren, contributes or related`,
    );
  // The adapter reads `status` and `handOver` alone, and knows no kind's types.
  const own = props as unknown as OwnFunctions;
  return {
    ...kind,
    rendering: { each: kind },
    controllers: (context) => {
      const all = new OwnedChildren(kind, context, own);
      const { namespaceSelector } = context;
      return [namespaceSelector === undefined ? all : inNamespaces(all, namespaceSelector)];
    },
  };
}

/** Returns the types of children of objects of others. @throws OperatorError `InvalidDefinition` */
export function decoratedWith(owner: ResourceType, children: readonly ChildTypeProps[]): ChildType[] {
  for (const [index, type] of children.entries()) {
    const where = `decorate: children[${index}]`;
    checkNames(where, type, [...OF_A_TYPE, 'recreate', 'createOnly', 'optional'], `write ${EXAMPLE}`);
    checkGroup(where, type);
    checkReplacement(where, type);
  }
  const types = children.map((type) => ({ ...type, ...resourceType(type) }));
  checkScopes(owner, 'decorate: children', types);
  const twice = [owner, ...types].map(groupKind).find((type, index, all) => all.indexOf(type) !== index);
  if (twice)
    throw misdefined(
      'decorate: children',
      `type ${twice} is there twice; list it once, and not the decorated one`,
    );
  return types;
}

/** Reads what every kind has from its CRD. @throws OperatorError `InvalidDefinition` */
export function kindOf(given: string | URL | CustomResourceDefinition) {
  const crd = loadCrd(given);
  const version = storedVersion(crd);
  checkStatusSchema(crd, version);
  const name = crd.spec.names.kind.toLowerCase();
  return { name, crd, type: servedType(crd, version), ...statusFieldsOf(version) };
}

const WAYS = ['name', 'names', 'labels', 'selector', 'all'] as const;
const A_REFERENCE = "{ apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.secretName }";

function referencesOf(owner: ResourceType, given: object): ReferenceResolver {
  for (const [name, props] of Object.entries(given)) {
    const where = `defineKind: references.${name}`;
    checkNames(where, props, OF_A_REFERENCE, `write ${A_REFERENCE}`);
    const reference = props as AnyReference;
    const { namespace, namespaced = true } = reference;
    const ways = WAYS.filter((way) => reference[way] !== undefined);
    if (ways.length !== 1) throw misdefined(where, `give one of ${WAYS.join(', ')}, as in ${A_REFERENCE}`);
    const isList = ways[0] !== 'name' && ways[0] !== 'names';
    if (namespace === '*' && !isList)
      throw misdefined(
        where,
        `a name in all namespaces isn't one object; give selector or all, or one namespace`,
      );
    if (typeof namespace === 'string' && namespace !== '*' && !NAMESPACE.test(namespace))
      throw misdefined(where, `no namespace is called ${showValue(namespace)}`);
    if (reference.data && (reference.all || namespace === '*'))
      throw misdefined(
        where,
        'data of all Secrets would be read; leave data out, or refer to them by their names',
      );
    if (!owner.namespaced && namespaced && !namespace)
      throw misdefined(where, `${owner.kind} has no namespace; add namespace: (cr) => cr.spec.namespace`);
    const type = groupKind(props as ReferenceProps<never>);
    if (namespaced && CLUSTER_SCOPED.has(type))
      throw misdefined(where, `${type} has no namespace; add namespaced: false`);
  }
  return new ReferenceResolver(owner, given as Readonly<Record<string, AnyReference>>);
}

function generatedOf(
  owner: ResourceType,
  given: Readonly<Record<string, GeneratedPart<never>>>,
  nameOf?: (name: string) => string,
): GeneratedSecrets {
  if (!owner.namespaced)
    throw misdefined(
      'defineKind: generated',
      `${owner.kind} has no namespace for a Secret; leave it out, and generate the values for a kind in namespaces`,
    );
  for (const [name, value] of Object.entries(given)) {
    const where = `defineKind: generated.${name}`;
    checkNames(where, value, OF_A_VALUE, 'write { length: 32 } or { bytes: 32 }');
    if ('text' in value || 'texts' in value) {
      if (Object.values({ ...value }).some((one, index) => index > 0 || typeof one !== 'function'))
        throw misdefined(
          where,
          'a text is made by a function alone; write { text: ({ cr, values }) => values.password }',
        );
      continue;
    }
    if ('dnsNames' in value || 'days' in value) {
      checkCertificate(where, name, value, given);
      continue;
    }
    if (value.bytes !== undefined && (value.length ?? value.alphabet) !== undefined)
      throw misdefined(where, 'give either bytes or length and alphabet');
    if (!(bitsOf(value) >= MIN_BITS))
      throw misdefined(where, `can be guessed: it has less than ${MIN_BITS} random bits; make it longer`);
  }
  const [one, other]: unknown[] = nameOf ? [nameOf('web'), nameOf('db')] : ['web', 'db'];
  if (typeof one !== 'string' || typeof other !== 'string' || one === other)
    throw misdefined(
      'defineKind: generatedSecretName',
      'it returns the name of a Secret, another one for each custom resource; write (name) => `${name}-tls`',
    );
  return new GeneratedSecrets(owner, given, nameOf);
}

/** @throws OperatorError `InvalidDefinition` */
function checkCertificate(
  where: string,
  name: string,
  value: object,
  all: Readonly<Record<string, GeneratedPart<never>>>,
): void {
  const { dnsNames, days = 1, ...others } = value as Partial<GeneratedCertificate<never>>;
  if (typeof dnsNames !== 'function' || Object.keys(others).length > 0)
    throw misdefined(
      where,
      'a certificate has a function and days; write { dnsNames: (cr) => [`${cr.metadata.name}.${cr.metadata.namespace}.svc`], days: 90 }',
    );
  if (!Number.isInteger(days) || days < 1 || days > MAX_DAYS)
    throw misdefined(where, `days: ${showValue(days)} is none; write a whole number from 1 to ${MAX_DAYS}`);
  const taken = [...keysOf({ [name]: { dnsNames } }), CA_KEY].find((key) => Object.hasOwn(all, key));
  if (taken ?? (name === 'ca' || undefined))
    throw misdefined(
      where,
      `the key ${taken ?? 'ca.crt'} has another use in its Secret; give it another name`,
    );
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

/** @throws OperatorError `InvalidDefinition` where a type says wrongly where its objects live */
function checkScopes(owner: ResourceType, list: string, types: readonly ContributedType[]): void {
  types.forEach((child, index) => {
    const name = groupKind(child);
    const where = `${list}[${index}]`;
    const { apiVersion, kind, namespaces } = child;
    if (child.namespaced && CLUSTER_SCOPED.has(name)) {
      const type = `{ apiVersion: '${apiVersion}', kind: '${kind}', namespaced: false }`;
      throw misdefined(where, `${name} has no namespace; write ${type}`);
    }
    if (namespaces === undefined) return;
    if (!child.namespaced || !owner.namespaced)
      throw misdefined(
        where,
        `leave namespaces out: ${child.namespaced ? `${owner.kind} is cluster-scoped, and may have its children anywhere` : `${name} has no namespace`}`,
      );
    const wrong = namespaces === '*' ? undefined : namespaces.find((one) => !NAMESPACE.test(one));
    if (wrong !== undefined || namespaces.length === 0)
      throw misdefined(
        where,
        `namespaces: give names, as in ['istio-gateways'], or '*' for all${wrong === undefined ? '' : `; ${showValue(wrong)} is none`}`,
      );
  });
}

const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";

const REQUIRED = ['crd', 'construct', 'children'];
const NAMES = [
  ...[
    ...REQUIRED,
    'references',
    'generated',
    'generatedSecretName',
    'observes',
    'remembers',
    'readsMetadata',
    'readsRelated',
    'finalizes',
    'formerChildren',
    'contributes',
    'related',
  ],
  ...['handOver', 'policySchema', 'settingsSchema', 'status'],
];
const OF_A_TYPE = ['apiVersion', 'kind', 'plural', 'namespaced'];
const OF_A_REFERENCE = [...OF_A_TYPE, ...WAYS, 'namespace', 'optional', 'data'];
const OF_A_VALUE = ['length', 'alphabet', 'bytes', 'emptyIsMissing', 'text', 'texts', 'dnsNames', 'days'];

/** Lists of types, and the options of their items. */
const TYPE_LISTS = [
  [
    'children',
    [...OF_A_TYPE, 'namespaces', 'onDelete', 'recreate', 'createOnly', 'optional', 'keep', 'claims'],
  ],
  ['formerChildren', [...OF_A_TYPE, 'namespaces']],
  ['contributes', [...OF_A_TYPE, 'namespaces', 'takes']],
  ['related', [...OF_A_TYPE, 'selector', 'keep', 'nameOf']],
] as const;

/** Refuses options that there are not, which would be ignored. @throws OperatorError `InvalidDefinition` */
function checkOptions(props: object): void {
  const parts = checkNames('defineKind', props, NAMES, 'takes { crd, construct, children }', REQUIRED);
  for (const [list, names] of TYPE_LISTS)
    (parts[list] as readonly ResourceTypeProps[] | undefined)?.forEach((type, index) => {
      const where = `defineKind: ${list}[${index}]`;
      checkNames(where, type, names, `write ${EXAMPLE}`);
      checkGroup(where, type);
      if (list === 'children') checkReplacement(where, type);
      if (list === 'contributes') checkTaken(where, type);
      if (list === 'related' && !isSelector((type as RelatedTypeProps).selector))
        throw misdefined(
          where,
          "give a label selector such as selector: 'demo.io/widget', or all objects of the type are read",
        );
    });
}

/** Refuses what can't be said of how objects of a type are replaced, or not. @throws OperatorError `InvalidDefinition` */
function checkReplacement(where: string, { kind, apiVersion, recreate, createOnly }: ChildTypeProps): void {
  const wayOf: unknown = recreate ?? false;
  if (typeof wayOf !== 'boolean' && wayOf !== 'orphan')
    throw misdefined(where, `recreate: ${showValue(wayOf)} is none; write true, or 'orphan'`);
  if (createOnly === undefined) return;
  if (kind === 'Secret' && apiVersion === 'v1')
    throw misdefined(
      where,
      'createOnly would record values of a Secret in an annotation; leave it out, and see generated for values that are made once',
    );
  checkPaths(where, createOnly, 'createOnly', '.spec.volumeClaimTemplates');
}

/** Refuses what can't be taken from other writers. @throws OperatorError `InvalidDefinition` */
function checkTaken(where: string, { kind, apiVersion, takes }: ContributedTypeProps): void {
  if (takes === undefined) return;
  if (kind === 'Secret' && apiVersion === 'v1')
    throw misdefined(where, 'takes would record values of a Secret in an annotation; leave it out');
  checkPaths(where, takes, 'takes', '.spec.replicas');
}

function checkPaths(where: string, given: readonly string[], option: string, example: string): void {
  const paths: readonly unknown[] = Array.isArray(given) ? given : [];
  const isIn = (path: string, other: unknown): boolean =>
    path === other || path.startsWith(`${String(other)}.`) || path.startsWith(`${String(other)}[`);
  const wrong = paths.find((path, index) => {
    const [first = ''] = (typeof path === 'string' && parseFieldPath(path)) || [];
    const isTaken = paths.some((other, at) => at !== index && isIn(String(path), other));
    return ['', 'apiVersion', 'kind', 'metadata', 'status'].includes(first) || isTaken;
  });
  if (paths.length === 0 || wrong !== undefined)
    throw misdefined(
      where,
      `${option}: give paths of fields through maps, none within another and not of metadata or status, as in ['${example}']${wrong === undefined ? '' : `; ${showValue(wrong)} is none`}`,
    );
}

/** Kinds of Kubernetes' own groups that are often written with another one. */
const KINDS: Readonly<Record<string, string>> = {
  v1: 'ConfigMap Namespace PersistentVolumeClaim Pod Secret Service ServiceAccount',
  'apps/v1': 'DaemonSet Deployment ReplicaSet StatefulSet',
  'autoscaling/v2': 'HorizontalPodAutoscaler',
  'batch/v1': 'CronJob Job',
  'policy/v1': 'PodDisruptionBudget',
  'networking.k8s.io/v1': 'Ingress NetworkPolicy',
  'rbac.authorization.k8s.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
};

/** Refuses a kind of Kubernetes in a group of Kubernetes that lacks it: the controller would wait until it is served. */
function checkGroup(where: string, { apiVersion, kind }: ResourceTypeProps): void {
  const groups = Object.keys(KINDS);
  const right = groups.find((one) => KINDS[one]?.split(' ').includes(kind));
  const isOfKubernetes = groups.some((one) => groupOf(one) === groupOf(apiVersion));
  if (right && isOfKubernetes && groupOf(right) !== groupOf(apiVersion))
    throw misdefined(
      where,
      `${apiVersion} has no ${kind}; write { apiVersion: '${right}', kind: '${kind}' }`,
    );
}

/** Reports whether a text is a label selector that doesn't select everything. */
export function isSelector(text: string): boolean {
  try {
    return parseLabelSelector(text).matchExpressions !== undefined;
  } catch {
    return false;
  }
}

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

import { servedType, storedVersion } from '../contract/crd.js';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import type { Generated, KindConstruct, OwnedKind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceTypeProps } from '../contract/resource.js';
import { secretType } from '../values/generated.js';
import { checkNames, refuse } from './definition.js';
import { generatedOf } from './generated.js';
import type { GeneratedName, GeneratedPart } from './generated.js';
import type { HandOverFunction } from './hand-over.js';
import type { ChildOf, ObservedChildOf } from './kubernetes-types.js';
import { fromLibrary } from './library-schemas.js';
import type { LibrarySchema } from './library-schemas.js';
import { typesIn } from './listed-types.js';
import type { ChildTypeProps, ContributedTypeProps } from './listed-types.js';
import { loadCrd } from './load-crd.js';
import { inNamespaces } from './namespace-selector.js';
import { OwnedChildren } from './owned-children.js';
import type { OwnFunctions } from './owned-children.js';
import { referencesOf } from './references.js';
import type { ReferenceProps, ReferencesOf, StatusReferencesOf } from './references.js';
import type { RelatedTypeProps, StatusFunction } from './status.js';
import type { FromSchema, TypedCrd } from './typed-crd.js';

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
  Rules extends StructuralSchema | LibrarySchema = StructuralSchema,
  Config extends StructuralSchema | LibrarySchema | undefined = undefined,
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
    {
      readonly references: ReferencesOf<NoInfer<References>>;
      readonly generated: Generated<GeneratedName<Values>>;
      readonly observed: Observes extends true ? readonly ObservedChildOf<Children[number]>[] : undefined;
      readonly status: Remembers extends true ? Partial<Status> : undefined;
      readonly deleted: Finalizes extends true ? boolean : undefined;
      readonly related: ReadsRelated extends true ? readonly AnyObject[] : undefined;
      readonly policy?: FromSchema<Rules>;
      readonly settings: FromSchema<Config>;
    }
  >;
  /**
   * Other objects that construct and status function read, by the names of their `references`. A change of one renders again; nothing
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
  readonly generated?: Values & Readonly<Record<string, GeneratedPart<Spec, FromSchema<Config>>>>;
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
   * Restrictions for admins: a schema like that of a CRD, or one of zod or TypeBox, for the kind's section of the policy. The construct of an
   * operator whose policy has no such section gets the schema's `default`, if there is one.
   * @default - the kind knows no policy, and a section for it is refused
   */
  readonly policySchema?: Rules;
  /**
   * The operator's own configuration, such as a domain: a schema as that of `policySchema`, for the kind's section of the file of `--settings`.
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
  readonly status?: StatusFunction<
    Spec,
    Status,
    ChildOf<Children[number]> &
      ([Observes, Remembers] extends [true, false] ? { readonly isCurrent?: boolean } : unknown),
    FromSchema<Config>,
    StatusReferencesOf<References>
  >;
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
  const Rules extends StructuralSchema | LibrarySchema = StructuralSchema,
  const Config extends StructuralSchema | LibrarySchema | undefined = undefined,
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
  checkNames('defineKind', props, NAMES, 'takes { crd, construct, children }', REQUIRED);
  const { crd, references, generated, generatedSecretName, contributes = [], ...others } = props;
  const { policySchema, settingsSchema, status, handOver, ...parts } = others;
  const defined = kindOf(crd);
  const { type } = defined;
  const { children, formerChildren = [], related = [] } = parts;
  const lists = { children, formerChildren, contributes, related };
  const { contributes: ofOthers, ...types } = typesIn('defineKind', type, lists, LISTS);
  const kind = {
    ...defined,
    ...parts,
    ...types,
    ...(references && { references: referencesOf(type, references) }),
    ...(generated && { generated: generatedOf(type, generated, generatedSecretName) }),
    ...(ofOthers.length > 0 && { contributes: ofOthers }),
    ...(settingsSchema && { settingsSchema: sectionSchema('settingsSchema', settingsSchema) }),
    construct: props.construct as KindConstruct<never>,
    ...(policySchema && { policySchema: sectionSchema('policySchema', policySchema) }),
  };
  refuse(
    'defineKind',
    generated &&
      related.some((one) => groupKind(one) === groupKind(secretType)) &&
      'related: type Secret is listed twice, as that of generated values too; leave it out',
    props.readsRelated &&
      related.length === 0 &&
      'readsRelated: there is nothing to be read; give related: [{ apiVersion, kind, selector, keep, nameOf }]',
    props.remembers &&
      !status &&
      'remembers: nothing is said that could be remembered; give status: ({ last, now }) => ({ fields: { ... } })',
    props.finalizes === false &&
      contributes.length > 0 &&
      'finalizes: fields of others are given back on deletion, by the finalizer; leave finalizes: false out',
  );
  // The adapter knows no kind's types.
  const own = { status, handOver } as unknown as OwnFunctions;
  return {
    ...kind,
    rendering: { each: kind },
    controllers: (context) => [
      inNamespaces(new OwnedChildren(kind, context, own), context.namespaceSelector),
    ],
  };
}

/** Returns the schema of a section of an admin's file, also of one of a library. @throws OperatorError `InvalidDefinition` */
function sectionSchema(part: string, given: StructuralSchema | LibrarySchema): StructuralSchema {
  return fromLibrary(`defineKind: ${part}`, given) as StructuralSchema;
}

/** Reads what every kind has from its CRD. @throws OperatorError `InvalidDefinition` */
export function kindOf(given: string | URL | CustomResourceDefinition) {
  const crd = loadCrd(given);
  const version = storedVersion(crd);
  checkStatusSchema(crd, version);
  const name = crd.spec.names.kind.toLowerCase();
  return { name, crd, type: servedType(crd, version), ...statusFieldsOf(version) };
}

function statusFieldsOf({ schema }: CrdVersion): { readonly statusFields?: readonly string[] } {
  const status = schema.openAPIV3Schema.properties?.status;
  if (!status?.properties || status['x-kubernetes-preserve-unknown-fields']) return {};
  return { statusFields: Object.keys(status.properties) };
}

const REQUIRED = ['crd', 'construct', 'children'];
const NAMES = [
  ...[...REQUIRED, 'references', 'contributes', 'generated', 'generatedSecretName', 'formerChildren'],
  ...['observes', 'remembers', 'finalizes', 'readsMetadata', 'related', 'readsRelated', 'handOver'],
  ...['status', 'policySchema', 'settingsSchema'],
];

/** Options of the types that a kind lists. */
const LISTS = {
  children: ['namespaces', 'onDelete', 'recreate', 'createOnly', 'optional', 'keep', 'claims'],
  formerChildren: ['namespaces'],
  contributes: ['namespaces', 'takes'],
  related: ['selector', 'keep', 'nameOf'],
};

/**
 * Checks that the engine finds in every custom resource where to write its status: the API server drops what the schema
 * doesn't list, so the status would differ each time.
 * @throws OperatorError `InvalidDefinition`
 */
function checkStatusSchema(crd: CustomResourceDefinition, version: CrdVersion): void {
  const where = `CRD ${crd.metadata.name}, version ${version.name}`;
  const { subresources, schema } = version;
  refuse(
    where,
    !subresources?.status && 'add "subresources: { status: {} }", the status is written through it',
  );
  const status = schema.openAPIV3Schema.properties?.status;
  if (status?.['x-kubernetes-preserve-unknown-fields']) return;
  const { observedGeneration, conditions } = status?.properties ?? {};
  const isMerged =
    conditions?.['x-kubernetes-list-type'] === 'map' &&
    String(conditions['x-kubernetes-list-map-keys']) === 'type';
  refuse(
    where,
    observedGeneration?.type !== 'integer' &&
      'add "observedGeneration", of type integer, to the properties of the status',
    conditions?.type !== 'array' && 'add "conditions", of type array, to the properties of the status',
    !isMerged &&
      'add "x-kubernetes-list-type: map" and "x-kubernetes-list-map-keys: [type]" to the conditions of the status, or a write replaces those of other writers',
  );
}

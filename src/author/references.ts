import type { Lookup, Query } from '../contract/controller.js';
import type { Find, KindReferences, Referenced, ReferencedByName } from '../contract/kind.js';
import { OperatorError } from '../contract/error.js';
import { checkNames, misdefined, refuse } from './definition.js';
import type { KnownType, Wire } from './kubernetes-types.js';
import { CLUSTER_SCOPED, OF_A_TYPE } from './listed-types.js';
import { mistakeInSelector, selectorText } from '../values/label-selector.js';
import type { LabelSelector } from '../values/label-selector.js';
import { LAST_APPLIED_ANNOTATION, NAMESPACE } from '../contract/names.js';
import { checksumOver, deepFreeze, isMap, secretChecksum } from '../values/json.js';
import { describeRef, groupOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { showValue } from '../values/path.js';
import { keepIdentity, unreadableFor } from '../values/projections.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType, ResourceTypeProps } from '../contract/resource.js';

/** Ways of saying what a reference is to. */
export interface ReferenceWays<Spec> {
  /** Returns the name of the object; undefined where this custom resource refers to none. */
  readonly name: (cr: CustomResource<Spec>) => string | undefined;
  /** Returns the names of the objects, at most 100, which the construct gets in this order. */
  readonly names: (cr: CustomResource<Spec>) => readonly string[] | undefined;
  /** Returns the labels of the objects; undefined where none are looked for. */
  readonly labels: (cr: CustomResource<Spec>) => Readonly<Record<string, string>> | undefined;
  /** Returns a selector of the objects; undefined where none are looked for. An empty one is of all, but for Secrets with `data`. */
  readonly selector: (cr: CustomResource<Spec>) => LabelSelector | undefined;
  /** All objects of the type. */
  readonly all: true;
}

/** Type with a single one of these members. */
export type OneOf<All> = {
  [One in keyof All]: Pick<All, One> & { readonly [Other in Exclude<keyof All, One>]?: never };
}[keyof All];

/** Members of every reference. */
export interface ReferenceOptions<Spec> extends ResourceTypeProps {
  /**
   * Their namespace. One that a function returns may be what a user has written: another one than the custom resource's needs a
   * ReferenceGrant there, unless the custom resource has no namespace. One that is given as text needs none; `*` is all, for lists
   * alone, and never with the data of Secrets.
   * @default - that of the custom resource; has to be given where that has none
   */
  readonly namespace?: string | ((cr: CustomResource<Spec>) => string | undefined);
  /**
   * Whether an object may be missing: then the construct gets undefined, or a list without it.
   * @default false - the custom resource is stalled with the reason `ReferenceNotFound` until it is there
   */
  readonly optional?: boolean;
  /**
   * Whether the construct gets the data of a Secret, which the status function never does. They are kept in memory, and whatever it renders of them is stored unencrypted in
   * its children.
   * @default false - their checksum alone
   */
  readonly data?: boolean;
}

/**
 * Other objects that the construct reads, of the custom resource's namespace: one by its name, or any number by their names, by a
 * selector, or all of the type.
 */
export type ReferenceProps<Spec> = ReferenceOptions<Spec> & OneOf<ReferenceWays<Spec>>;

/** A reference, whichever way it takes. */
export type AnyReference = ReferenceOptions<never> & Partial<ReferenceWays<never>>;

/** Type of `references` in the props: an object where the reference is by one name, else a list. */
export type ReferencesOf<Props> = {
  readonly [Name in keyof Props]: Props[Name] extends { readonly name: unknown }
    ? ReferencedOf<Props[Name]> | MaybeMissing<Props[Name]>
    : readonly ReferencedOf<Props[Name]>[];
};

/** Type of `references` in a status function, which gets no data of Secrets. */
export type StatusReferencesOf<Props> = ReferencesOf<{
  readonly [Name in keyof Props]: Omit<Props[Name], 'data'>;
}>;

type MaybeMissing<Props> = Props extends { readonly optional: true }
  ? undefined
  : Props extends { readonly name: (cr: never) => infer Name }
    ? Extract<Name, undefined>
    : undefined;

type ReferencedOf<Props> = Props extends {
  readonly apiVersion: infer ApiVersion;
  readonly kind: infer Kind;
}
  ? [ApiVersion, Kind] extends ['v1', 'Secret']
    ? SecretOf<Props>
    : Referenced & FieldsOf<KnownType<ApiVersion, Kind>>
  : Referenced;

type FieldsOf<Known> = [Known] extends [never]
  ? unknown
  : Wire<Omit<Known, 'apiVersion' | 'kind' | 'metadata'>>;

type SecretOf<Props> = Referenced & {
  readonly type?: string;
  /** Hash of its type and data, keyed by its UID; without a cluster, `unknown-without-a-cluster`. */
  readonly checksum: string;
} & (Props extends { readonly data: true } ? { readonly data?: Readonly<Record<string, string>> } : unknown);

/** A reference whose type is complete. */
interface Reference {
  readonly name: string;
  readonly props: AnyReference;
  readonly lookup: Lookup;
}

/** Custom resource whose references are looked up. */
interface Search {
  readonly cr: CustomResource;
  readonly find: Find;
  readonly isOffline: boolean;
}

const grants: Lookup = {
  type: resourceType({ apiVersion: 'gateway.networking.k8s.io/v1beta1', kind: 'ReferenceGrant' }),
  keep: (object) => ({ ...keepIdentity(object), spec: object.spec }),
};

const WAYS = ['name', 'names', 'labels', 'selector', 'all'] as const;
const OPTIONS = [...OF_A_TYPE, ...WAYS, 'namespace', 'optional', 'data'];
const EXAMPLE = "{ apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.secretName }";

/** Returns the references of a kind. @throws OperatorError `InvalidDefinition` where one can't be what was meant */
export function referencesOf(
  owner: ResourceType,
  given: Readonly<Record<string, object>>,
): ReferenceResolver {
  const all = given as Readonly<Record<string, AnyReference>>;
  for (const [name, reference] of Object.entries(all)) {
    const where = `defineKind: references.${name}`;
    checkNames(where, reference, OPTIONS, `write ${EXAMPLE}`);
    const { namespace, namespaced = true } = reference;
    const ways = WAYS.filter((way) => reference[way] !== undefined);
    const isByName = ways.includes('name') || ways.includes('names');
    const type = groupKind(reference);
    refuse(
      where,
      ways.length !== 1 && `give one of ${WAYS.join(', ')}, as in ${EXAMPLE}`,
      namespace === '*' &&
        isByName &&
        "a name in all namespaces isn't one object; give selector or all, or one namespace",
      typeof namespace === 'string' &&
        namespace !== '*' &&
        !NAMESPACE.test(namespace) &&
        `no namespace is called ${showValue(namespace)}`,
      reference.data &&
        (reference.all ?? namespace === '*') &&
        'data of all Secrets would be read; leave data out, or refer to them by their names',
      !owner.namespaced &&
        namespaced &&
        !namespace &&
        `${owner.kind} has no namespace; add namespace: (cr) => cr.spec.namespace`,
      namespaced && CLUSTER_SCOPED.has(type) && `${type} has no namespace; add namespaced: false`,
    );
  }
  return new ReferenceResolver(owner, all);
}

/** References of the custom resources of one kind. */
export class ReferenceResolver implements KindReferences {
  readonly lookups: readonly Lookup[];
  private readonly all: readonly Reference[];

  constructor(
    private readonly owner: ResourceType,
    props: Readonly<Record<string, AnyReference>>,
  ) {
    this.all = Object.entries(props).map(([name, each]) => {
      const type = resourceType(each);
      const keep = groupKind(type) === 'Secret' ? secretKeeper(each.data ?? false) : keepReferenced;
      const { namespace } = each;
      const namespaces = namespace === '*' ? namespace : [namespace];
      const isFixed = typeof namespace === 'string' && type.namespaced;
      return {
        name,
        props: each,
        lookup: { type, keep, ...(isFixed && { namespaces: namespaces as string[] }) },
      };
    });
    const reachesOut =
      owner.namespaced && this.all.some(({ props: { namespace } }) => typeof namespace === 'function');
    this.lookups = [...this.all.map(({ lookup }) => lookup), ...(reachesOut ? [grants] : [])];
  }

  resolve(cr: CustomResource, find: Find, isOffline = false): ReferencedByName | undefined {
    const search = { cr, find, isOffline };
    const found = this.all.map((reference) => [reference.name, this.one(reference, search)]);
    if (found.some(([, one]) => one === UNKNOWN)) return undefined;
    return Object.fromEntries(found) as ReferencedByName;
  }

  private one(reference: Reference, search: Search): unknown {
    const { name, names, labels, selector, all } = reference.props;
    const cr = search.cr as never;
    if (name || names) {
      // An empty name is none.
      const wanted = name ? [name(cr)] : ((names?.(cr) ?? []) as readonly unknown[]);
      const distinct = new Set(wanted.filter(Boolean));
      if (distinct.size > MAX_NAMES)
        throw new OperatorError({
          reason: 'ReferenceTooLarge',
          message: `${describeRef({ ...search.cr, ...search.cr.metadata, kind: this.owner.kind })} refers to ${distinct.size} objects by name (references.${reference.name}), of which each is watched; name at most ${MAX_NAMES}`,
        });
      const found = [...distinct].map((one) => this.look(reference, search, { name: one as string }));
      if (found.includes(UNKNOWN)) return UNKNOWN;
      return name ? found.flat()[0] : found.flat();
    }
    if (all) return this.look(reference, search, {});
    const matchLabels = labels?.(cr);
    const wanted = labels ? matchLabels && { matchLabels } : selector?.(cr);
    if (wanted === undefined) return [];
    // By Kubernetes' rules; but empty labels are rather forgotten, and a Secret that is read is chosen.
    const isOfAll = selector && !reference.props.data && isEmpty(wanted);
    return this.look(reference, search, isOfAll ? {} : { selector: wanted });
  }

  /** Looks up one object by its name, or a list. */
  private look(
    { name, props, lookup }: Reference,
    { cr, find, isOffline }: Search,
    wanted: { readonly name?: string; readonly selector?: LabelSelector },
  ): readonly Referenced[] | typeof UNKNOWN {
    const { type } = lookup;
    const isChosen = typeof props.namespace === 'function';
    // An empty namespace is that of the custom resource: it would be all namespaces.
    const asked = (isChosen ? props.namespace(cr as never) : props.namespace) || cr.metadata.namespace;
    const namespace = type.namespaced ? asked : undefined;
    const owner = describeRef({ ...cr, ...cr.metadata, kind: this.owner.kind });
    const selector = wanted.selector && selectorText(wanted.selector);
    const ref = {
      ...type,
      name: shortened(wanted.name ?? (selector === '' ? '{}' : (selector ?? '*'))),
      ...(namespace !== undefined && { namespace }),
    };
    const what = `${owner} refers to ${describeRef(ref)} (references.${name})`;
    const mistake =
      type.namespaced && namespace === undefined && !isOffline
        ? 'its namespace is not given'
        : mistakeIn(props.namespace === '*' ? undefined : namespace, wanted);
    if (mistake !== undefined)
      throw new OperatorError({
        reason: 'ReferenceNotFound',
        message: `${what}, which can't be: ${mistake}; change the reference`,
      });
    let why: string | undefined;
    const answerTo = (at: Lookup, query: Query): readonly AnyObject[] | undefined => {
      const answer = find(at, { ...query, ...(namespace !== undefined && { namespace }) });
      const unreadable = answer.objects?.map(unreadableFor).find(Boolean);
      if (unreadable) throw unreadable;
      why = answer.why;
      if (answer.objects || why === undefined) return answer.objects;
      if (answer.isTooMuch)
        throw new OperatorError({
          reason: 'ReferenceTooLarge',
          message: `${what}, which is too much: ${answer.why}; refer to fewer objects, or to smaller ones`,
        });
      const message = `${what}, which can't be looked up: ${answer.why}`;
      throw new OperatorError({ reason: 'ReferenceUnknown', message, retry: 'backoff' });
    };
    const isElsewhere = isChosen && type.namespaced && namespace !== cr.metadata.namespace;
    if (!isOffline && this.owner.namespaced && isElsewhere) {
      const permits = answerTo(grants, {});
      if (!permits) return UNKNOWN;
      if (!permits.some((grant) => isPermitted(grant, this.owner, cr, type, wanted.name)))
        throw new OperatorError({
          reason: 'ReferenceNotPermitted',
          message: `${what}, and nothing permits that: create a ReferenceGrant, whose CRD is part of the Gateway API, in the namespace ${namespace ?? ''}, from ${groupKind(this.owner)} of ${cr.metadata.namespace ?? ''} to ${groupKind(type)}`,
        });
    }
    const query = wanted.name === undefined ? selector !== undefined && { selector } : { name: wanted.name };
    const objects = answerTo(lookup, query || {});
    if (!objects) return UNKNOWN;
    const elsewhere = objects.find((object) => namespace !== '*' && object.metadata.namespace !== namespace);
    if (elsewhere)
      throw new OperatorError({
        reason: 'ReferenceNotPermitted',
        message: `${what}, and ${describeRef(elsewhere)} was found, which is in a namespace: leave namespaced: false out of the reference`,
      });
    if (objects.length > 0 || wanted.name === undefined || props.optional)
      return objects.map(readByConstruct);
    const remedy = isOffline
      ? 'without a cluster, give it by --references, by { references } of render(), or by surroundings of the sweep'
      : 'create it, or change the reference';
    throw new OperatorError({
      reason: 'ReferenceNotFound',
      message: `${what}, which isn't there${why === undefined ? '' : `, but ${why}`}: ${remedy}`,
    });
  }
}

/** Answer that isn't known yet. */
const UNKNOWN = 'unknown';

/** Returns what a user has written as a message shows it. */
function shortened(text: unknown): string {
  const shown = String(text);
  return shown.length > 300 ? `${shown.slice(0, 300)}...` : shown;
}

/** Names of some types are free but for what a path can't have; these can't be in a field selector either. */
const NO_NAME = /^\.{1,2}$|[/%=,\\\s]|^.{254}/su;

/** Reports whether a selector is of all objects, and not one that is misspelt. */
function isEmpty(selector: LabelSelector): boolean {
  const isKnown = Object.keys(selector).every((name) => /^match(?:Labels|Expressions)$/.test(name));
  return isKnown && selectorText(selector) === '';
}

/** Maximum number of names of one reference: each has a watch. */
const MAX_NAMES = 100;

/** Maximum number of characters of a label selector, which is part of a URL. */
const MAX_SELECTOR = 4_096;

/** Returns why nothing can be found: the API server would refuse the request each time. */
function mistakeIn(
  namespace: string | undefined,
  { name, selector }: { readonly name?: string; readonly selector?: LabelSelector },
): string | undefined {
  if (name !== undefined && typeof name !== 'string') return 'its name is no text';
  if (namespace !== undefined && !NAMESPACE.test(namespace)) return `no namespace is called "${namespace}"`;
  if (name !== undefined) return NO_NAME.test(name) ? `no object is called "${shortened(name)}"` : undefined;
  if (selector === undefined) return undefined;
  const text = selectorText(selector);
  if (text === '') return 'no labels would select every object';
  if (text.length > MAX_SELECTOR) return 'its labels are more than a request can have';
  return mistakeInSelector(selector);
}

/** @see https://gateway-api.sigs.k8s.io/api-types/referencegrant/ */
function isPermitted(
  { spec }: AnyObject,
  owner: ResourceType,
  { metadata: { namespace } }: CustomResource,
  type: ResourceType,
  name: string | undefined,
): boolean {
  type Entry = Readonly<Partial<Record<'group' | 'kind' | 'namespace' | 'name', string>>>;
  const { from = [], to = [] } = (spec ?? {}) as {
    readonly from?: readonly Entry[];
    readonly to?: readonly Entry[];
  };
  const isOf = ({ group = '', kind }: Entry, { apiVersion, kind: other }: ResourceType): boolean =>
    group === groupOf(apiVersion) && kind === other;
  return (
    from.some((entry) => isOf(entry, owner) && entry.namespace === namespace) &&
    // One that names an object permits no search by labels.
    to.some((entry) => isOf(entry, type) && (!entry.name || entry.name === name))
  );
}

/** Keeps everything but bookkeeping. */
function keepReferenced(object: AnyObject): AnyObject {
  const { labels, annotations = {} } = object.metadata;
  const { [LAST_APPLIED_ANNOTATION]: _, ...others } = annotations;
  const identity = keepIdentity(object);
  return {
    ...object,
    metadata: {
      ...identity.metadata,
      ...(labels && { labels }),
      ...(Object.keys(others).length > 0 && { annotations: others }),
    },
  };
}

function secretKeeper(keepsData: boolean): Lookup['keep'] {
  return (object) => {
    // The API server's defaults; a file may lack them.
    const { data = {}, stringData: _, type = 'Opaque', metadata, ...rest } = keepReferenced(object);
    // Tools keep a copy of all data in annotations.
    const { annotations, ...others } = metadata;
    const kept = keepsData ? { metadata, data } : { metadata: others };
    return { ...rest, ...kept, type, checksum: secretChecksum(metadata, { type, data }) };
  };
}

const shownOf = new WeakMap<AnyObject, Referenced>();

/** Without what differs between equal objects; frozen, since all custom resources that refer to it share it. */
function readByConstruct(object: AnyObject): Referenced {
  const { uid, resourceVersion, ownerReferences, deletionTimestamp, ...metadata } = object.metadata;
  const known = shownOf.get(object) ?? deepFreeze({ ...object, metadata });
  shownOf.set(object, known);
  return known;
}

/** Returns references without the data of Secrets: who reads a custom resource may not be permitted to read these. */
export function withoutData(references: ReferencedByName): ReferencedByName {
  const read = (object: Referenced): Referenced => {
    if (groupKind(object) !== 'Secret') return object;
    const { data, metadata, ...rest } = object as Referenced & { readonly data?: unknown };
    const { annotations, ...identity } = metadata;
    return { ...rest, metadata: identity };
  };
  const all = Object.entries(references).map(([name, found]) => {
    const isList = Array.isArray(found);
    return [name, isList ? (found as readonly Referenced[]).map(read) : found && read(found as Referenced)];
  });
  return Object.fromEntries(all) as ReferencedByName;
}

/** Values are left out of it: they may be those of a Secret. */
const CHECKSUM_OF =
  "isn't what the props have; write checksumAnnotations(references), or { tls: references.tls, generated }";

/**
 * Returns annotations for a Pod template with a checksum of each referenced object: its Pods are replaced when one of them
 * changes. Of a Secret, type, data and UID count, of another object its name and all but metadata and status.
 * @param references of the props, or some of them; and `generated`, as the props have it
 */
export function checksumAnnotations(
  references: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  if (!isMap(references)) throw misdefined('checksumAnnotations', CHECKSUM_OF);
  return Object.fromEntries(
    Object.entries(references).flatMap(([name, value]) =>
      value === undefined ? [] : [[`checksum/${name}`, checksumOf(name, value)]],
    ),
  );
}

function checksumOf(name: string, value: unknown): string {
  const contents = [value].flat().map((object) => {
    if (!isMap(object)) return object;
    if (typeof object.checksum === 'string') return object.checksum;
    if (!isMap(object.metadata)) throw misdefined(`checksumAnnotations: ${name}`, CHECKSUM_OF);
    const { status: _, metadata, ...content } = object as AnyObject;
    return { ...content, name: metadata.name };
  });
  return checksumOver(contents);
}

import type { AppliedBuild } from '../contract/plan.js';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  CREATED_ANNOTATION,
  GENERATED_ANNOTATION,
  isHashAnnotation,
  isOwnAnnotation,
  LAST_APPLIED_ANNOTATION,
} from '../contract/names.js';
import type { OperatorError } from '../contract/error.js';
import { deepFreeze, isMap, isTooDeep } from './json.js';
import { controllerOf, objectId } from '../contract/object.js';
import type {
  AnyObject,
  FieldsV1,
  KubernetesObject,
  ManagedFieldsEntry,
  ObjectMeta,
  OwnerReference,
} from '../contract/object.js';
import { groupKind } from '../contract/resource.js';

/** Projection to identity and owners. */
export function keepIdentity({ apiVersion, kind, metadata }: AnyObject): AnyObject {
  const { namespace, name, uid, resourceVersion, ownerReferences, deletionTimestamp } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(ownerReferences && { ownerReferences: someOwners(ownerReferences) }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
  };
}

/**
 * The default projection, for objects that we write: identity, our annotations and the status; of StatefulSets,
 * ReplicaSets and DaemonSets also how many pods there are to be, and how they are updated. What else is kept of them
 * comes beside that: without the annotations, they would be applied with every reconcile.
 */
export function keepStatus(object: AnyObject): AnyObject {
  const { namespace, name, uid, resourceVersion, generation, ownerReferences, deletionTimestamp } =
    object.metadata;
  const annotations = [
    ...ownAnnotations(object.metadata.annotations ?? {}),
    ...createdRecord(object.metadata.annotations?.[CREATED_ANNOTATION], object),
  ];
  const metadata: Record<string, unknown> = { namespace, name, uid, resourceVersion, generation };
  if (ownerReferences) metadata.ownerReferences = someOwners(ownerReferences);
  if (deletionTimestamp) metadata.deletionTimestamp = deletionTimestamp;
  if (annotations.length > 0) metadata.annotations = Object.fromEntries(annotations);
  const kept = {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: metadata as unknown as ObjectMeta,
  };
  const spec = countedSpec(object);
  return {
    ...kept,
    ...(spec && { spec }),
    ...('status' in object && { status: object.status }),
  };
}

/** Returns an object with the status that `keep` of its type makes of it, where it makes one. */
export function withKeptStatus(object: AnyObject, more: { readonly status?: unknown } = {}): AnyObject {
  return isMap(more.status) ? { ...object, status: more.status } : object;
}

/** Maximum number of characters of our annotations that are kept of an object: every writer may make some up. */
const MAX_ANNOTATIONS = 20_000;

/** Annotations that are kept before those of shared objects, whose names any writer may choose. */
const EXACT = [APPLIED_HASH_ANNOTATION, ADOPT_BY_ANNOTATION, GENERATED_ANNOTATION];

function ownAnnotations(all: Readonly<Record<string, string>>): [string, string][] {
  let left = MAX_ANNOTATIONS;
  const shared = Object.keys(all).filter((name) => isHashAnnotation(name) && !EXACT.includes(name));
  const kept: [string, string][] = [];
  for (const name of [...EXACT, ...shared]) {
    const value = all[name];
    if (value === undefined || name.length + value.length > left) continue;
    left -= name.length + value.length;
    kept.push([name, value]);
  }
  return kept;
}

/** Reports whether an object with these annotations is kept with all of ours. */
export function areKept(annotations: Readonly<Record<string, string>>): boolean {
  const own = Object.keys(annotations).filter((name) => EXACT.includes(name) || isHashAnnotation(name));
  return ownAnnotations(annotations).length === own.length;
}

/** Maximum number of characters of a record of what an object was created with. */
export const MAX_CREATED = 32_768;

/** Returns the record of what an object was created with, where it is as we have applied it. */
function createdRecord(text: string | undefined, object: AnyObject): [string, string][] {
  if (text === undefined || text.length > MAX_CREATED) return [];
  const isApplied = managedFieldsOf(object).some(({ operation, subresource, fieldsV1 }) => {
    const owned = fieldsV1?.['f:metadata']?.['f:annotations'] ?? {};
    const has = (name: string): boolean => `f:${name}` in owned;
    return operation === 'Apply' && !subresource && has(CREATED_ANNOTATION) && has(APPLIED_HASH_ANNOTATION);
  });
  return isApplied ? [[CREATED_ANNOTATION, text]] : [];
}

/** The projection of children that their construct observes: `keepStatus`, and the labels and annotations of others. */
export function keepObserved(object: AnyObject): AnyObject {
  const kept = keepStatus(object);
  const { labels, annotations = {} } = object.metadata;
  const others = Object.entries(annotations).filter(
    ([name]) => name !== LAST_APPLIED_ANNOTATION && !isOwnAnnotation(name),
  );
  const all = { ...Object.fromEntries(others), ...kept.metadata.annotations };
  const more = { ...(labels && { labels }), ...(Object.keys(all).length > 0 && { annotations: all }) };
  return { ...kept, metadata: { ...kept.metadata, ...more } };
}

/** Maximum number of owners that are kept of an object, the controller among them. */
const MAX_OWNERS = 10;

function someOwners(owners: readonly OwnerReference[]): readonly OwnerReference[] {
  if (owners.length <= MAX_OWNERS) return owners;
  const isController = ({ controller }: OwnerReference): boolean => controller === true;
  return [...owners.filter(isController), ...owners.filter((one) => !isController(one))].slice(0, MAX_OWNERS);
}

/** The status of these doesn't show how many pods are wanted where none can be made, or which may be old. */
function countedSpec(object: AnyObject): object | undefined {
  if (!/^(Stateful|Replica|Daemon)Set\.apps$/.test(groupKind(object))) return undefined;
  const { replicas, updateStrategy } = (object.spec ?? {}) as Readonly<Record<string, unknown>>;
  return {
    ...(replicas !== undefined && { replicas }),
    ...(updateStrategy !== undefined && { updateStrategy }),
  };
}

/**
 * Returns the fields of a custom resource's status that a field manager has applied, but for conditions and the generation: what
 * others have written there is left out.
 */
export function rememberedOf(object: AnyObject, manager: string): Readonly<Record<string, unknown>> {
  const [own, others] = [[], []] as [FieldsV1[], FieldsV1[]];
  for (const { manager: name, operation, subresource, fieldsV1 } of managedFieldsOf(object)) {
    const isOwn = name === manager && operation === 'Apply' && subresource === 'status';
    const fields = fieldsV1?.['f:status'];
    if (fields && !isTooDeep(fields)) (isOwn ? own : others).push(fields);
  }
  const part = own[0] ? partOf(object.status, own[0], others) : {};
  const { conditions, observedGeneration, ...remembered } = isMap(part) ? part : {};
  return remembered;
}

/**
 * Returns the part of a value that a set of fields names: of maps what is below, of keyed lists the items with what is below them.
 * @param others sets of other managers: a map that was applied empty is named as a whole, and what they have put into it is theirs
 */
export function partOf(value: unknown, fields: FieldsV1, others: readonly FieldsV1[] = []): unknown {
  const segments = Object.keys(fields).filter((segment) => segment !== '.');
  const below = (segment: string): FieldsV1[] => others.flatMap((other) => other[segment] ?? []);
  if (segments.length === 0) {
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).filter(([name]) => below(`f:${name}`).length === 0));
  }
  if (Array.isArray(value))
    return value.flatMap((item) => {
      const segment = segments.find((one) => isNamed(item, one));
      return segment === undefined ? [] : [partOf(item, fields[segment] ?? {}, below(segment))];
    });
  if (!isMap(value)) return value;
  const part: Record<string, unknown> = {};
  for (const segment of segments) {
    const name = segment.slice(2);
    if (Object.hasOwn(value, name)) part[name] = partOf(value[name], fields[segment] ?? {}, below(segment));
  }
  return part;
}

/** Reports whether a segment of a set of fields names an item of a list. */
function isNamed(item: unknown, segment: string): boolean {
  const named = JSON.parse(segment.slice(2)) as unknown;
  if (!isMap(named)) return item === named;
  return isMap(item) && Object.entries(named).every(([key, value]) => item[key] === value);
}

/** Holds for another copy of this package too: an author's kinds may bring their own. */
const UNREADABLE = Symbol.for('reconstruct.unreadable');

/** Projection of an object that can't be kept as it should be, to what is applied and reported by; `unreadableFor` says why. */
export function keepUnreadable(object: AnyObject, error: OperatorError): AnyObject {
  const status = keepStatus(object);
  const kept = isTooDeep(status) ? keepIdentity(object) : status;
  return Object.defineProperty(kept, UNREADABLE, { value: error });
}

/** Returns why an object, as kept, lacks what it should have; undefined where it lacks nothing. */
export function unreadableFor(object: KubernetesObject): OperatorError | undefined {
  return (object as { readonly [UNREADABLE]?: OperatorError })[UNREADABLE];
}

/** @throws OperatorError why one of them lacks what it should have */
export function requireReadable(objects: readonly KubernetesObject[]): void {
  const unreadable = objects.map(unreadableFor).find(Boolean);
  if (unreadable) throw unreadable;
}

/** Returns whether a child is made of what is rendered now; undefined where its type has no `createOnly`. */
export type IsCurrent = (child: AnyObject) => boolean | undefined;

/** Returns children as their construct reads them: in a fixed order, and without what differs in each cluster or with each write. */
export function observedOf(
  children: readonly AnyObject[],
  isCurrent: IsCurrent = () => undefined,
): readonly AnyObject[] {
  const read = children.map((child): AnyObject => {
    const { metadata, ...rest } = child;
    const { uid, resourceVersion, ownerReferences, annotations = {}, ...identity } = metadata;
    const others = Object.entries(annotations).filter(([name]) => !isOwnAnnotation(name));
    const more = others.length > 0 && { annotations: Object.fromEntries(others) };
    const current = isCurrent(child);
    return deepFreeze({
      ...rest,
      ...(current !== undefined && { isCurrent: current }),
      metadata: { ...identity, ...more },
    });
  });
  return read.sort((a, b) => (objectId(a) < objectId(b) ? -1 : 1));
}

/** Record of the last apply of a child: by it a restart knows that nothing is to be done, and an owner its lost child. */
export interface AppliedRecord {
  /** `contentHash` of what was rendered for it. */
  readonly hash: string;
  /** UID of the custom resource that it was applied for. @default - unknown: applied by a release that didn't record it */
  readonly owner?: string;
  /** That custom resource, where no owner reference names it. @default - an owner reference does */
  readonly of?: RecordedOwner;
  /** Build that it was applied by, and when. @default - unknown: updates weren't held then */
  readonly build?: AppliedBuild;
}

/** Owner of an object that has no owner reference, as where it is in another namespace. */
export interface RecordedOwner {
  /** `groupKind` of its type. */
  readonly groupKind: string;
  readonly key: string;
  /** Whether the object stays once the owner is gone. @default false */
  readonly isKept?: boolean;
}

const KEPT = 'kept';
const BUILD = 'build:';

/** Returns the record in an annotation; undefined where nothing is recorded. Words that later releases add are ignored. */
export function recordOf(
  { metadata }: KubernetesObject,
  annotation = APPLIED_HASH_ANNOTATION,
): AppliedRecord | undefined {
  const words = metadata.annotations?.[annotation]?.split(' ') ?? [];
  const last = words.at(-1)?.startsWith(BUILD) ? words.pop() : undefined;
  const [name, at = ''] = last?.slice(BUILD.length).split('@') ?? [];
  const [hash, owner, groupKind, key, kept] = words;
  if (hash === undefined) return undefined;
  return {
    hash,
    ...(owner && { owner }),
    ...(groupKind && key && { of: { groupKind, key, isKept: kept === KEPT } }),
    ...(name && { build: { name, at: Number(at) } }),
  };
}

/**
 * Returns the UID of the custom resource that an object belongs to: that of its controller, or where nothing controls it the one in
 * its record. Neither proves anything: who may write an object may write both.
 */
export function ownerUidOf(object: KubernetesObject): string | undefined {
  const controller = controllerOf(object);
  if (controller) return controller.uid;
  const record = recordOf(object);
  return record?.of && record.owner;
}

/** Returns the value of the annotation that holds a record. */
export function recordText({ hash, owner, of, build }: AppliedRecord): string {
  const ofOwner = of ? [of.groupKind, of.key, ...(of.isKept ? [KEPT] : [])] : [];
  const ofBuild = build === undefined ? [] : [`${BUILD}${build.name}@${build.at}`];
  return [hash, ...(owner === undefined ? [] : [owner]), ...ofOwner, ...ofBuild].join(' ');
}

/** Returns the entries of `metadata.managedFields`. */
export function managedFieldsOf(object: AnyObject): readonly ManagedFieldsEntry[] {
  const { managedFields } = object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields ?? [];
}

/** Reports whether an entry is what this manager has applied to the object itself. */
export function isAppliedBy(manager: string, entry: ManagedFieldsEntry): boolean {
  return entry.manager === manager && entry.operation === 'Apply' && !entry.subresource;
}

/** Returns what this manager has applied of an object, if anything. */
export function appliedEntry(manager: string, object: AnyObject): ManagedFieldsEntry | undefined {
  return managedFieldsOf(object).find((entry) => isAppliedBy(manager, entry));
}

/** Reports whether this manager has applied an object. */
export function wasAppliedBy(manager: string, object: AnyObject): boolean {
  return appliedEntry(manager, object) !== undefined;
}

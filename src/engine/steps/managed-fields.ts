import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { canonicalJson, isContainer, isTooDeep, MAX_DEPTH } from '../../values/json.js';
import { formatFieldPath } from '../../values/path.js';
import type { Step } from '../../values/path.js';
import type { Drift } from '../../contract/change.js';
import {
  APPLIED_HASH_ANNOTATION,
  holderFor,
  isHashAnnotation,
  statusFieldManager,
} from '../../contract/names.js';
import { controllerOf } from '../../contract/object.js';
import type { AnyObject, FieldsV1, ManagedFieldsEntry } from '../../contract/object.js';
import { isAppliedBy, managedFieldsOf } from '../../values/projections.js';

/** The segments from the root down to a field. */
export type FieldPath = readonly string[];

/** Maximum numbers of entries of an object, and of segments in them, that are walked: every writer may record anything. */
const WALKED = { entries: 50, segments: 20_000 };

/** Maximum number of characters of the entries that are kept with an object: what we own, and once more to name who has changed it. */
export const MAX_KEPT = 65_536;

/** Maximum number of characters of a segment: names have 253, and keys are made of some. */
const MAX_SEGMENT = 4_096;

/**
 * Returns an object without the entries that aren't walked, since they are nested too deeply, or beyond the bounds:
 * for reading, never to be written. Where an entry of ours is among them, the object is applied with every reconcile.
 */
export function withWalkableFields(object: AnyObject, characters = Infinity): AnyObject {
  let left = WALKED.segments;
  let room = characters;
  const all = managedFieldsOf(object);
  const entries: ManagedFieldsEntry[] = [];
  for (const entry of all.slice(0, WALKED.entries)) {
    const { fieldsV1 = {} } = entry;
    const size = sizeOf(fieldsV1);
    // Spelled only once it is known not to be nested too deeply.
    const length = size > left || room === Infinity ? 0 : JSON.stringify(fieldsV1).length;
    if (size > left || length > room) continue;
    left -= size;
    room -= length;
    entries.push(entry);
  }
  if (entries.length === all.length) return object;
  const metadata = { ...object.metadata, managedFields: entries };
  return { ...object, metadata };
}

/** Returns the number of segments; infinite where they, or the key or value that one spells, are nested too deeply. */
function sizeOf(fields: FieldsV1, levels = MAX_DEPTH): number {
  if (levels === 0) return Infinity;
  let size = 0;
  for (const segment of Object.keys(fields)) {
    if (segment.length > MAX_SEGMENT) return Infinity;
    // One that is shorter can't be nested so deeply.
    const mayBeDeep = segment.length > MAX_DEPTH && /^[kv]:/.test(segment);
    if (mayBeDeep && isTooDeep(JSON.parse(segment.slice(2)))) return Infinity;
    size += 1 + sizeOf(fields[segment] as FieldsV1, levels - 1);
  }
  return size;
}

/** Returns the paths of one set that another lacks; a subtree that is missing as a whole is one path. */
function difference(fields: FieldsV1, others: FieldsV1): FieldPath[] {
  return Object.entries(fields).flatMap(([segment, child]) => {
    if (segment === '.') return [];
    const other = others[segment];
    if (!other) return [[segment, ...onlyPath(child)]];
    return difference(child, other).map((path) => [segment, ...path]);
  });
}

/** Descends as long as there is a single child. */
function onlyPath(fields: FieldsV1): FieldPath {
  const [only, ...others] = Object.keys(fields);
  if (only === undefined || only === '.' || others.length > 0) return [];
  return [only, ...onlyPath(fields[only] ?? {})];
}

/** Reports whether a set has something at the path, or owns a list or map as a whole in which the path lies. */
export function touches(fields: FieldsV1, path: FieldPath): boolean {
  let node = fields;
  for (const [depth, segment] of path.entries()) {
    const child = node[segment];
    if (!child) return depth > 0 && isLeaf(node);
    node = child;
  }
  return true;
}

/**
 * Returns a set without what another has too. Of an item of a keyed list that both own, only items in lists below it
 * remain: otherwise a default that the first owns there would keep the item alive when the second drops it.
 * @returns the same set if the two have nothing in common
 */
export function without(fields: FieldsV1, others: FieldsV1): FieldsV1 {
  let left: Record<string, FieldsV1> | undefined;
  for (const [segment, child] of Object.entries(fields)) {
    const other = others[segment];
    if (!other || segment === '.') continue;
    const rest = withoutBelow(segment, child, other);
    if (rest === child) continue;
    left ??= { ...fields };
    if (rest) left[segment] = rest;
    else Reflect.deleteProperty(left, segment);
  }
  return left ?? fields;
}

/** Returns what remains of one child, if anything. */
function withoutBelow(segment: string, child: FieldsV1, other: FieldsV1): FieldsV1 | undefined {
  if (isLeaf(child) && isLeaf(other)) return undefined;
  if (segment.startsWith('k:') && '.' in child && '.' in other) return itemsBelow(child, other);
  const rest = without(child, other);
  // A manager that owns nothing in a map has no interest in the map.
  return rest !== child && isBare(rest) ? undefined : rest;
}

/** Returns the items of lists in a set that another lacks, if any. */
function itemsBelow(fields: FieldsV1, others: FieldsV1): FieldsV1 | undefined {
  const items: Record<string, FieldsV1> = {};
  for (const [segment, child] of Object.entries(fields)) {
    if (segment === '.') continue;
    const other = others[segment];
    const isItem = !segment.startsWith('f:');
    const left = isItem && other ? withoutBelow(segment, child, other) : itemsBelow(child, other ?? {});
    if (isItem && !other) items[segment] = child;
    else if (left) items[segment] = left;
  }
  return isLeaf(items) ? undefined : items;
}

/** Returns the union of two sets. */
export function union(fields: FieldsV1, others: FieldsV1): FieldsV1 {
  const both: Record<string, FieldsV1> = { ...fields };
  for (const [segment, child] of Object.entries(others)) {
    const known = both[segment];
    both[segment] = known ? union(known, child) : child;
  }
  return both;
}

/** Spells a path for people: `.spec.template.spec.containers[name="app"].image`. */
export function describePath(path: FieldPath): string {
  return formatFieldPath(path.map(stepOf));
}

function stepOf(segment: string): Step {
  const value = segment.slice(2);
  if (segment.startsWith('k:')) return JSON.parse(value) as Record<string, unknown>;
  return segment.startsWith('v:') ? { '': JSON.parse(value) as unknown } : value;
}

export function isLeaf(fields: FieldsV1): boolean {
  return Object.keys(fields).length === 0;
}

export function isBare(fields: FieldsV1): boolean {
  return Object.keys(fields).every((name) => name === '.');
}

/**
 * Fields that managers have applied to an object, as JSON, by `ownerKey`; under `OTHERS` those that other writers have set.
 *
 * After an apply, our entry lists exactly the fields that we sent. A writer that changes or removes one of them takes it
 * out of our entry; one that writes other fields, or the same value, leaves it alone. So our entry shows, without a
 * request, whether the last apply still stands.
 */
export type OwnedFields = ReadonlyMap<string, string>;

/** Names an entry: a manager has one per subresource. */
export function ownerKey(manager: string, subresource?: string): string {
  return subresource ? `${manager}/${subresource}` : manager;
}

/** No name of a manager. */
const OTHERS = '';

/** Characters that stand for the name of an object and the UID of its controller, so that objects of one shape are kept alike. */
const [NAME, CONTROLLER] = ['\x7f', '\x80'];
/** Marks a text that is kept compressed. */
const DEFLATED = '~';

/**
 * Maximum number of sets of entries that objects of one shape share, and of the characters of one: nothing that the API server
 * sends may grow without end.
 */
const SHARED_LIMIT = { sets: 2_000, characters: 4_096 };
/** Number of characters of an entry from which it is kept compressed, such as that of a ConfigMap with many keys. */
const COMPRESSED = 4_096;
const shared = new Map<string, OwnedFields>();

/** Returns what is kept of the entries of an object. */
export function ownedFields(object: AnyObject): OwnedFields {
  const owned = new Map<string, string>();
  let others: FieldsV1 = {};
  let isOurs = false;
  const { name } = object.metadata;
  const uid = controllerOf(object)?.uid;
  let room = MAX_KEPT;
  const textOf = (fields: object): string => {
    const named = JSON.stringify(fields).replaceAll(name, NAME);
    const text = uid ? named.replaceAll(uid, CONTROLLER) : named;
    room -= text.length;
    // Shows whether it has changed, and nothing more.
    if (room < 0) return hash('sha1', text, 'base64');
    return text.length < COMPRESSED
      ? text
      : `${DEFLATED}${deflateRawSync(text, { level: 1 }).toString('latin1')}`;
  };
  for (const entry of managedFieldsOf(withWalkableFields(object))) {
    const { manager, operation, subresource, fieldsV1 } = entry;
    if (!manager || !fieldsV1) continue;
    if (operation === 'Apply') owned.set(ownerKey(manager, subresource), textOf(fieldsV1));
    if (subresource) continue;
    if (operation === 'Apply' && isOwnEntry(object, entry)) isOurs = true;
    else others = union(others, fieldsV1);
  }
  if (isOurs && !isLeaf(others)) owned.set(OTHERS, textOf(others));
  const id = [...owned].flat().join();
  if (id.length > SHARED_LIMIT.characters) return owned;
  const known = shared.get(id);
  if (known) return known;
  if (shared.size >= SHARED_LIMIT.sets) shared.clear();
  shared.set(id, owned);
  return owned;
}

/** Returns one of the values of `ownedFields` as it was recorded, where it is kept whole. */
function recorded({ owned, object }: Owned, key: string): FieldsV1 | undefined {
  const uid = controllerOf(object)?.uid ?? '';
  let text = owned.get(key);
  if (text?.startsWith(DEFLATED)) text = inflateRawSync(Buffer.from(text.slice(1), 'latin1')).toString();
  if (!text?.startsWith('{')) return undefined;
  return JSON.parse(text.replaceAll(CONTROLLER, uid).replaceAll(NAME, object.metadata.name)) as FieldsV1;
}

/** An object, and who owns what of it. */
export interface Owned {
  readonly object: AnyObject;
  readonly owned: OwnedFields;
}

/** Reports whether the entry of a manager is what the API server records when exactly this is applied. */
export function stands(known: Owned, key: string, intent: object): boolean {
  const fields = recorded(known, key);
  if (!fields) return false;
  const { status, ...rest } = withoutIdentity(intent);
  // Where the status is a subresource, it is dropped from what is applied to the object itself.
  const applied = 'f:status' in fields ? { ...rest, status } : rest;
  return isRecordOf(fields, applied, recorded(known, OTHERS));
}

/**
 * Reports whether an object has everything that is wanted, by value, where an entry records that. What a map or a keyed list holds
 * beside it belongs to others; a list or map that is owned as a whole has to be the same.
 */
export function holds(known: Owned, key: string, live: object, wanted: object): boolean {
  return holdsValue(recorded(known, key), live, wanted);
}

function holdsValue(fields: FieldsV1 | undefined, live: unknown, wanted: unknown): boolean {
  // Nothing is recorded of an empty list that is merged by its items.
  if (!fields && Array.isArray(wanted) && wanted.length === 0) return true;
  if (!fields || !isContainer(wanted) || !/^[fk]:/.test(lastSegment(fields)))
    return canonicalJson(live ?? null) === canonicalJson(wanted ?? null);
  const [members, others] = [membersOf(wanted, fields), membersOf(live, fields)];
  for (const [segment, child] of Object.entries(fields)) {
    if (segment === '.') continue;
    const key = memberKey(segment, child);
    if (!holdsValue(child, others.get(memberKey(segment)), members.get(key))) return false;
    members.delete(key);
  }
  for (const [key, member] of members) if (!holdsValue(undefined, others.get(key), member)) return false;
  return true;
}

/**
 * Reports whether a set is what the API server records for a value that is applied. The set itself shows how a list or map is
 * merged: a leaf is owned as a whole, and an item of a list stands under its key.
 * @param others what other writers own in its place
 * @see docs/decisions/0004-steady-state.md for the record of empty values
 */
function isRecordOf(fields: FieldsV1 | undefined, value: unknown, others: FieldsV1 | undefined): boolean {
  if (!fields) return vanishes(value, others);
  if (isLeaf(fields)) return true;
  if (!isContainer(value)) return false;
  const members = membersOf(value, fields);
  for (const [segment, child] of Object.entries(fields)) {
    if (segment === '.') continue;
    const key = memberKey(segment, child);
    if (!members.has(key) || !isRecordOf(child, members.get(key), others?.[segment])) return false;
    members.delete(key);
  }
  for (const [key, member] of members) if (!vanishes(member, others?.[key])) return false;
  return true;
}

/**
 * Reports whether nothing is recorded of a value: an empty list that is merged by items, or a map of such; of `{}` and `null`,
 * something always is. One that was applied empty, and that another writer has filled and owns as a whole, isn't recorded any more.
 */
function vanishes(value: unknown, others: FieldsV1 | undefined): boolean {
  if (!isContainer(value) || (others && isLeaf(others))) return false;
  if (Array.isArray(value)) return value.length === 0;
  const members = membersOf(value);
  for (const [key, member] of members) if (!vanishes(member, others?.[key])) return false;
  return members.size > 0;
}

/** Returns the members of a map that are sent, or the items of a list, by their keys; `fields` shows how a list is merged. */
function membersOf(value: unknown, fields: FieldsV1 = {}): Map<string, unknown> {
  const members = new Map<string, unknown>();
  if (Array.isArray(value)) {
    const names = keyNames(lastSegment(fields));
    for (const item of value as unknown[]) members.set(itemKey(item, names), item);
  } else if (isContainer(value)) {
    for (const [name, member] of Object.entries(value))
      if (member !== undefined) members.set(`f:${name}`, member);
  }
  return members;
}

/** Returns the last segment, which is no `.` where there are others: they are sorted. */
function lastSegment(fields: FieldsV1): string {
  return Object.keys(fields).at(-1) ?? '.';
}

/**
 * Returns the key in `membersOf` of what a segment names.
 * @param fields what is owned of the item: a part of the key that isn't was not applied, but is a default of the schema
 */
function memberKey(segment: string, fields: FieldsV1 = {}): string {
  if (segment.startsWith('f:')) return segment;
  return itemKey(JSON.parse(segment.slice(2)), keyNames(segment), fields);
}

/** Returns the names of the fields by which items are merged; nothing where they are the values of a set. */
function keyNames(segment: string): readonly string[] | undefined {
  return segment.startsWith('k:') ? Object.keys(JSON.parse(segment.slice(2)) as object) : undefined;
}

/** Spells the key of an item. Where one is owned as a whole, nothing shows whether an empty part of the key was applied. */
function itemKey(item: unknown, names: readonly string[] | undefined, fields: FieldsV1 = {}): string {
  if (!names) return JSON.stringify(item);
  const parts: unknown[] = [];
  for (const name of names) {
    const part = isLeaf(fields) || `f:${name}` in fields ? memberOf(item, name) : undefined;
    parts.push(part === '' ? undefined : part);
  }
  return JSON.stringify(parts);
}

export function memberOf(item: unknown, name: string): unknown {
  return isContainer(item) && Object.hasOwn(item, name) ? item[name] : undefined;
}

/** Drops what identifies an object, which is never owned. */
function withoutIdentity(intent: object): Readonly<Record<string, unknown>> {
  const { apiVersion, kind, metadata = {}, ...rest } = intent as Record<string, object>;
  const owned: Record<string, unknown> = {};
  for (const name of OWNED_METADATA) if (name in metadata) owned[name] = (metadata as typeof owned)[name];
  return membersOf(owned).size === 0 ? rest : { ...rest, metadata: owned };
}

const OWNED_METADATA = ['labels', 'annotations', 'ownerReferences', 'finalizers', 'generateName'];

/** Reports whether an entry is one of ours: it holds our record of what was applied, or is the status of a custom resource. */
function isOwnEntry(
  { kind }: AnyObject,
  { manager = '', subresource, fieldsV1 }: ManagedFieldsEntry,
): boolean {
  if (subresource) return subresource === 'status' && manager === statusFieldManager(kind);
  for (const segment of Object.keys(fieldsV1?.['f:metadata']?.['f:annotations'] ?? {}))
    if (isHashAnnotation(segment.slice(2))) return true;
  return false;
}

/** Maximum number of entries of ours on one object that leftovers are worked out for. */
const MAX_OURS = 5;
const FIELDS_NAMED = 10;

/**
 * Returns who had taken which fields from a manager, judged by what it got back.
 * @param before the entries when the manager's fields were gone
 * @param corrected the object after the manager has applied again
 */
export function driftOf(before: readonly ManagedFieldsEntry[], corrected: AnyObject, manager: string): Drift {
  const isOwn = (entry: ManagedFieldsEntry): boolean => isAppliedBy(manager, entry);
  const had = before.find(isOwn)?.fieldsV1 ?? {};
  const has = managedFieldsOf(corrected).find(isOwn)?.fieldsV1 ?? {};
  const paths = difference(has, had);
  const managers = before
    .filter((entry) => !isOwn(entry) && paths.some((path) => touches(entry.fieldsV1 ?? {}, path)))
    .map((entry) => entry.manager ?? '');
  return {
    managers: [...new Set(managers)].sort(),
    fields: paths.slice(0, FIELDS_NAMED).map(describePath),
  };
}

/**
 * Reports whether what we applied to an object was changed by others, or still is. It counts as ours where the hash is
 * another one: then another process of ours has applied something else.
 */
export function hasDrifted(before: Owned & { readonly drifted?: unknown }, after: Owned): boolean {
  if (before.object.metadata.uid !== after.object.metadata.uid) return false;
  const [hashBefore, hashAfter] = [appliedHash(before), appliedHash(after)];
  // A hash that is gone was removed by another writer.
  if (hashAfter !== hashBefore && hashAfter !== undefined) return false;
  if (hashBefore === undefined) return false;
  if (before.drifted) return true;
  for (const [owner, fields] of before.owned)
    if (owner !== OTHERS && after.owned.get(owner) !== fields) return true;
  return false;
}

/** Returns the hashes of all of our managers that share the object; nothing where there are none. */
function appliedHash({ object }: Owned): string | undefined {
  const { annotations = {} } = object.metadata;
  let hashes = '';
  for (const name of Object.keys(annotations).sort())
    if (isHashAnnotation(name)) hashes += `${name} ${annotations[name]},`;
  return hashes || undefined;
}

/**
 * Managers that write once, on behalf of a person or of a chart, and then own what they wrote forever:
 *
 * - `kubectl` is `kubectl apply --server-side`; every other command adds its name, as in `kubectl-client-side-apply`,
 *   `kubectl-create` and `kubectl-edit`.
 *   https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/kubectl/pkg/cmd/apply/apply.go
 * - `helm` is that program's name, from which the API server derives the manager; Helm 2 was `Helm`.
 *   https://github.com/helm/helm/blob/main/pkg/kube/client.go
 * - `before-first-apply` owns what was there when nothing was recorded about its owners.
 *   https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/skipnonapplied.go
 */
const LEGACY_MANAGERS: readonly string[] = ['kubectl', 'helm', 'Helm', 'before-first-apply'];

/** Every command of kubectl but `apply --server-side` has a manager of its own. */
const KUBECTL_COMMAND = 'kubectl-';

/** Reports whether an entry is the leftover of a command, as far as it concerns the object itself. */
export function isLegacy({ manager = '', subresource }: ManagedFieldsEntry): boolean {
  return !subresource && (LEGACY_MANAGERS.includes(manager) || manager.startsWith(KUBECTL_COMMAND));
}

/** Reports whether an entry is a leftover, as seen by the manager that applies the same fields. */
export type IsLeftOver = (entry: ManagedFieldsEntry, manager: string) => boolean;

/**
 * Reports whether an entry is a leftover of a command, or of an autoscaler: of the manager that held the replicas for it, or of
 * its writes through `/scale`. The second counts only once a manager has taken the field back: until then, the entry keeps the value.
 */
export const isLeftOver: IsLeftOver = (entry, own) => {
  if (isLegacy(entry)) return true;
  const { manager, operation, subresource } = entry;
  const holder = holderFor(own);
  return holder !== undefined && (subresource === 'scale' || (operation === 'Apply' && manager === holder));
};

/**
 * Returns the managers whose applied fields a leftover owns too, and whether one of a command does: those fields would stay when
 * they are dropped. Looks only at objects that carry our hash, so that it costs nothing elsewhere.
 */
export function sharedWithLeftovers(object: AnyObject): ReadonlyMap<string, boolean> | undefined {
  if (object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === undefined) return undefined;
  const sharing = new Map<string, boolean>();
  let ours = 0;
  for (const entry of managedFieldsOf(object)) {
    const { manager = '', operation, subresource } = entry;
    if (operation !== 'Apply' || subresource || isLegacy(entry) || !isOwnEntry(object, entry)) continue;
    if (withoutOwners(isLeftOver, object, manager))
      sharing.set(manager, withoutOwners(isLegacy, object, manager) !== undefined);
    if (++ours === MAX_OURS) break;
  }
  return sharing.size > 0 ? sharing : undefined;
}

/** Returns the entries of an object when no leftover owns what this manager has applied; nothing if that is so already. */
export function withoutOwners(
  isTaken: IsLeftOver,
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const entries = managedFieldsOf(object);
  // Nothing is taken where some entries aren't walked.
  if (!entries.some((entry) => isTaken(entry, manager)) || withWalkableFields(object) !== object)
    return undefined;
  const own = entries.find((entry) => isAppliedBy(manager, entry))?.fieldsV1 ?? {};
  const left = entries.map((entry) => {
    const { fieldsV1 = {} } = entry;
    const rest = isTaken(entry, manager) ? without(fieldsV1, own) : fieldsV1;
    return rest === fieldsV1 ? entry : { ...entry, fieldsV1: rest };
  });
  return left.every((entry, n) => entry === entries[n]) ? undefined : dropEmpty(left);
}

export function dropEmpty(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.filter(({ fieldsV1 = {} }) => !isLeaf(fieldsV1));
}

/** Returns the segment that names an item of a list with these keys. */
export function segmentOf(item: unknown, names: readonly string[]): string {
  return `k:${canonicalJson(Object.fromEntries(names.map((name) => [name, memberOf(item, name)])))}`;
}

/** Returns the value of a field. */
export function fieldAt(object: unknown, path: FieldPath): unknown {
  return path.reduce((at, segment) => {
    return segment.startsWith('k:') ? itemOf(at, segment) : memberOf(at, segment.slice(2));
  }, object);
}

/** Returns the item that a segment such as `k:{"name":"web"}` names. */
export function itemOf(list: unknown, segment: string): unknown {
  if (!Array.isArray(list)) return undefined;
  const keys = Object.entries(JSON.parse(segment.slice(2)) as Record<string, unknown>);
  return list.find((item: unknown) => keys.every(([name, key]) => memberOf(item, name) === key));
}

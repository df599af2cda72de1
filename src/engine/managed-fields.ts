import { hash } from 'node:crypto';
import { canonicalJson } from '../contract/object.js';
import type { Drift } from '../contract/change.js';
import { APPLIED_HASH_ANNOTATION, holderFor, isHashAnnotation } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';

/**
 * Set of fields as the API server records it in `metadata.managedFields`: a tree of `f:<field>`, `k:<list keys>` and
 * `v:<set value>`, with an empty object at each leaf. A `.` stands for the list item or map itself.
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
export type FieldsV1 = { readonly [segment: string]: FieldsV1 };

/** `metav1.ManagedFieldsEntry`: what one manager owns by one operation. */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly time?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: FieldsV1;
  readonly subresource?: string;
}

/** The segments from the root down to a field. */
export type FieldPath = readonly string[];

/** Returns the entries of an object. */
export function managedFieldsOf(object: AnyObject): readonly ManagedFieldsEntry[] {
  const { managedFields } = object.metadata as { readonly managedFields?: readonly ManagedFieldsEntry[] };
  return managedFields ?? [];
}

/** Reports whether an entry is what this manager has applied to the object itself. */
export function isAppliedBy(manager: string, entry: ManagedFieldsEntry): boolean {
  return entry.manager === manager && entry.operation === 'Apply' && !entry.subresource;
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
function touches(fields: FieldsV1, path: FieldPath): boolean {
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

/** Returns a set without the path and all below it. */
function withoutSubtree(fields: FieldsV1, [segment = '', ...rest]: FieldPath): FieldsV1 {
  const { [segment]: child, ...others } = fields;
  if (!child) return fields;
  const left = rest.length === 0 ? undefined : withoutSubtree(child, rest);
  if (left === child) return fields;
  return !left || isBare(left) ? others : { ...others, [segment]: left };
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
  return path.map(describeSegment).join('');
}

function describeSegment(segment: string): string {
  const value = segment.slice(2);
  if (segment.startsWith('k:')) {
    const keys = Object.entries(JSON.parse(value) as Record<string, unknown>);
    return `[${keys.map(([name, key]) => `${name}=${JSON.stringify(key)}`).join(',')}]`;
  }
  if (segment.startsWith('v:')) return `[${value}]`;
  return /^[\w-]+$/.test(value) ? `.${value}` : `[${JSON.stringify(value)}]`;
}

function isLeaf(fields: FieldsV1): boolean {
  return Object.keys(fields).length === 0;
}

function isBare(fields: FieldsV1): boolean {
  return Object.keys(fields).every((name) => name === '.');
}

/**
 * One digest of owned paths per applying manager; see `ownerKey`.
 *
 * After an apply, our entry lists exactly the fields that we sent. A writer that changes or removes one of them takes it
 * out of our entry; one that writes other fields, or the same value, leaves it alone. So the set of paths in our entry
 * shows, without a request, whether the last apply still stands.
 */
export type OwnedPaths = ReadonlyMap<string, string>;

/** Names an entry: a manager has one per subresource. */
export function ownerKey(manager: string, subresource?: string): string {
  return subresource ? `${manager}/${subresource}` : manager;
}

/** How one list or map is merged, learned from the entries of live objects. */
type Merge = MapList | { readonly kind: 'set' | 'struct' | 'atomic' };

interface MapList {
  readonly kind: 'map-list';
  readonly keys: readonly string[];
  /** Defaults of the schema for keys that an item is applied without, as far as seen. */
  readonly defaults: Map<string, unknown>;
}

/**
 * Digests of owned paths: of what the server recorded, and of what it would record for an intent. The second takes to
 * know which lists are merged by which keys. That isn't in the object, but in every recorded entry of the same type, so
 * it is learned from those. What hasn't been learned yet gives a digest that matches nothing, hence one apply, whose
 * answer teaches it.
 *
 * **Caveats.** Names in a map of objects are paths too, and there is no end of them; so no more is learned after 10,000
 * paths. What hasn't been learned by then costs one apply per object and intent after each start.
 *
 * One instance serves one type of object.
 */
export class FieldPaths {
  private readonly merges = new Map<string, Merge>();
  /** Objects of one shape are owned alike, and share the digests. */
  private readonly shared = new Map<string, OwnedPaths>();
  /** Where the status is a subresource, it is dropped from what is applied to the object itself. */
  private hasPlainStatus = false;

  /** Number of paths whose way of merging is known. */
  get size(): number {
    return this.merges.size;
  }

  /** Returns the digests of all applied entries; learns from each, and from those of other writers. */
  owned(object: AnyObject): OwnedPaths {
    const digests = new Map<string, string>();
    for (const { manager, operation, subresource, fieldsV1 } of managedFieldsOf(object)) {
      if (!manager || !fieldsV1 || (operation !== 'Apply' && subresource)) continue;
      if (!subresource) this.hasPlainStatus ||= 'f:status' in fieldsV1;
      const bare: string[] = [];
      const canonical = this.recorded(fieldsV1, ROOT, object, bare);
      if (operation === 'Apply')
        digests.set(ownerKey(manager, subresource), digest(canonical) + bare.map(mark).join(''));
    }
    return this.share(digests);
  }

  private share(digests: OwnedPaths): OwnedPaths {
    const id = [...digests].flat().join();
    const known = this.shared.get(id);
    if (known) return known;
    // Shapes are few, but nothing that the API server sends may grow without end.
    if (this.shared.size >= SHARED_LIMIT) this.shared.clear();
    this.shared.set(id, digests);
    return digests;
  }

  /**
   * Returns the digest that our entry will have when exactly this was applied. An empty list is recorded where it is
   * owned as a whole, and not where it is merged by items. Until an entry shows which it is, both are accepted.
   * @param owned the digest that our entry has
   */
  expected(intent: object, owned = '', subresource?: 'status'): string {
    const { status, ...rest } = withoutIdentity(intent);
    const marks = owned.slice(DIGEST_LENGTH);
    const applied = subresource || this.hasPlainStatus ? { ...rest, status } : rest;
    return digest(this.intended(applied, ROOT, marks) ?? LEAF) + marks;
  }

  /**
   * Reports whether an object has everything that is wanted, by value. What a map or a keyed list holds beside it
   * belongs to others; a list or map that is owned as a whole has to be the same.
   */
  holds(live: unknown, wanted: unknown, path = ''): boolean {
    const merge = this.merges.get(path);
    if (isWhole(merge) || merge.kind === 'set' || typeof wanted !== 'object' || wanted === null)
      return canonicalJson(live ?? null) === canonicalJson(wanted ?? null);
    if (typeof live !== 'object' || live === null) return false;
    if (merge.kind === 'map-list') return this.holdsItems(live, wanted, merge, path);
    return Object.entries(wanted).every(
      ([name, value]) => value === undefined || this.holds(memberOf(live, name), value, `${path}.${name}`),
    );
  }

  private holdsItems(live: object, wanted: object, merge: MapList, path: string): boolean {
    if (!Array.isArray(live) || !Array.isArray(wanted)) return false;
    return wanted.every((item: unknown) =>
      live.some((other: unknown) => sameKeys(item, other, merge) && this.holds(other, item, `${path}[]`)),
    );
  }

  /**
   * Returns the entry in canonical form: keys sorted, list keys spelled as here, without the marks for the items themselves.
   * @param live the object that has it
   * @param bare receives the leaves with nothing in them
   */
  private recorded(fields: FieldsV1, place: Place, live: unknown, bare: string[]): string {
    const segments: string[] = [];
    const itemOf = itemsByKey(live);
    for (const [segment, child] of Object.entries(fields)) {
      if (segment === '.') continue;
      this.learn(place.path, segment);
      const value = segment.slice(2);
      const isField = segment.startsWith('f:');
      const key: unknown = isField ? value : JSON.parse(value);
      const canonical = isField ? segment : segment.slice(0, 2) + this.appliedKey(place.path, key, child);
      const inside = isField ? memberOf(live, value) : itemOf(key);
      const next = below(place, canonical);
      if (isField && isLeaf(child)) this.learnLeaf(next, inside, bare);
      segments.push(canonical + this.recorded(child, next, inside, bare));
    }
    return node(segments);
  }

  /** A leaf with something in it is owned as a whole; one with nothing in it may be anything. */
  private learnLeaf({ path, at }: Place, live: unknown, bare: string[]): void {
    const isEmpty = typeof live === 'object' ? Object.keys(live ?? {}).length === 0 : live === undefined;
    if (isEmpty) bare.push(at);
    if (!Array.isArray(live) && (isEmpty || typeof live !== 'object')) return;
    if (!this.merges.has(path) && this.merges.size < MERGES_LIMIT) this.merges.set(path, { kind: 'atomic' });
  }

  /** Returns a list key in canonical form; learns what the schema's default has added. */
  private appliedKey(path: string, key: unknown, fields: FieldsV1): string {
    const applied = appliedKey(key, fields);
    const merge = this.merges.get(path);
    if (merge?.kind !== 'map-list') return canonicalJson(applied);
    for (const name of merge.keys.filter((one) => memberOf(applied, one) === undefined))
      merge.defaults.set(name, memberOf(key, name));
    return canonicalKey(applied as object);
  }

  private learn(path: string, segment: string): void {
    const known = this.merges.get(path);
    if (!known && this.merges.size >= MERGES_LIMIT) return;
    if (segment.startsWith('k:')) {
      if (known?.kind !== 'map-list') {
        const keys = Object.keys(JSON.parse(segment.slice(2)) as object);
        this.merges.set(path, { kind: 'map-list', keys, defaults: new Map() });
      }
    } else if (isWhole(known)) {
      // A leaf that was applied as `{}` or `null`, and that others have put something in, isn't owned as a whole.
      this.merges.set(path, { kind: segment.startsWith('v:') ? 'set' : 'struct' });
    }
  }

  /** Returns nothing where nothing is recorded. */
  private intended(value: unknown, place: Place, marks: string): string | undefined {
    const merge = this.merges.get(place.path);
    if (isWhole(merge)) {
      const isSure = merge !== undefined || this.merges.size >= MERGES_LIMIT || !vanishes(value);
      return isSure || marks.includes(mark(place.at)) ? LEAF : undefined;
    }
    if (Array.isArray(value)) return this.intendedList(value, merge, place, marks);
    const members = typeof value === 'object' && value !== null ? membersOf(value) : [];
    if (members.length === 0) return LEAF;
    const segments = members.flatMap(([name, child]) => {
      const inside = this.intended(child, below(place, `f:${name}`), marks);
      return inside === undefined ? [] : `f:${name}${inside}`;
    });
    return segments.length === 0 ? undefined : node(segments);
  }

  private intendedList(items: readonly unknown[], merge: Merge, place: Place, marks: string) {
    if (items.length === 0) return undefined;
    if (merge.kind === 'set') return node(items.map((item) => `v:${canonicalJson(item)}`));
    if (merge.kind !== 'map-list') return LEAF;
    return node(
      items.map((item) => {
        const key = Object.fromEntries(merge.keys.map((name) => [name, memberOf(item, name)]));
        const segment = `k:${canonicalKey(key)}`;
        return segment + (this.intended(item, below(place, segment), marks) ?? LEAF);
      }),
    );
  }
}

/** Where in an object: in all of its type alike, and in this one, with the keys of list items. */
interface Place {
  readonly path: string;
  readonly at: string;
}

const ROOT: Place = { path: '', at: '' };

function below({ path, at }: Place, segment: string): Place {
  return {
    path: segment.startsWith('f:') ? `${path}.${segment.slice(2)}` : `${path}[]`,
    at: `${at}/${segment}`,
  };
}

/**
 * Returns a list key as it was applied: what the schema's default has added to it isn't owned.
 * @param key also the item of a set
 */
function appliedKey(key: unknown, fields: FieldsV1): unknown {
  const owned = Object.keys(fields);
  if (typeof key !== 'object' || key === null || owned.length === 0) return key;
  return Object.fromEntries(Object.entries(key).filter(([name]) => owned.includes(`f:${name}`)));
}

/** Drops what is empty: of an item that is owned as a whole, nothing shows whether that was applied. */
function canonicalKey(key: object): string {
  return canonicalJson(Object.fromEntries(Object.entries(key).filter(([, value]) => value !== '')));
}

/** Finds the item of a list by the key under which it is recorded. */
function itemsByKey(list: unknown): (key: unknown) => unknown {
  let items: Map<string, unknown> | undefined;
  return (key) => {
    if (!Array.isArray(list) || typeof key !== 'object' || key === null) return undefined;
    const names = Object.keys(key).sort();
    const idOf = (item: unknown): string => canonicalJson(names.map((name) => memberOf(item, name)));
    items ??= new Map(list.map((item) => [idOf(item), item]));
    return items.get(idOf(key));
  };
}

/** Reports whether a list or map is owned as a whole, or not known to be anything else. */
function isWhole(merge: Merge | undefined): merge is undefined | { readonly kind: 'atomic' } {
  return !merge || merge.kind === 'atomic';
}

/** Reports whether nothing may be recorded of a value: of `{}` and `null`, something always is. */
function vanishes(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== 'object' || value === null) return false;
  const members = membersOf(value);
  return members.length > 0 && members.every(([, member]) => vanishes(member));
}

/** Returns the members that are sent. */
function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => member !== undefined);
}

/** Reports whether two items have the same keys, also where a key is left to the default. */
function sameKeys(a: unknown, b: unknown, { keys, defaults }: MapList): boolean {
  const keyOf = (item: unknown, name: string): unknown => memberOf(item, name) ?? defaults.get(name);
  return keys.every((key) => keyOf(a, key) === keyOf(b, key));
}

function memberOf(item: unknown, name: string): unknown {
  return typeof item === 'object' && item !== null ? (item as Record<string, unknown>)[name] : undefined;
}

const LEAF = '';
const DIGEST_LENGTH = 16;
const SHARED_LIMIT = 10_000;
const MERGES_LIMIT = 10_000;

function node(segments: string[]): string {
  return segments.length === 0 ? LEAF : `{${segments.sort().join(',')}}`;
}

/** 96 bits tell two path sets of one object apart. */
function digest(canonical: string): string {
  return hash('sha1', canonical, 'base64').slice(0, DIGEST_LENGTH);
}

/** Appended to a digest: a leaf with nothing in it. */
function mark(at: string): string {
  return `.${hash('sha1', at, 'base64').slice(0, 8)}`;
}

/** What identifies an object is never owned. */
function withoutIdentity(intent: object): Readonly<Record<string, unknown>> {
  const { apiVersion, kind, metadata, ...rest } = intent as Record<string, unknown>;
  const { labels, annotations, ownerReferences, finalizers, generateName } = (metadata ?? {}) as Record<
    string,
    unknown
  >;
  const owned = membersOf({ labels, annotations, ownerReferences, finalizers, generateName });
  return owned.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(owned) };
}

const FIELDS_TOLD = 10;

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
    fields: paths.slice(0, FIELDS_TOLD).map(describePath),
  };
}

/** An object as kept, with the digests of what is owned. */
interface Owned {
  readonly object: AnyObject;
  readonly owned: OwnedPaths;
  readonly drifted?: readonly ManagedFieldsEntry[];
}

/**
 * Reports whether what we applied to an object was changed by others, or still is. It counts as ours where the hash is
 * another one: then another process of ours has applied something else.
 */
export function hasDrifted(before: Owned, after: Owned): boolean {
  if (before.object.metadata.uid !== after.object.metadata.uid) return false;
  const [hashBefore, hashAfter] = [appliedHash(before), appliedHash(after)];
  // A hash that is gone was removed by another writer.
  if (hashAfter !== hashBefore && hashAfter !== undefined) return false;
  if (hashBefore === undefined) return false;
  if (before.drifted) return true;
  for (const [owner, paths] of before.owned) if (after.owned.get(owner) !== paths) return true;
  return false;
}

/** Returns the hashes of all of our managers that share the object. */
function appliedHash({ object }: Owned): string | undefined {
  const { annotations = {} } = object.metadata;
  const ours = Object.keys(annotations).filter(isHashAnnotation).sort();
  return ours.length === 0 ? undefined : ours.flatMap((name) => [name, annotations[name]]).join();
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
 * Reports whether an entry is left over from an autoscaler: of the manager that held the replicas for it, or of its
 * writes through `/scale`. Counts only once a manager has taken the field back: until then, the entry keeps the value.
 */
export const isHeld: IsLeftOver = ({ manager, operation, subresource }, own) => {
  const holder = holderFor(own);
  return holder !== undefined && (subresource === 'scale' || (operation === 'Apply' && manager === holder));
};

/**
 * Returns the managers whose applied fields a leftover owns too: those fields would stay when they are dropped. Looks only
 * at objects that carry our hash, so that it costs nothing elsewhere.
 */
export function sharedWith(isLeftOver: IsLeftOver, object: AnyObject): readonly string[] | undefined {
  if (object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === undefined) return undefined;
  const sharing = managedFieldsOf(object).filter(
    (entry) =>
      entry.operation === 'Apply' &&
      !isLegacy(entry) &&
      !entry.subresource &&
      withoutOwners(isLeftOver, object, entry.manager ?? '') !== undefined,
  );
  return sharing.length === 0 ? undefined : sharing.map(({ manager = '' }) => manager);
}

/** Returns the entries of an object when no leftover owns what this manager has applied; nothing if that is so already. */
export function withoutOwners(
  isLeftOver: IsLeftOver,
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const entries = managedFieldsOf(object);
  if (!entries.some((entry) => isLeftOver(entry, manager))) return undefined;
  const own = entries.find((entry) => isAppliedBy(manager, entry))?.fieldsV1 ?? {};
  const left = entries.map((entry) => {
    const { fieldsV1 = {} } = entry;
    const rest = isLeftOver(entry, manager) ? without(fieldsV1, own) : fieldsV1;
    return rest === fieldsV1 ? entry : { ...entry, fieldsV1: rest };
  });
  return left.every((entry, n) => entry === entries[n]) ? undefined : dropEmpty(left);
}

/**
 * Returns the entries of an object when this manager alone owns some items of lists, so that its next apply removes those
 * that it doesn't name. Taken from legacy managers and from writers that don't apply.
 */
export function withItemsTaken(
  object: AnyObject,
  manager: string,
  items: readonly FieldPath[],
): ManagedFieldsEntry[] {
  const others = managedFieldsOf(object).map((entry) => {
    if (!isLegacy(entry) && (entry.operation !== 'Update' || entry.subresource)) return entry;
    return { ...entry, fieldsV1: items.reduce(withoutSubtree, entry.fieldsV1 ?? {}) };
  });
  const own = others.find((entry) => isAppliedBy(manager, entry)) ?? {
    ...{ manager, operation: 'Apply', apiVersion: object.apiVersion, fieldsType: 'FieldsV1' },
  };
  const taken = items.reduce<FieldsV1>(
    (set, path) =>
      union(
        set,
        path.reduceRight<FieldsV1>((inner, segment) => ({ [segment]: inner }), { '.': {} }),
      ),
    own.fieldsV1 ?? {},
  );
  return dropEmpty([...others.filter((entry) => entry !== own), { ...own, fieldsV1: taken }]);
}

/** Returns the entries of an object when what this manager applied is recorded in the version that it applies now. */
export function withApiVersion(object: AnyObject, manager: string, apiVersion: string): ManagedFieldsEntry[] {
  return managedFieldsOf(object).map((entry) =>
    isAppliedBy(manager, entry) ? { ...entry, apiVersion } : entry,
  );
}

function dropEmpty(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.filter(({ fieldsV1 = {} }) => !isLeaf(fieldsV1));
}

/**
 * Returns the items of a keyed list that keep an intent from being stored, because they have a value that one of its own
 * items has: those that the intent doesn't name itself. In lists of lists, only those below items that it does name.
 * @param field as the API server names it, e.g. `spec.ports[1].name`
 */
export function itemsInTheWay(
  live: AnyObject,
  intent: AnyObject,
  field: string,
  value: unknown,
): FieldPath[] {
  const sets = managedFieldsOf(live).map(({ fieldsV1 = {} }) => fieldsV1);
  return search(field.replaceAll(/\[\d+\]/g, '.[]').split('.'), value, live, intent, sets);
}

/** @param names of fields from here on, with `[]` for an item of a list; the last is the field with the value */
function search(
  [name, ...names]: readonly string[],
  value: unknown,
  live: unknown,
  intent: unknown,
  sets: readonly FieldsV1[],
): FieldPath[] {
  if (name === undefined) return [];
  if (name !== '[]') {
    const inside = sets.flatMap((set) => set[`f:${name}`] ?? []);
    if (inside.length === 0) return [];
    const found = search(names, value, memberOf(live, name), memberOf(intent, name), inside);
    return found.map((path) => [`f:${name}`, ...path]);
  }
  const segments = new Set(sets.flatMap((set) => Object.keys(set)).filter((key) => key.startsWith('k:')));
  return [...segments].flatMap((segment) => {
    const [item, wanted] = [itemOf(live, segment), itemOf(intent, segment)];
    if (names.length === 1)
      return wanted === undefined && memberOf(item, names[0] ?? '') === value ? [[segment]] : [];
    if (wanted === undefined) return [];
    const inside = sets.flatMap((set) => set[segment] ?? []);
    return search(names, value, item, wanted, inside).map((path) => [segment, ...path]);
  });
}

/** Returns the item that a segment such as `k:{"name":"web"}` names. */
function itemOf(list: unknown, segment: string): unknown {
  if (!Array.isArray(list)) return undefined;
  const keys = Object.entries(JSON.parse(segment.slice(2)) as Record<string, unknown>);
  return list.find((item: unknown) => keys.every(([name, key]) => memberOf(item, name) === key));
}

import { hash } from 'node:crypto';
import { canonicalJson, isContainer, isTooDeep, MAX_DEPTH, sorted } from '../../values/json.js';
import { formatFieldPath } from '../../values/path.js';
import type { Step } from '../../values/path.js';
import type { Drift } from '../../contract/change.js';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  holderFor,
  isHashAnnotation,
  statusFieldManager,
} from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';

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

/** Maximum numbers of entries of an object, and of segments in them, that are walked: every writer may record anything. */
const WALKED = { entries: 50, segments: 20_000 };

/** Maximum number of characters of the entries that are kept with an object, to name who has changed it. */
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
  const entries = all.slice(0, WALKED.entries).filter(({ fieldsV1 = {} }) => {
    const size = sizeOf(fieldsV1);
    // Spelled only once it is known not to be nested too deeply.
    const length = size > left || room === Infinity ? 0 : JSON.stringify(fieldsV1).length;
    if (size > left || length > room) return false;
    left -= size;
    room -= length;
    return true;
  });
  if (entries.length === all.length) return object;
  const metadata = { ...object.metadata, managedFields: entries };
  return { ...object, metadata };
}

/** Returns the number of segments; infinite where they, or the key or value that one spells, are nested too deeply. */
function sizeOf(fields: FieldsV1, levels = MAX_DEPTH): number {
  if (levels === 0) return Infinity;
  let size = 0;
  for (const [segment, child] of Object.entries(fields)) {
    if (segment.length > MAX_SEGMENT) return Infinity;
    // One that is shorter can't be nested so deeply.
    const mayBeDeep = segment.length > MAX_DEPTH && /^[kv]:/.test(segment);
    if (mayBeDeep && isTooDeep(JSON.parse(segment.slice(2)))) return Infinity;
    size += 1 + sizeOf(child, levels - 1);
  }
  return size;
}

/** Reports whether an entry is what this manager has applied to the object itself. */
export function isAppliedBy(manager: string, entry: ManagedFieldsEntry): boolean {
  return entry.manager === manager && entry.operation === 'Apply' && !entry.subresource;
}

/** Reports whether this manager has applied an object. */
export function wasAppliedBy(manager: string, object: AnyObject): boolean {
  return managedFieldsOf(object).some((entry) => isAppliedBy(manager, entry));
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

function isBare(fields: FieldsV1): boolean {
  return Object.keys(fields).every((name) => name === '.');
}

/**
 * Digests of owned paths by applying manager; see `ownerKey`.
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

/**
 * Merge strategy of a list or map of one type, as far as live objects have shown it, and those below it: fields by name, items
 * of a list under `ITEM`.
 */
class Shape {
  /** A `struct` is merged by fields, a `map-list` by the keys of its items, a `set` by their values. */
  kind: 'unknown' | 'atomic' | 'struct' | 'map-list' | 'set' = 'unknown';
  /** Whether an answer to an apply of ours has shown it: then nothing that is recorded on other objects counts. */
  isSure = false;
  /** Number of entries by which it leads over those that show something else; a forged one counts as one. */
  lead = 0;
  keys: readonly string[] = [];
  /** Defaults of the schema for keys that an item is applied without. */
  readonly defaults = new Map<string, unknown>();
  readonly below = new Map<string, Shape>();

  /** Whether it is owned as a whole, or not known to be anything else. */
  get isWhole(): boolean {
    return this.kind === 'unknown' || this.kind === 'atomic';
  }
}

/** Walk over one entry. */
interface Reading {
  /** Writer of the entry: one of our managers on an object of ours, as listed or in the answer to our apply; or another one. */
  readonly of: 'ours' | 'answer' | 'others';
  /** Segments down to here. */
  readonly at: string[];
  /** Paths of leaves, some of them: of ours those with nothing in them, of others those that are owned as a whole. */
  readonly leaves: string[];
  /** Items of the live lists by the keys that name them, for all entries of the object. */
  readonly lists: Map<readonly unknown[], Map<string, ReadonlyMap<string, unknown>>>;
}

/** No name of a field. */
const ITEM = '[]';
const UNKNOWN: Shape = new Shape();

/**
 * Digests of owned paths: of what the server recorded, and of what it would record for an intent. The second takes to
 * know which lists are merged by which keys. That isn't in the object, but in every recorded entry of the same type, so
 * it is learned from those of our managers on objects of ours. What hasn't been learned yet gives a digest that matches nothing,
 * hence one apply, whose answer teaches it: that counts over what is recorded on other objects, since their writers may record
 * anything.
 *
 * **Caveats.** Names in a map of objects are paths too, and there is no end of them; so no more is learned after 10,000
 * paths, and from answers after 20,000. What hasn't been learned by then costs one apply per object and intent after each start.
 *
 * One instance serves one type of object.
 */
export class FieldPaths {
  private readonly root = new Shape();
  /** Objects of one shape are owned alike, and share the digests. */
  private readonly shared = new Map<string, OwnedPaths>();
  /** Whether the status is no subresource: one is dropped from what is applied to the object itself. */
  private hasPlainStatus = false;
  /** Number of paths of which something may be known. */
  private known = 0;

  /**
   * Returns the digests of all applied entries; learns from those of ours. Beside them stands which lists and maps other writers
   * own as a whole: one that we have applied empty, and that is filled now, isn't in our entry any more.
   */
  owned(object: AnyObject): OwnedPaths {
    const digests = new Map<string, string>();
    const ours: string[] = [];
    const filled: string[] = [];
    const lists: Reading['lists'] = new Map();
    let left = MAX_MARKS;
    for (const entry of managedFieldsOf(object)) {
      const { manager, operation, subresource, fieldsV1 } = entry;
      if (!manager || !fieldsV1 || (operation !== 'Apply' && subresource)) continue;
      const isOurs = operation === 'Apply' && isOwnEntry(object, entry);
      if (isOurs && !subresource) this.hasPlainStatus ||= 'f:status' in fieldsV1;
      const reading: Reading = { of: isOurs ? 'ours' : 'others', at: [], leaves: [], lists };
      const canonical = this.recorded(fieldsV1, isOurs ? this.root : UNKNOWN, object, reading);
      const key = ownerKey(manager, subresource);
      const bare = isOurs ? reading.leaves.slice(0, left) : [];
      left -= bare.length;
      if (operation === 'Apply') digests.set(key, digest(canonical) + bare.map((at) => mark(at)).join(''));
      if (isOurs && !subresource) ours.push(key);
      else if (!subresource) filled.push(...reading.leaves.map((at) => mark(at, FILLED)));
    }
    if (filled.length > 0)
      for (const key of ours.slice(0, MAX_OURS))
        digests.set(key, (digests.get(key) ?? '') + filled.slice(0, MAX_MARKS).join(''));
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
    return digest(this.intended(applied, this.root, marks, []) ?? LEAF) + marks;
  }

  /**
   * Returns the digest that our entry has to have from now on, after an apply of exactly this. Where the API server recorded
   * something else, it learns from that first.
   * @param answer object that the apply returned
   */
  expectedAfter(
    answer: AnyObject,
    manager: string,
    intent: object,
    owned = '',
    subresource?: 'status',
  ): string {
    const expected = this.expected(intent, owned, subresource);
    if (expected === owned) return expected;
    const entry = managedFieldsOf(answer).find(
      (one) => one.manager === manager && one.operation === 'Apply' && one.subresource === subresource,
    );
    // Beside what was sent, not beside the answer: what was sent empty, and is filled, may be merged.
    const reading: Reading = { of: 'answer', at: [], leaves: [], lists: new Map() };
    this.recorded(entry?.fieldsV1 ?? {}, this.root, intent, reading);
    return this.expected(intent, owned, subresource);
  }

  /**
   * Reports whether an object has everything that is wanted, by value. What a map or a keyed list holds beside it
   * belongs to others; a list or map that is owned as a whole has to be the same.
   */
  holds(live: unknown, wanted: unknown, shape = this.root): boolean {
    if (shape.isWhole || shape.kind === 'set' || !isContainer(wanted))
      return canonicalJson(live ?? null) === canonicalJson(wanted ?? null);
    if (!isContainer(live)) return false;
    if (shape.kind !== 'map-list') {
      for (const [name, value] of Object.entries(wanted))
        if (value !== undefined && !this.holds(live[name], value, shape.below.get(name) ?? UNKNOWN))
          return false;
      return true;
    }
    if (!Array.isArray(live) || !Array.isArray(wanted)) return false;
    const { keys, defaults } = shape;
    const itemShape = shape.below.get(ITEM) ?? UNKNOWN;
    const keyOf = (item: unknown, name: string): unknown => memberOf(item, name) ?? defaults.get(name);
    return wanted.every((item: unknown) =>
      live.some(
        (other: unknown) =>
          keys.every((name) => keyOf(item, name) === keyOf(other, name)) &&
          this.holds(other, item, itemShape),
      ),
    );
  }

  /**
   * Returns an entry in canonical form: keys sorted, list keys spelled as here, without the marks for the items themselves.
   * @param live what the object has there
   */
  private recorded(fields: FieldsV1, shape: Shape, live: unknown, reading: Reading): string {
    const segments: string[] = [];
    /** Items that a segment has named: another one that does would have all below them walked again. */
    const named = new Set<unknown>();
    for (const segment of Object.keys(fields)) {
      const child = fields[segment];
      if (segment === '.' || !child) continue;
      const value = segment.slice(2);
      let canonical = segment;
      let inside: unknown;
      let next: Shape;
      if (segment.startsWith('f:')) {
        learn(shape, 'struct', reading);
        inside = memberOf(live, value);
        reading.at.push(segment);
        next = isLeaf(child) ? this.leaf(shape, value, inside, reading) : this.below(shape, value, reading);
      } else {
        const key: unknown = JSON.parse(value);
        const names = isContainer(key) ? Object.keys(key) : [];
        learn(shape, segment.startsWith('k:') ? 'map-list' : 'set', reading, names);
        canonical = segment.slice(0, 2) + appliedKey(key, child, shape);
        if (Array.isArray(live) && names.length > 0) {
          inside = itemsBy(names, live, reading)?.get(listKey(key, names));
          if (named.has(inside)) inside = undefined;
          named.add(inside);
        }
        // A writer that patches an item doesn't own its key, and ours not the part that is a default.
        const isOwned = names.every((name) => `f:${name}` in child);
        reading.at.push(isOwned ? canonical : `k:${canonicalKey(Object.entries(key as object))}`);
        next = this.below(shape, ITEM, reading);
      }
      segments.push(canonical + this.recorded(child, next, inside, reading));
      reading.at.pop();
    }
    return node(segments);
  }

  private below(shape: Shape, name: string, { of }: Reading): Shape {
    const known = shape.below.get(name);
    // Others may fill the room for what is listed, and not that for the answers to our applies.
    const limit = of === 'answer' ? 2 * SHAPES_LIMIT : SHAPES_LIMIT;
    if (known || shape === UNKNOWN || this.known >= limit) return known ?? UNKNOWN;
    const made = new Shape();
    shape.below.set(name, made);
    this.known++;
    return made;
  }

  /** A leaf with something in it is owned as a whole; one with nothing in it may be anything. Of single values there is no end. */
  private leaf(shape: Shape, name: string, live: unknown, reading: Reading): Shape {
    const isEmpty = isContainer(live) ? Object.keys(live).length === 0 : live === undefined || live === null;
    const { of, at, leaves } = reading;
    const isMarked = of === 'others' ? !isEmpty && isContainer(live) : isEmpty;
    if (isMarked && leaves.length < MAX_MARKS) leaves.push(`/${at.join('/')}`);
    if (!Array.isArray(live) && (isEmpty || !isContainer(live))) return UNKNOWN;
    const next = this.below(shape, name, reading);
    if (next.isWhole || reading.of === 'answer') learn(next, 'atomic', reading);
    return next;
  }

  /**
   * Returns an intent as it will be recorded; nothing where nothing is.
   * @param at the segments down to here
   */
  private intended(value: unknown, shape: Shape, marks: string, at: string[]): string | undefined {
    if (shape.isWhole) {
      const isSure = shape.kind === 'atomic' || this.known >= 2 * SHAPES_LIMIT || !vanishes(value);
      const isMarked = (sort?: string): boolean => marks.includes(mark(`/${at.join('/')}`, sort));
      return isSure || isMarked() || isMarked(FILLED) ? LEAF : undefined;
    }
    const segments: string[] = [];
    if (Array.isArray(value)) {
      if (value.length === 0) return undefined;
      if (shape.kind !== 'set' && shape.kind !== 'map-list') return LEAF;
      for (const item of value as unknown[]) {
        if (shape.kind === 'set') segments.push(`v:${canonicalJson(item)}`);
        else {
          const key = shape.keys.map((name) => [name, memberOf(item, name)] as const);
          const segment = `k:${canonicalKey(key)}`;
          const whole = key.map(([name, value]) => [name, value ?? shape.defaults.get(name)] as const);
          at.push(shape.defaults.size === 0 ? segment : `k:${canonicalKey(whole)}`);
          const inside = this.intended(item, shape.below.get(ITEM) ?? UNKNOWN, marks, at);
          at.pop();
          segments.push(segment + (inside ?? LEAF));
        }
      }
      return node(segments);
    }
    const members = isContainer(value) ? membersOf(value) : [];
    if (members.length === 0) return LEAF;
    for (const [name, child] of members) {
      at.push(`f:${name}`);
      const inside = this.intended(child, shape.below.get(name) ?? UNKNOWN, marks, at);
      at.pop();
      if (inside !== undefined) segments.push(`f:${name}${inside}`);
    }
    return segments.length === 0 ? undefined : node(segments);
  }
}

/**
 * Counts what an entry shows of a list or map that is merged; what most of them show is taken to be so. One that was applied as
 * `{}` or `null`, and that others or defaults have put something in, shows nothing.
 * @param keys of a `map-list`
 * @see https://www.cs.utexas.edu/~moore/best-ideas/mjrty/ the majority vote
 */
function learn(shape: Shape, kind: Shape['kind'], { of }: Reading, keys: readonly string[] = []): void {
  const isAnswer = of === 'answer';
  if (shape === UNKNOWN || (shape.isSure && !isAnswer)) return;
  shape.isSure ||= isAnswer;
  const isKnown = shape.kind === kind && keys.every((name, index) => shape.keys[index] === name);
  if (!shape.isWhole) shape.lead += isKnown ? 1 : -1;
  if (isKnown || (!isAnswer && shape.lead >= 0 && !shape.isWhole)) return;
  shape.kind = kind;
  shape.keys = keys;
  shape.lead = 1;
}

/** Reports whether an entry is one of ours: it holds our record of what was applied, or is the status of a custom resource. */
function isOwnEntry(
  { kind }: AnyObject,
  { manager = '', subresource, fieldsV1 }: ManagedFieldsEntry,
): boolean {
  if (subresource) return subresource === 'status' && manager === statusFieldManager(kind);
  const annotations = Object.keys(fieldsV1?.['f:metadata']?.['f:annotations'] ?? {});
  return annotations.some((segment) => isHashAnnotation(segment.slice(2)));
}

/**
 * Returns a list key as it was applied, in canonical form: what the schema's default has added to it isn't owned, and is
 * learned here.
 * @param key also the item of a set
 */
function appliedKey(key: unknown, fields: FieldsV1, { kind, keys, defaults }: Shape): string {
  if (!isContainer(key)) return canonicalJson(key);
  const isOwned = (name: string): boolean => isLeaf(fields) || `f:${name}` in fields;
  const applied = Object.entries(key).filter(([name]) => isOwned(name));
  if (kind !== 'map-list') return canonicalJson(Object.fromEntries(applied));
  for (const name of keys) if (!isOwned(name) || !(name in key)) defaults.set(name, key[name]);
  return canonicalKey(applied);
}

/** Drops what is empty: of an item that is owned as a whole, nothing shows whether that was applied. */
function canonicalKey(key: readonly (readonly [string, unknown])[]): string {
  return canonicalJson(Object.fromEntries(key.filter(([, value]) => value !== '')));
}

/** Maximum number of sets of keys by which one list is looked up: a record of ours has one. */
const MAX_KEYS = 3;

/** Returns the items of a live list by their keys of these names; each list is gone through once for them. */
function itemsBy(
  names: readonly string[],
  live: readonly unknown[],
  { lists }: Reading,
): ReadonlyMap<string, unknown> | undefined {
  const known = lists.get(live) ?? new Map<string, ReadonlyMap<string, unknown>>();
  lists.set(live, known);
  const spelled = names.join();
  if (!known.has(spelled) && known.size < MAX_KEYS)
    known.set(spelled, new Map(live.map((item) => [listKey(item, names), item])));
  return known.get(spelled);
}

/** Returns the key under which an item is recorded, for a look-up. */
function listKey(item: unknown, names: readonly string[]): string {
  return JSON.stringify(names.map((name) => memberOf(item, name)));
}

/** Reports whether nothing may be recorded of a value: of `{}` and `null`, something always is. */
function vanishes(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (!isContainer(value)) return false;
  const members = membersOf(value);
  return members.length > 0 && members.every(([, member]) => vanishes(member));
}

/** Returns the members that are sent. */
function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => member !== undefined);
}

function memberOf(item: unknown, name: string): unknown {
  return isContainer(item) ? item[name] : undefined;
}

const LEAF = '';
const DIGEST_LENGTH = 16;
const SHARED_LIMIT = 2_000;
const SHAPES_LIMIT = 10_000;

function node(segments: string[]): string {
  return segments.length === 0 ? LEAF : `{${sorted(segments).join(',')}}`;
}

/** 96 bits tell two path sets of one object apart. */
function digest(canonical: string): string {
  return hash('sha1', canonical, 'base64').slice(0, DIGEST_LENGTH);
}

/** Maximum number of leaves of an entry that are marked: marks are kept with each object. */
const MAX_MARKS = 100;
/** Maximum number of entries of ours on one object that leftovers and marks are worked out for. */
const MAX_OURS = 5;
const FILLED = '!';

/** Appended to a digest: a leaf of ours with nothing in it, or one of others with something. */
function mark(at: string, sort = '.'): string {
  return `${sort}${hash('sha1', at, 'base64').slice(0, 8)}`;
}

/** Reports whether two digests are of the same paths; the marks go by what the object has there, also from other writers. */
export function isSamePaths(a: string | undefined, b: string | undefined): boolean {
  return a?.slice(0, DIGEST_LENGTH) === b?.slice(0, DIGEST_LENGTH);
}

/** Drops what identifies an object, which is never owned. */
function withoutIdentity(intent: object): Readonly<Record<string, unknown>> {
  const { apiVersion, kind, metadata, ...rest } = intent as Record<string, unknown>;
  const { labels, annotations, ownerReferences, finalizers, generateName } = (metadata ?? {}) as Record<
    string,
    unknown
  >;
  const owned = membersOf({ labels, annotations, ownerReferences, finalizers, generateName });
  return owned.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(owned) };
}

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
  return [...before.owned].some(([owner, paths]) => !isSamePaths(after.owned.get(owner), paths));
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
  const ours = managedFieldsOf(object).filter(
    (entry) =>
      entry.operation === 'Apply' && !isLegacy(entry) && !entry.subresource && isOwnEntry(object, entry),
  );
  const sharing = ours
    .slice(0, MAX_OURS)
    .filter(({ manager = '' }) => withoutOwners(isLeftOver, object, manager) !== undefined);
  return sharing.length === 0 ? undefined : sharing.map(({ manager = '' }) => manager);
}

/** Returns the entries of an object when no leftover owns what this manager has applied; nothing if that is so already. */
export function withoutOwners(
  isLeftOver: IsLeftOver,
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const entries = managedFieldsOf(object);
  if (withWalkableFields(object) !== object || !entries.some((entry) => isLeftOver(entry, manager)))
    return undefined;
  const own = entries.find((entry) => isAppliedBy(manager, entry))?.fieldsV1 ?? {};
  const left = entries.map((entry) => {
    const { fieldsV1 = {} } = entry;
    const rest = isLeftOver(entry, manager) ? without(fieldsV1, own) : fieldsV1;
    return rest === fieldsV1 ? entry : { ...entry, fieldsV1: rest };
  });
  return left.every((entry, n) => entry === entries[n]) ? undefined : dropEmpty(left);
}

/** Reports whether fields of an entry may be taken: of a legacy manager, or of a writer that doesn't apply. */
function givesWay(entry: ManagedFieldsEntry): boolean {
  return isLegacy(entry) || (entry.operation === 'Update' && !entry.subresource);
}

/**
 * Returns the entries of an object when this manager alone owns some items of lists, so that its next apply removes those
 * that it doesn't name. Taken from entries that give way.
 */
export function withItemsTaken(
  object: AnyObject,
  manager: string,
  items: readonly FieldPath[],
): ManagedFieldsEntry[] {
  const others = managedFieldsOf(object).map((entry) => {
    if (!givesWay(entry)) return entry;
    return { ...entry, fieldsV1: items.reduce(withoutSubtree, entry.fieldsV1 ?? {}) };
  });
  const taken = items.map((path) => fieldsAt(path, { '.': {} }));
  return withOwn(others, object, manager, taken);
}

const OFFER: FieldPath = ['f:metadata', 'f:annotations', `f:${ADOPT_BY_ANNOTATION}`];

/** Returns entries when this manager alone owns the offer of an adoption, so that its next apply removes the annotation. */
export function withOfferTaken(
  entries: readonly ManagedFieldsEntry[],
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] {
  const others = entries.map((entry) => ({
    ...entry,
    fieldsV1: withoutSubtree(entry.fieldsV1 ?? {}, OFFER),
  }));
  return withOwn(others, object, manager, [fieldsAt(OFFER, {})]);
}

function fieldsAt(path: FieldPath, leaf: FieldsV1): FieldsV1 {
  return path.reduceRight((inner, segment) => ({ [segment]: inner }), leaf);
}

/** Adds fields to what a manager has applied. */
function withOwn(
  entries: readonly ManagedFieldsEntry[],
  { apiVersion }: AnyObject,
  manager: string,
  fields: readonly FieldsV1[],
): ManagedFieldsEntry[] {
  const own: ManagedFieldsEntry = entries.find((entry) => isAppliedBy(manager, entry)) ?? {
    ...{ manager, operation: 'Apply', apiVersion, fieldsType: 'FieldsV1' },
  };
  const fieldsV1 = fields.reduce(union, own.fieldsV1 ?? {});
  return dropEmpty([...entries.filter((entry) => entry !== own), { ...own, fieldsV1 }]);
}

/**
 * Returns the entries of an object when what legacy managers wrote is this manager's, so that its next apply removes what
 * it doesn't name; the same entries where they wrote nothing. Labels and annotations stay theirs, also those of a template:
 * other tools go by them. So do replicas, which an autoscaler keeps without a record while it agrees with them.
 * @see https://github.com/kubernetes/client-go/blob/v0.36.3/util/csaupgrade/upgrade.go
 */
export function withContentTaken(object: AnyObject, manager: string): readonly ManagedFieldsEntry[] {
  const entries = managedFieldsOf(object);
  const taken: FieldsV1[] = [];
  const others = entries.map((entry) => {
    const { fieldsV1 = {}, apiVersion } = entry;
    const content = isLegacy(entry) && apiVersion === object.apiVersion ? contentOf(fieldsV1) : {};
    if (isLeaf(content)) return entry;
    taken.push(content);
    return { ...entry, fieldsV1: without(fieldsV1, content) };
  });
  return taken.length === 0 ? entries : withOwn(others, object, manager, taken);
}

function contentOf({ 'f:spec': spec, ...fields }: FieldsV1): FieldsV1 {
  const { 'f:replicas': _, ...specified } = spec ?? {};
  const { 'f:status': status, ...content } = withoutMetadata({
    ...fields,
    ...(spec && { 'f:spec': specified }),
  });
  return content;
}

/** A value of the name, as in a ConfigMap, is no metadata. */
function withoutMetadata(fields: FieldsV1): FieldsV1 {
  const left = Object.entries(fields).flatMap(([segment, child]) => {
    if (isLeaf(child)) return [[segment, child] as const];
    const rest = segment === 'f:metadata' ? {} : withoutMetadata(child);
    return isLeaf(rest) ? [] : [[segment, rest] as const];
  });
  return Object.fromEntries(left);
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

/** Returns the items of keyed lists that stand beside those of an intent. */
export function itemsBeside(live: AnyObject, intent: AnyObject): FieldPath[] {
  const sets = managedFieldsOf(live).map(({ fieldsV1 = {} }) => fieldsV1);
  return besideIn(sets, intent);
}

/** Reports whether an object has a field of which every owner gives way: a default, or what a write has left. */
export function isUnapplied(object: AnyObject, path: FieldPath): boolean {
  const owners = managedFieldsOf(object).filter(({ fieldsV1 = {} }) => touches(fieldsV1, path));
  return owners.every(givesWay) && fieldAt(object, path) !== undefined;
}

function besideIn(sets: readonly FieldsV1[], intent: unknown): FieldPath[] {
  return [...new Set(sets.flatMap(Object.keys))].flatMap((segment) => {
    if (segment === 'f:metadata' || segment === '.' || segment.startsWith('v:')) return [];
    const isItem = segment.startsWith('k:');
    const wanted = isItem ? itemOf(intent, segment) : memberOf(intent, segment.slice(2));
    if (wanted === undefined) return isItem ? [[segment]] : [];
    const inside = sets.flatMap((set) => set[segment] ?? []);
    return besideIn(inside, wanted).map((path) => [segment, ...path]);
  });
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
function itemOf(list: unknown, segment: string): unknown {
  if (!Array.isArray(list)) return undefined;
  const keys = Object.entries(JSON.parse(segment.slice(2)) as Record<string, unknown>);
  return list.find((item: unknown) => keys.every(([name, key]) => memberOf(item, name) === key));
}

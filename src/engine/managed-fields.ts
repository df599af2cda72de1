import { hash } from 'node:crypto';
import { APPLIED_HASH_ANNOTATION, holderFor } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import { isAppliedBy, managedFieldsOf, setOf, union, without, withoutSubtree } from './field-set.js';
import type { FieldPath, FieldsV1, ManagedFieldsEntry } from './field-set.js';

/**
 * One digest of owned paths per applying manager; see `ownerKey`.
 *
 * After an apply of ours, our entry lists exactly the fields that we sent. Whoever changes or removes one of them
 * takes it out of our entry; whoever writes other fields, or the same value, leaves it alone. So the set of paths
 * in our entry tells, without a request, whether our last apply still stands.
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
export type OwnedPaths = ReadonlyMap<string, string>;

/** Names an entry: a manager has one per subresource. */
export function ownerKey(manager: string, subresource?: string): string {
  return subresource ? `${manager}/${subresource}` : manager;
}

/** How one list or map is merged, learned from the entries that passed by. */
type Merge = MapList | { readonly kind: 'set' | 'struct' | 'atomic' };

interface MapList {
  readonly kind: 'map-list';
  readonly keys: readonly string[];
  /** What the schema puts in place of keys that an item is applied without, as far as that was seen. */
  readonly defaults: Map<string, unknown>;
}

/**
 * Digests of owned paths: of what the server recorded, and of what it would record for an intent. To compute the
 * second, one has to know which lists are merged by which keys. That isn't in the object, but it is in every
 * recorded entry of the same type, so it is learned from those. What hasn't been learned yet gives a digest that
 * matches nothing, hence one apply, whose answer teaches it.
 *
 * **Caveats.** Names in a map of objects are paths too, and people make them up without end; so no more is learned
 * after 10,000 paths. What hasn't been learned by then costs one apply per object and intent after each start.
 *
 * One instance serves one type of object.
 */
export class FieldPaths {
  private readonly merges = new Map<string, Merge>();
  /** Objects of one shape are owned alike, and share what says so. */
  private readonly shared = new Map<string, OwnedPaths>();
  /** Where the status is a subresource, it is dropped from what is applied to the object itself. */
  private hasPlainStatus = false;

  /** Paths whose way of merging is known. */
  get size(): number {
    return this.merges.size;
  }

  /** The digests of all entries that were applied; learns from each, and from what others have written. */
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
   * The digest that our entry will have when exactly this was applied. An empty list is recorded where it is owned as a
   * whole, and not where it is merged by items. Until an entry shows which it is, no writer has put anything in it: then
   * it is right either way.
   * @param owned the digest that our entry has
   */
  expected(intent: object, owned = '', subresource?: 'status'): string {
    const { status, ...rest } = withoutIdentity(intent);
    const marks = owned.slice(DIGEST_LENGTH);
    const applied = subresource || this.hasPlainStatus ? { ...rest, status } : rest;
    return digest(this.intended(applied, ROOT, marks) ?? LEAF) + marks;
  }

  /**
   * Whether an object has everything that is wanted, by value. What is there beside it in a map or a keyed list is
   * somebody else's; a list or map that is owned as a whole has to be the same.
   */
  holds(live: unknown, wanted: unknown, path = ''): boolean {
    const merge = this.merges.get(path);
    if (isWhole(merge) || merge.kind === 'set' || typeof wanted !== 'object' || wanted === null) {
      return canonicalJson(live ?? null) === canonicalJson(wanted ?? null);
    }
    if (typeof live !== 'object' || live === null) return false;
    if (merge.kind === 'map-list') return this.holdsItems(live, wanted, merge, path);
    return Object.entries(wanted).every(
      ([name, value]) =>
        value === undefined || this.holds((live as Record<string, unknown>)[name], value, `${path}.${name}`),
    );
  }

  private holdsItems(live: object, wanted: object, merge: MapList, path: string): boolean {
    if (!Array.isArray(live) || !Array.isArray(wanted)) return false;
    return wanted.every((item: unknown) =>
      live.some((other: unknown) => sameKeys(item, other, merge) && this.holds(other, item, `${path}[]`)),
    );
  }

  /**
   * The entry in canonical form: keys sorted, list keys spelled as here, without the marks for the items themselves.
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
      if (isField && Object.keys(child).length === 0) this.learnLeaf(next, inside, bare);
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

  /** In canonical form; learns what the schema's default has added. */
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
      // A leaf of somebody who has applied it as `{}` or `null`, with what others have put in it, isn't owned as a whole.
      this.merges.set(path, { kind: segment.startsWith('v:') ? 'set' : 'struct' });
    }
  }

  /** Nothing where nothing is recorded. */
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
 * A list key as it was applied: what the schema's default has added to it isn't owned.
 * @param key also the item of a set
 */
function appliedKey(key: unknown, fields: FieldsV1): unknown {
  const owned = Object.keys(fields);
  if (typeof key !== 'object' || key === null || owned.length === 0) return key;
  return Object.fromEntries(Object.entries(key).filter(([name]) => owned.includes(`f:${name}`)));
}

/** A list key without what is empty: of an item that is owned as a whole, nothing shows whether that was applied. */
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

/** Whether a list or map is owned as a whole, or not known to be anything else. */
function isWhole(merge: Merge | undefined): merge is undefined | { readonly kind: 'atomic' } {
  return !merge || merge.kind === 'atomic';
}

/** Whether nothing may be recorded of a value: of `{}` and `null`, something always is. */
function vanishes(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== 'object' || value === null) return false;
  const members = membersOf(value);
  return members.length > 0 && members.every(([, member]) => vanishes(member));
}

/** Those that are sent. */
function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => member !== undefined);
}

/** Whether two items are known by the same, also where that is left to the default. */
function sameKeys(a: unknown, b: unknown, { keys, defaults }: MapList): boolean {
  const keyOf = (item: unknown, name: string): unknown => memberOf(item, name) ?? defaults.get(name);
  return keys.every((key) => keyOf(a, key) === keyOf(b, key));
}

function memberOf(item: unknown, name: string): unknown {
  return (item as Readonly<Record<string, unknown>> | null | undefined)?.[name];
}

const LEAF = '';
const DIGEST_LENGTH = 16;
const SHARED_LIMIT = 10_000;
const MERGES_LIMIT = 10_000;

function node(segments: string[]): string {
  return segments.length === 0 ? LEAF : `{${segments.sort().join(',')}}`;
}

/** 96 bits are plenty to tell two path sets of one object apart. */
function digest(canonical: string): string {
  return hash('sha1', canonical, 'base64').slice(0, DIGEST_LENGTH);
}

/** Appended to a digest: a leaf with nothing in it. */
function mark(at: string): string {
  return `.${hash('sha1', at, 'base64').slice(0, 8)}`;
}

/** What names an object is never owned by anybody. */
function withoutIdentity(intent: object): Readonly<Record<string, unknown>> {
  const { apiVersion, kind, metadata, ...rest } = intent as Record<string, unknown>;
  const { labels, annotations, ownerReferences, finalizers, generateName } = (metadata ?? {}) as Record<
    string,
    unknown
  >;
  const owned = membersOf({ labels, annotations, ownerReferences, finalizers, generateName });
  return owned.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(owned) };
}

/** JSON with sorted keys, at every depth. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let json = '';
  if (Array.isArray(value)) {
    for (const item of value) json += `${json && ','}${canonicalJson(item)}`;
    return `[${json}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members).sort()) {
    const member = members[name];
    if (member !== undefined) json += `${json && ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${json}}`;
}

/**
 * Managers that write once, on behalf of a person or of a chart, and then own what they wrote for ever:
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

/** Whether what this manager owns is a leftover of somebody's command, as far as it is about the object itself. */
export function isLegacy({ manager = '', subresource }: ManagedFieldsEntry): boolean {
  return !subresource && (LEGACY_MANAGERS.includes(manager) || manager.startsWith(KUBECTL_COMMAND));
}

/** Whether an entry is left over from somebody, as seen by the manager that applies the same fields. */
export type IsLeftOver = (entry: ManagedFieldsEntry, manager: string) => boolean;

/**
 * Whether an entry is left over from an autoscaler: of the manager that held the replicas for it, or of its writes through
 * `/scale`. To be asked only once a manager has taken the field back: until then, the entry keeps the value.
 */
export const isHeld: IsLeftOver = ({ manager, operation, subresource }, own) => {
  const holder = holderFor(own);
  return holder !== undefined && (subresource === 'scale' || (operation === 'Apply' && manager === holder));
};

/**
 * The managers whose applied fields are owned by what is left over too: those fields would stay when they are dropped. Looked
 * for on objects that carry our hash only, so that it costs nothing elsewhere.
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

/** The entries of an object when nothing that is left over owns what this manager has applied; nothing if that is so already. */
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
 * The entries of an object when this manager alone owns some items of lists, so that its next apply removes those
 * that it doesn't name. Taken from legacy managers and from whoever has written them without applying.
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
  const taken = items.reduce<FieldsV1>((set, path) => union(set, setOf(path, { '.': {} })), {});
  const own = others.find((entry) => isAppliedBy(manager, entry)) ?? {
    manager,
    operation: 'Apply',
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
  };
  const rest = others.filter((entry) => entry !== own);
  return dropEmpty([...rest, { ...own, fieldsV1: union(own.fieldsV1 ?? {}, taken) }]);
}

/** The entries of an object when what this manager applied is recorded in the version that it applies now. */
export function withApiVersion(object: AnyObject, manager: string, apiVersion: string): ManagedFieldsEntry[] {
  return managedFieldsOf(object).map((entry) =>
    isAppliedBy(manager, entry) ? { ...entry, apiVersion } : entry,
  );
}

function dropEmpty(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.filter(({ fieldsV1 = {} }) => Object.keys(fieldsV1).length > 0);
}

import { hash } from 'node:crypto';
import type { AnyObject } from '../contract/object.js';
import { managedFieldsOf } from './field-set.js';
import type { FieldsV1 } from './field-set.js';

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
type Merge = MapList | { readonly kind: 'set' | 'struct' };

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

  /** Paths whose way of merging is known. */
  get size(): number {
    return this.merges.size;
  }

  /** The digests of all entries that were applied; learns from each. */
  owned(object: AnyObject): OwnedPaths {
    const digests = new Map<string, string>();
    for (const { manager, operation, subresource, fieldsV1 } of managedFieldsOf(object)) {
      if (operation !== 'Apply' || !manager || !fieldsV1) continue;
      digests.set(ownerKey(manager, subresource), digest(this.recorded(fieldsV1, '')));
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

  /** The digest that our entry will have when exactly this was applied. */
  expected(intent: object): string {
    return digest(this.intended(withoutIdentity(intent), ''));
  }

  /**
   * Whether an object has everything that is wanted, by value. What is there beside it in a map or a keyed list is
   * somebody else's; a list or map that is owned as a whole has to be the same.
   */
  holds(live: unknown, wanted: unknown, path = ''): boolean {
    const merge = this.merges.get(path);
    if (!merge || merge.kind === 'set' || typeof wanted !== 'object' || wanted === null) {
      return canonicalJson(live) === canonicalJson(wanted);
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

  /** The entry in canonical form: keys sorted, list keys spelled as here, without the marks for the items themselves. */
  private recorded(fields: FieldsV1, path: string): string {
    const segments: string[] = [];
    for (const [segment, child] of Object.entries(fields)) {
      if (segment === '.') continue;
      this.learn(path, segment);
      const value = segment.slice(2);
      const canonical = segment.startsWith('f:') ? value : this.appliedKey(path, JSON.parse(value), child);
      segments.push(`${segment.slice(0, 2)}${canonical}${this.recorded(child, childPath(path, segment))}`);
    }
    return node(segments);
  }

  /** In canonical form; learns what the schema's default has added. */
  private appliedKey(path: string, key: unknown, fields: FieldsV1): string {
    const applied = appliedKey(key, fields);
    const merge = this.merges.get(path);
    if (merge?.kind === 'map-list')
      for (const name of merge.keys.filter((one) => memberOf(applied, one) === undefined))
        merge.defaults.set(name, memberOf(key, name));
    return canonicalJson(applied);
  }

  private learn(path: string, segment: string): void {
    const known = this.merges.get(path);
    if (!known && this.merges.size >= MERGES_LIMIT) return;
    if (segment.startsWith('k:')) {
      if (known?.kind !== 'map-list') {
        const keys = Object.keys(JSON.parse(segment.slice(2)) as object);
        this.merges.set(path, { kind: 'map-list', keys, defaults: new Map() });
      }
    } else if (!known) {
      this.merges.set(path, { kind: segment.startsWith('v:') ? 'set' : 'struct' });
    }
  }

  private intended(value: unknown, path: string): string {
    const merge = this.merges.get(path);
    // Never seen with anything below it: a scalar, or a list or map that is owned as a whole.
    if (!merge) return LEAF;
    if (Array.isArray(value)) return this.intendedList(value, merge, path);
    if (typeof value !== 'object' || value === null) return LEAF;
    const segments: string[] = [];
    for (const [name, child] of Object.entries(value)) {
      if (child !== undefined && child !== null)
        segments.push(`f:${name}${this.intended(child, `${path}.${name}`)}`);
    }
    return node(segments);
  }

  private intendedList(items: readonly unknown[], merge: Merge, path: string): string {
    if (merge.kind === 'set') return node(items.map((item) => `v:${canonicalJson(item)}`));
    if (merge.kind !== 'map-list') return LEAF;
    return node(
      items.map((item) => {
        const fields = item as Record<string, unknown>;
        const key = Object.fromEntries(merge.keys.map((name) => [name, fields[name]]));
        return `k:${canonicalJson(key)}${this.intended(item, `${path}[]`)}`;
      }),
    );
  }
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

/** Whether two items are known by the same, also where that is left to the default. */
function sameKeys(a: unknown, b: unknown, { keys, defaults }: MapList): boolean {
  const keyOf = (item: unknown, name: string): unknown => memberOf(item, name) ?? defaults.get(name);
  return keys.every((key) => keyOf(a, key) === keyOf(b, key));
}

function memberOf(item: unknown, name: string): unknown {
  return (item as Readonly<Record<string, unknown>>)[name];
}

const LEAF = '';
const SHARED_LIMIT = 10_000;
const MERGES_LIMIT = 10_000;

function node(segments: string[]): string {
  return segments.length === 0 ? LEAF : `{${segments.sort().join(',')}}`;
}

function childPath(path: string, segment: string): string {
  return segment.startsWith('f:') ? `${path}.${segment.slice(2)}` : `${path}[]`;
}

/** 96 bits are plenty to tell two path sets of one object apart. */
function digest(canonical: string): string {
  return hash('sha1', canonical, 'base64').slice(0, 16);
}

/** What names an object is never owned by anybody. */
function withoutIdentity(intent: object): object {
  const { apiVersion, kind, metadata, ...rest } = intent as Record<string, unknown>;
  if (typeof metadata !== 'object' || metadata === null) return rest;
  const { labels, annotations, ownerReferences, finalizers } = metadata as Record<string, unknown>;
  const owned = Object.entries({ labels, annotations, ownerReferences, finalizers }).filter(
    ([, value]) => value,
  );
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

import type { Found, Lookup, Query } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { byName, keyOf, objectKey, splitKey } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { canonicalJson, isContainer } from '../../values/json.js';
import type { Scope } from '../../client/api.js';
import { sameButVersion, Store } from './cache.js';
import type { Finder } from './reader.js';
import { aborted, sleep } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import type { Reflector } from './reflector.js';
import { TOO_LARGE } from '../../client/retry.js';

/** Maximum number of objects that one query finds. */
const MAX_OBJECTS = 1_000;
/** Maximum size of what is looked up for the keys of one tenant, as `sizeOf` counts; in memory it takes up to three times as much. */
const MAX_SIZE = 16 * 1024 * 1024;
/** Maximum number of watches of the keys of one tenant, without those of names that may share one. */
const MAX_WATCHES = 3_000;
/** Size of each value, beside its JSON. */
const VALUE_SIZE = 32;
/** Number of objects on a page: that many of the largest are no load for the memory. */
const PAGE_OBJECTS = 50;
/** Number of names of one type in one namespace up to which each has a watch of its own; measured in docs/decisions/0048. */
const APART = 10;
/** Maximum number of objects of the namespace for each name that one watch is worth. */
const OBJECTS_PER_NAME = 10;
/** Time within which a quarter more names have to come for them to be a burst, whose end is awaited before these are counted. */
const BURST = 1_000;
/** Time after which a list of the namespace is given up. */
const LISTING = 60_000;

export interface LookupsProps {
  /** Makes what keeps a store equal to what the API server has. */
  readonly reflector: (scope: Scope, store: Store) => Reflector;
  /** Returns how many objects there are, or Infinity. */
  readonly count: (scope: Scope) => Promise<number>;
  /** Takes a key that has asked for what has changed. */
  readonly wake: (key: string) => void;
  readonly clock: Clock;
}

/** A query that is being watched. */
interface Watching {
  readonly id: string;
  readonly scope: Scope;
  readonly keep: Lookup['keep'];
  /** Names that it may share a watch with. @default - none */
  readonly names?: Names;
  /** Watch that answers it; none until the names that were asked before it share one. */
  feed?: Feed;
  /** Watch that is going to answer it, once it has seen as much. */
  next?: Feed;
  /** Keys that ask for it, by their tenant. */
  readonly keys: Map<string, Set<string>>;
  /** Sizes of what is kept, by key, and their sum. */
  readonly sizes: Map<string, number>;
  size: number;
}

/** A watch, of a query or of a whole namespace, of which nothing is kept but what queries ask for. */
interface Feed {
  readonly store: Store;
  readonly reflector: Reflector;
  readonly end: AbortController;
  /** Queries that it answers, or is going to, by the name that they ask for. */
  readonly queries: Map<string | undefined, Watching>;
}

/** Queries for names of one type in one namespace. */
interface Names {
  readonly id: string;
  readonly scope: Scope;
  /** Queries that the shared watch doesn't answer. */
  readonly apart: Set<Watching>;
  /** Maximum number of them. */
  bound: number;
  shared?: Feed;
  /** Whether it is being decided whether they share a watch, or that is being listed: others wait. */
  isJoining: boolean;
}

/**
 * Lookups of the plans of one controller: each query has a watch, for as long as the latest plan of some key asks for it; names of one
 * namespace share it where they are many. A query beyond the bounds is given up for the keys of a tenant; see docs/engine.md.
 */
export class Lookups {
  private readonly watching = new Map<string, Watching>();
  /** Queries of the latest plan of each key. */
  private readonly asked = new Map<string, Set<string>>();
  private readonly numbers = new Map<Lookup, number>();
  private readonly names = new Map<string, Names>();
  /** Answers to queries that find too much, by tenant of keys and query. */
  private readonly refused = new Map<string, { readonly found: Found; readonly until: number }>();
  /** Size of all that is looked up, by tenant of keys. */
  private readonly sizes = new Map<string, number>();
  /** Number of watches that can't be shared, by tenant of keys. */
  private readonly watches = new Map<string, number>();

  constructor(private readonly props: LookupsProps) {}

  /** Makes the plan of a key; what it doesn't ask for is given up, unless it throws. */
  plan<T>(key: string, make: (finder: Finder) => T): T {
    const asked = this.asked.get(key) ?? new Set<string>();
    const needed = new Set<string>();
    const made = make({
      find: (lookup, query) => {
        const scope = scopeOf(lookup, query);
        const id = JSON.stringify([this.numberOf(lookup), scope.namespace, scope.name, scope.selector]);
        this.asked.set(key, asked.add(id));
        needed.add(id);
        const tenant = tenantOf(key);
        const refused = this.refusal(tenant, id);
        if (refused) return refused;
        const known = this.watching.get(id);
        const isFull = (this.watches.get(tenant) ?? 0) >= MAX_WATCHES;
        if (isFull && !known?.keys.has(tenant) && !mayShare(scope)) return TOO_MANY;
        const watching = known ?? this.open(id, lookup, query, scope);
        const keys = watching.keys.get(tenant);
        watching.keys.set(tenant, (keys ?? new Set()).add(key));
        if (!keys) {
          add(this.sizes, tenant, watching.size);
          if (!watching.names) add(this.watches, tenant, 1);
        }
        this.limit(watching);
        return this.refusal(tenant, id) ?? answerOf(watching);
      },
    });
    for (const id of asked) {
      if (needed.has(id)) continue;
      asked.delete(id);
      this.leave(id, key);
    }
    if (asked.size === 0) this.asked.delete(key);
    return made;
  }

  /** Forgets all answers, and wakes the keys that have asked: they get what is listed from now on. */
  restart(): void {
    const keys = [...this.asked.keys()];
    this.stop();
    this.asked.clear();
    for (const key of keys) this.props.wake(key);
  }

  stop(): void {
    for (const watching of this.watching.values())
      for (const tenant of watching.keys.keys()) this.drop(watching, tenant);
    this.refused.clear();
  }

  private numberOf(lookup: Lookup): number {
    const number = this.numbers.get(lookup) ?? this.numbers.size;
    this.numbers.set(lookup, number);
    return number;
  }

  private open(id: string, lookup: Lookup, query: Query, scope: Scope): Watching {
    const names = this.namesOf(lookup, query, scope);
    const watching: Watching = {
      ...{ id, scope, keep: lookup.keep, ...(names && { names }) },
      ...{ keys: new Map<string, Set<string>>(), sizes: new Map<string, number>(), size: 0 },
    };
    this.watching.set(id, watching);
    names?.apart.add(watching);
    if (names?.isJoining) return watching;
    watching.feed = this.follow(scope, [watching]);
    if (names && names.apart.size > names.bound) void this.join(names);
    return watching;
  }

  /** Returns the names that a query may share a watch with. */
  private namesOf(lookup: Lookup, { namespace }: Query, asked: Scope): Names | undefined {
    if (!mayShare(asked)) return undefined;
    const id = JSON.stringify([this.numberOf(lookup), namespace]);
    const scope = scopeOf(lookup, { ...(namespace !== undefined && { namespace }) });
    const names = this.names.get(id) ?? { id, scope, apart: new Set(), bound: APART, isJoining: false };
    this.names.set(id, names);
    return names;
  }

  /** Watches what queries ask for. */
  private follow(scope: Scope, asked: readonly Watching[]): Feed {
    const { namespace, name, selector } = scope;
    const end = new AbortController();
    const queries = new Map(asked.map((each) => [each.scope.name, each]));
    const queryOf = (object: AnyObject): Watching | undefined =>
      queries.get(object.metadata.name) ?? queries.get(undefined);
    const store = new Store({
      keep: (object) => {
        const query = queryOf(object);
        // Nothing refers to it, or it comes before the watch has ended.
        if (!query || end.signal.aborted) return undefined;
        const kept = query.keep(object);
        this.resize(query, keyOf(object), sizeOf(kept));
        this.limit(query);
        return queryOf(object) && kept;
      },
      ...{ readOnly: true, perNamespace: namespace !== undefined },
      ...(selector !== undefined && { selector }),
      ...(name !== undefined && { name }),
    });
    const feed: Feed = { store, reflector: this.props.reflector(scope, store), end, queries };
    let isKnown = false;
    store.onChange((before, after) => {
      const object = after ?? before;
      const query = object && queryOf(object);
      if (query?.feed !== feed) {
        if (query && isKnown) this.change(query, feed);
        return;
      }
      if (before && !after) this.resize(query, keyOf(before), 0);
      if (isKnown && !sameButVersion(before, after)) this.wake(query);
    });
    void feed.reflector.firstSync.then(() => {
      isKnown = true;
      for (const query of [...queries.values()])
        if (query.feed === feed) this.wake(query);
        else this.change(query, feed);
    });
    void feed.reflector.run(end.signal);
    return feed;
  }

  /** Has names share one watch, unless most objects of their namespace are others. Meanwhile each has the watch that it had. */
  private async join(names: Names): Promise<void> {
    names.isJoining = true;
    while (names.apart.size > names.bound) {
      const asked = names.apart.size;
      await sleep(this.props.clock, BURST);
      if (names.apart.size > 1.25 * asked) continue;
      const total = await this.props.count(names.scope).catch(() => Infinity);
      const all = new Set([...(names.shared?.queries.values() ?? []), ...names.apart]);
      const isWorthIt = all.size > 0 && total <= all.size * OBJECTS_PER_NAME;
      const isListed = isWorthIt && (await this.share(names, [...all]));
      // So all lists together are some times as many objects as there are names, however slowly these come.
      names.bound = isListed ? APART + all.size / 4 : Math.max(APART, 2 * names.apart.size);
    }
    names.isJoining = false;
    for (const query of names.apart) query.feed ??= this.follow(query.scope, [query]);
  }

  private async share(names: Names, all: readonly Watching[]): Promise<boolean> {
    const feed = this.follow(names.scope, all);
    for (const query of all) {
      if (query.next) this.quit(query.next, query);
      query.next = feed;
    }
    const late = new AbortController();
    await Promise.race([
      feed.reflector.firstSync,
      aborted(feed.end.signal),
      sleep(this.props.clock, LISTING, late.signal),
    ]);
    late.abort();
    if (feed.reflector.synced) names.shared = feed;
    else for (const query of [...feed.queries.values()]) this.quit(feed, query);
    return feed.reflector.synced;
  }

  /** Has a query be answered by its next watch, once that has seen what the one before has. */
  private change(query: Watching, feed: Feed): void {
    const { feed: before, scope, names } = query;
    const { namespace, name = '' } = scope;
    const key = objectKey(namespace, name);
    const [old, now] = [before, feed].map((each) => each?.store.get(key)?.object);
    const isAnswered = before?.reflector.synced === true;
    const [was, is] = [old, now].map((each) => each?.metadata.resourceVersion);
    const isBehind = was
      ? !feed.store.hasPassed(was, namespace)
      : is && before?.store.hasPassed(is, namespace);
    if (isAnswered && was !== is && isBehind) return;
    query.feed = feed;
    delete query.next;
    names?.apart.delete(query);
    if (!now) this.resize(query, key, 0);
    if (before) this.quit(before, query);
    if (!isAnswered || (old !== now && !sameButVersion(old, now))) this.wake(query);
  }

  /** Ends a watch with the last query that it answers; of one that goes before, nothing is kept. */
  private quit({ store, queries, end }: Feed, { scope: { namespace, name } }: Watching): void {
    queries.delete(name);
    if (queries.size === 0) end.abort();
    else if (name !== undefined) store.gone(objectKey(namespace, name));
  }

  private wake({ keys }: Watching): void {
    for (const each of keys.values()) for (const key of each) this.props.wake(key);
  }

  private resize(watching: Watching, key: string, size: number): void {
    const { sizes, keys } = watching;
    const change = size - (sizes.get(key) ?? 0);
    watching.size += change;
    for (const tenant of keys.keys()) add(this.sizes, tenant, change);
    if (size > 0) sizes.set(key, size);
    else sizes.delete(key);
  }

  /** Gives a query up for the tenants that it finds too much for, by itself or with their other queries. */
  private limit(watching: Watching): void {
    const isLong = watching.sizes.size > MAX_OBJECTS;
    for (const [tenant, keys] of watching.keys) {
      if (!isLong && (this.sizes.get(tenant) ?? 0) <= MAX_SIZE) continue;
      const why = isLong
        ? `it has more than ${MAX_OBJECTS.toLocaleString('en')} objects`
        : `all that is referred to from ${tenant} has more than ${MAX_SIZE / 1024 / 1024} MiB`;
      const now = this.props.clock.monotonic();
      for (const [other, { until }] of this.refused) if (until <= now) this.refused.delete(other);
      const found = { why, isTooMuch: true };
      this.refused.set(`${tenant} ${watching.id}`, { found, until: now + TOO_LARGE.least });
      this.drop(watching, tenant);
      for (const key of keys) this.props.wake(key);
    }
  }

  private refusal(tenant: string, id: string): Found | undefined {
    const { found, until = 0 } = this.refused.get(`${tenant} ${id}`) ?? {};
    return this.props.clock.monotonic() < until ? found : undefined;
  }

  private leave(id: string, key: string): void {
    const watching = this.watching.get(id);
    const keys = watching?.keys.get(tenantOf(key));
    if (watching && keys?.delete(key) && keys.size === 0) this.drop(watching, tenantOf(key));
  }

  /** Ends the watch with the last tenant whose keys ask for it. */
  private drop(watching: Watching, tenant: string): void {
    if (watching.keys.delete(tenant)) {
      add(this.sizes, tenant, -watching.size);
      if (!watching.names) add(this.watches, tenant, -1);
    }
    if (watching.keys.size > 0) return;
    this.watching.delete(watching.id);
    for (const feed of [watching.feed, watching.next]) if (feed) this.quit(feed, watching);
    const { names } = watching;
    names?.apart.delete(watching);
    if (names?.apart.size === 0 && !names.shared?.queries.size) this.names.delete(names.id);
  }
}

const TOO_MANY: Found = {
  why: `it would need more than ${MAX_WATCHES.toLocaleString('en')} watches with all else that is referred to from there`,
  isTooMuch: true,
};

/** Reports whether a query is for one name, which may share a watch. No Secret is read that none refers to. */
function mayShare({ type, namespace, name }: Scope): boolean {
  return name !== undefined && type.namespaced === (namespace !== undefined) && groupKind(type) !== 'Secret';
}

function add(sums: Map<string, number>, tenant: string, change: number): void {
  const sum = (sums.get(tenant) ?? 0) + change;
  if (sum > 0) sums.set(tenant, sum);
  else sums.delete(tenant);
}

/** Returns who shares the bounds with a key: all of its namespace, or itself alone where it has none. */
function tenantOf(key: string): string {
  const { namespace, name } = splitKey(key);
  return namespace === undefined ? name : `the namespace ${namespace}`;
}

/** Returns the characters of an object as JSON, and more for each value: small ones take more memory than their text. */
function sizeOf(object: AnyObject): number {
  const values = (value: unknown): number =>
    isContainer(value) ? Object.values(value).reduce<number>((sum, each) => sum + values(each), 1) : 1;
  return canonicalJson(object).length + VALUE_SIZE * values(object);
}

/** Returns what a query asks the API server for. */
export function scopeOf({ type }: Lookup, { namespace, name, selector }: Query): Scope {
  return {
    type,
    ...(namespace !== undefined && namespace !== '*' && { namespace }),
    ...(name === undefined ? { pageObjects: PAGE_OBJECTS } : { name }),
    ...(selector !== undefined && { selector }),
  };
}

function answerOf({ feed, scope: { namespace, name } }: Watching): Found {
  if (!feed) return {};
  const { store, reflector } = feed;
  const { failure, doubtful, synced } = reflector;
  const why = doubtful ?? failure?.message;
  if (!synced || store.unservedIn(namespace) === 'doubtful') return why === undefined ? {} : { why };
  if (name === undefined) return { objects: byName(store.objects()) };
  const one = store.get(objectKey(namespace, name));
  return { objects: one ? [one.object] : [] };
}

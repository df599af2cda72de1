import type { Found, Lookup, Query } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { byName, keyOf, splitKey } from '../../contract/object.js';
import { canonicalJson, isContainer } from '../../values/json.js';
import type { Scope } from '../../client/api.js';
import { sameButVersion, Store } from './cache.js';
import type { Finder } from './reader.js';
import type { Clock } from '../../client/clock.js';
import type { Reflector } from './reflector.js';
import { TOO_LARGE } from '../../client/retry.js';

/** Maximum number of objects that one query finds. */
const MAX_OBJECTS = 1_000;
/** Maximum size of what is looked up for the keys of one tenant, as `sizeOf` counts; in memory it takes up to three times as much. */
const MAX_SIZE = 16 * 1024 * 1024;
/** Size of each value, beside its JSON. */
const VALUE_SIZE = 32;
/** Number of objects on a page: that many of the largest are no load for the memory. */
const PAGE_OBJECTS = 50;

export interface LookupsProps {
  /** Makes what keeps a store equal to what the API server has. */
  readonly reflector: (scope: Scope, store: Store) => Reflector;
  /** Takes a key that has asked for what has changed. */
  readonly wake: (key: string) => void;
  readonly clock: Clock;
}

/** A query that is being watched. */
interface Watching {
  readonly scope: Scope;
  readonly store: Store;
  readonly reflector: Reflector;
  readonly end: AbortController;
  /** Keys that ask for it, by their tenant. */
  readonly keys: Map<string, Set<string>>;
  /** Sizes of what is kept, by key, and their sum. */
  readonly sizes: Map<string, number>;
  size: number;
}

/**
 * Lookups of the plans of one controller: each query has a watch of its own, for as long as the latest plan of some key asks for it.
 * A query beyond the bounds is given up for the keys of a tenant; see docs/engine.md.
 */
export class Lookups {
  private readonly watching = new Map<string, Watching>();
  /** Queries of the latest plan of each key. */
  private readonly asked = new Map<string, Set<string>>();
  private readonly numbers = new Map<Lookup, number>();
  /** Answers to queries that find too much, by tenant of keys and query. */
  private readonly refused = new Map<string, { readonly found: Found; readonly until: number }>();
  /** Size of all that is looked up, by tenant of keys. */
  private readonly sizes = new Map<string, number>();

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
        const watching = this.watching.get(id) ?? this.open(id, lookup, scope);
        const keys = watching.keys.get(tenant);
        watching.keys.set(tenant, (keys ?? new Set()).add(key));
        if (!keys) this.charge(tenant, watching.size);
        this.limit(id, watching);
        return this.refusal(tenant, id) ?? answerOf(watching, scope);
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
    for (const [id, watching] of this.watching)
      for (const tenant of watching.keys.keys()) this.drop(id, watching, tenant);
    this.refused.clear();
  }

  private numberOf(lookup: Lookup): number {
    const number = this.numbers.get(lookup) ?? this.numbers.size;
    this.numbers.set(lookup, number);
    return number;
  }

  private open(id: string, { keep }: Lookup, scope: Scope): Watching {
    const { reflector, wake } = this.props;
    const { namespace, name, selector } = scope;
    const end = new AbortController();
    const store = new Store({
      keep: (object) => {
        // Those that come before the watch has ended.
        if (end.signal.aborted) return undefined;
        const kept = keep(object);
        this.resize(watching, keyOf(object), sizeOf(kept));
        this.limit(id, watching);
        return this.watching.get(id) === watching ? kept : undefined;
      },
      ...{ readOnly: true, perNamespace: namespace !== undefined },
      ...(selector !== undefined && { selector }),
      ...(name !== undefined && { name }),
    });
    const watching: Watching = {
      ...{ scope, store, reflector: reflector(scope, store), end },
      ...{ keys: new Map<string, Set<string>>(), sizes: new Map<string, number>(), size: 0 },
    };
    const wakeAll = (): void => {
      for (const keys of watching.keys.values()) for (const key of keys) wake(key);
    };
    let isKnown = false;
    store.onChange((before, after) => {
      if (before && !after) this.resize(watching, keyOf(before), 0);
      if (isKnown && !sameButVersion(before, after)) wakeAll();
    });
    this.watching.set(id, watching);
    void watching.reflector.firstSync.then(() => {
      isKnown = true;
      wakeAll();
    });
    void watching.reflector.run(end.signal);
    return watching;
  }

  private resize(watching: Watching, key: string, size: number): void {
    const { sizes, keys } = watching;
    const change = size - (sizes.get(key) ?? 0);
    watching.size += change;
    for (const tenant of keys.keys()) this.charge(tenant, change);
    if (size > 0) sizes.set(key, size);
    else sizes.delete(key);
  }

  private charge(tenant: string, change: number): void {
    const size = (this.sizes.get(tenant) ?? 0) + change;
    if (size > 0) this.sizes.set(tenant, size);
    else this.sizes.delete(tenant);
  }

  /** Gives a query up for the tenants that it finds too much for, by itself or with their other queries. */
  private limit(id: string, watching: Watching): void {
    const isLong = watching.sizes.size > MAX_OBJECTS;
    for (const [tenant, keys] of watching.keys) {
      if (!isLong && (this.sizes.get(tenant) ?? 0) <= MAX_SIZE) continue;
      const why = isLong
        ? `it has more than ${MAX_OBJECTS.toLocaleString('en')} objects`
        : `all that is referred to from ${tenant} has more than ${MAX_SIZE / 1024 / 1024} MiB`;
      const now = this.props.clock.monotonic();
      for (const [other, { until }] of this.refused) if (until <= now) this.refused.delete(other);
      const found = { why, isTooMuch: true };
      this.refused.set(`${tenant} ${id}`, { found, until: now + TOO_LARGE.least });
      this.drop(id, watching, tenant);
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
    if (watching && keys?.delete(key) && keys.size === 0) this.drop(id, watching, tenantOf(key));
  }

  /** Ends the watch with the last tenant whose keys ask for it. */
  private drop(id: string, watching: Watching, tenant: string): void {
    if (watching.keys.delete(tenant)) this.charge(tenant, -watching.size);
    if (watching.keys.size > 0) return;
    watching.end.abort();
    this.watching.delete(id);
  }
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

function answerOf({ reflector, store }: Watching, { namespace }: Scope): Found {
  const { failure, doubtful, synced } = reflector;
  const why = doubtful ?? failure?.message;
  if (!synced || store.unservedIn(namespace) === 'doubtful') return why === undefined ? {} : { why };
  return { objects: byName(store.objects()) };
}

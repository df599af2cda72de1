import type { Found, Lookup, Query } from '../contract/controller.js';
import { byName, canonicalJson, keyOf } from '../contract/object.js';
import type { Scope } from './api.js';
import { sameButVersion, Store } from './cache.js';
import type { Clock } from './clock.js';
import type { Reflector } from './reflector.js';
import { TOO_LARGE } from './retry.js';

/** Maximum number of objects that one query finds. */
const MAX_OBJECTS = 1_000;
/** Maximum size of what the queries of one namespace find, in characters of JSON; in memory it takes up to four times as much. */
const MAX_SIZE = 16 * 1024 * 1024;
/** The largest objects, as many as this, are no load for the memory. */
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
  readonly keys: Set<string>;
  readonly end: AbortController;
  /** Sizes of what is kept, by key. */
  readonly sizes: Map<string, number>;
}

/** A query that found too much, until it is asked again. */
interface Refused {
  readonly why: string;
  readonly at: number;
}

/** Looks up objects for the plan of one key. */
export interface Finder {
  find(lookup: Lookup, query: Query): Found;
}

/**
 * What the plans of one controller look up: each query has a watch of its own, for as long as the latest plan of some key asks
 * for it.
 *
 * **Guarantees.** A query is answered by what a complete list and its watch have shown. Its keys are woken once it is known, and
 * by every change of what is kept. Nothing else is read, or kept in memory. What is kept is bounded, for each namespace by
 * itself: a query beyond it is given up, and asked again by a plan that comes a minute later.
 */
export class Lookups {
  private readonly watching = new Map<string, Watching>();
  /** By key, the queries of its latest plan. */
  private readonly asked = new Map<string, Set<string>>();
  private readonly numbers = new Map<Lookup, number>();
  /** Keyed by query. */
  private readonly refused = new Map<string, Refused>();
  /** Keyed by namespace. */
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
        const refused = this.refused.get(id);
        if (refused && this.props.clock.monotonic() - refused.at < TOO_LARGE.least)
          return { why: refused.why, isTooMuch: true };
        this.refused.delete(id);
        const watching = this.watching.get(id) ?? this.open(id, lookup, scope);
        watching.keys.add(key);
        return answerOf(watching, scope);
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
    for (const id of this.watching.keys()) this.close(id);
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
    const [keys, sizes, end] = [new Set<string>(), new Map<string, number>(), new AbortController()];
    const store = new Store({
      keep: (object) => {
        // Those that come before the watch has ended.
        if (end.signal.aborted) return undefined;
        const kept = keep(object);
        this.resize(watching, keyOf(object), canonicalJson(kept).length);
        return this.isTooMuch(id, watching) ? undefined : kept;
      },
      ...{ readOnly: true, perNamespace: namespace !== undefined },
      ...(selector !== undefined && { selector }),
      ...(name !== undefined && { name }),
    });
    const watching: Watching = { scope, store, reflector: reflector(scope, store), keys, end, sizes };
    const wakeAll = (): void => {
      for (const key of keys) wake(key);
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

  private resize({ sizes, scope: { namespace = '' } }: Watching, key: string, size: number): void {
    const total = (this.sizes.get(namespace) ?? 0) + size - (sizes.get(key) ?? 0);
    if (total > 0) this.sizes.set(namespace, total);
    else this.sizes.delete(namespace);
    if (size > 0) sizes.set(key, size);
    else sizes.delete(key);
  }

  /** Gives a query up where it finds too much. */
  private isTooMuch(id: string, { scope: { namespace = '' }, sizes, keys }: Watching): boolean {
    const isLarge = (this.sizes.get(namespace) ?? 0) > MAX_SIZE;
    if (!isLarge && sizes.size <= MAX_OBJECTS) return false;
    const most = MAX_OBJECTS.toLocaleString('en');
    const where = namespace ? `in the namespace ${namespace} ` : '';
    const why = isLarge
      ? `all that is referred to ${where}has more than ${MAX_SIZE / 1024 / 1024} MiB`
      : `it has more than ${most} objects`;
    this.refused.set(id, { why, at: this.props.clock.monotonic() });
    this.close(id);
    for (const key of keys) this.props.wake(key);
    return true;
  }

  private leave(id: string, key: string): void {
    const watching = this.watching.get(id);
    if (!watching) this.refused.delete(id);
    else if (watching.keys.delete(key) && watching.keys.size === 0) this.close(id);
  }

  private close(id: string): void {
    const watching = this.watching.get(id);
    if (!watching) return;
    watching.end.abort();
    this.watching.delete(id);
    for (const key of watching.sizes.keys()) this.resize(watching, key, 0);
  }
}

/** Returns what a query asks the API server for. */
export function scopeOf({ type }: Lookup, { namespace, name, labels }: Query): Scope {
  const selector = labels && Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return {
    type,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(selector && { selector: selector.sort().join(), pageObjects: PAGE_OBJECTS }),
  };
}

function answerOf({ reflector, store }: Watching, { namespace }: Scope): Found {
  const { failure, doubtful, synced } = reflector;
  const why = doubtful ?? failure?.message;
  if (!synced || store.unservedIn(namespace) === 'doubtful') return why === undefined ? {} : { why };
  return { objects: byName(store.objects()) };
}

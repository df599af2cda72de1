import type { Found, Lookup, Query } from '../contract/controller.js';
import { byName } from '../contract/object.js';
import type { Scope } from './api.js';
import { sameButVersion, Store } from './cache.js';
import type { Reflector } from './reflector.js';

export interface LookupsProps {
  /** Makes what keeps a store equal to what the API server has. */
  readonly reflector: (scope: Scope, store: Store) => Reflector;
  /** Takes a key that has asked for what has changed. */
  readonly wake: (key: string) => void;
}

/** A query that is being watched. */
interface Watching {
  readonly store: Store;
  readonly reflector: Reflector;
  readonly keys: Set<string>;
  readonly end: AbortController;
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
 * by every change of what is kept. Nothing else is read, or kept in memory.
 */
export class Lookups {
  private readonly watching = new Map<string, Watching>();
  /** By key, the queries of its latest plan. */
  private readonly asked = new Map<string, Set<string>>();
  private readonly numbers = new Map<Lookup, number>();

  constructor(private readonly props: LookupsProps) {}

  /** Makes the plan of a key; what it doesn't ask for is given up, unless it throws. */
  plan<T>(key: string, make: (finder: Finder) => T): T {
    const asked = this.asked.get(key) ?? new Set<string>();
    const needed = new Set<string>();
    const made = make({
      find: (lookup, query) => {
        const scope = scopeOf(lookup, query);
        const id = JSON.stringify([this.numberOf(lookup), scope.namespace, scope.name, scope.selector]);
        const watching = this.watching.get(id) ?? this.open(id, lookup, scope);
        watching.keys.add(key);
        this.asked.set(key, asked.add(id));
        needed.add(id);
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
    for (const { end } of this.watching.values()) end.abort();
    this.watching.clear();
  }

  private numberOf(lookup: Lookup): number {
    const number = this.numbers.get(lookup) ?? this.numbers.size;
    this.numbers.set(lookup, number);
    return number;
  }

  private open(id: string, { keep }: Lookup, scope: Scope): Watching {
    const { reflector, wake } = this.props;
    const { namespace, name, selector } = scope;
    const store = new Store({
      ...{
        keep,
        readOnly: true,
        perNamespace: namespace !== undefined,
        ...(selector !== undefined && { selector }),
      },
      ...(name !== undefined && { name }),
    });
    const keys = new Set<string>();
    const wakeAll = (): void => {
      for (const key of keys) wake(key);
    };
    let isKnown = false;
    store.onChange((before, after) => {
      if (isKnown && !sameButVersion(before, after)) wakeAll();
    });
    const watching = { store, reflector: reflector(scope, store), keys, end: new AbortController() };
    this.watching.set(id, watching);
    void watching.reflector.firstSync.then(() => {
      isKnown = true;
      wakeAll();
    });
    void watching.reflector.run(watching.end.signal);
    return watching;
  }

  private leave(id: string, key: string): void {
    const watching = this.watching.get(id);
    if (!watching?.keys.delete(key) || watching.keys.size > 0) return;
    watching.end.abort();
    this.watching.delete(id);
  }
}

/** Returns what a query asks the API server for. */
export function scopeOf({ type }: Lookup, { namespace, name, labels }: Query): Scope {
  const selector = labels && Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return {
    type,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(selector && { selector: selector.sort().join() }),
  };
}

function answerOf({ reflector, store }: Watching, { namespace }: Scope): Found {
  const { failure, doubtful, synced } = reflector;
  const why = doubtful ?? failure?.message;
  if (!synced || store.unservedIn(namespace) === 'doubtful') return why === undefined ? {} : { why };
  return { objects: byName(store.objects()) };
}

import type { Found, Lookup, Query, Reader, TypeRef, Watch } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { describeRef, groupOf, splitKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Logger } from '../../telemetry/logger.js';
import { keepStatus } from '../../values/projections.js';
import type { Scope } from '../../client/api.js';
import { Store } from './cache.js';
import type { ObjectIndex } from './cache.js';

/** A store, and the watch that fills it. */
export interface WatchedStore {
  /** The first of the watches that share it: what `Stores.open` compares holds for all of them. */
  readonly watch: Watch;
  readonly store: Store;
  /** Whether no controller that reads it needs the kind to be installed. */
  readonly optional: boolean;
  /** Whether `mayBeDoubtful` holds for each of them. */
  readonly mayBeDoubtful: boolean;
}

/**
 * Reports whether plans that name no object of a watch go on while it is doubtful what there is of its kind. They may not where
 * they follow from objects of others: what has to be given up there isn't known.
 */
export function mayBeDoubtful({ optional = false, readOnly, writes = [] }: Watch): boolean {
  const isOfOthers = readOnly ?? (writes.includes('patch') && !writes.includes('create'));
  return optional && !isOfOthers;
}

/** Returns what has to be watched for one store: everything at once, or each namespace by itself. */
export function scopesOf(watch: Watch, namespaces: readonly string[]): Scope[] {
  const { type, selector, name } = watch;
  const scope = { type, ...(selector !== undefined && { selector }), ...(name !== undefined && { name }) };
  const only = watch.namespaces ?? namespaces;
  if (!type.namespaced || only === '*' || (only.length === 0 && !watch.namespaces)) return [scope];
  return only.map((namespace) => ({ ...scope, namespace }));
}

export interface StoresProps {
  readonly perNamespace: boolean;
  readonly freeze: boolean;
  /** For the bugs of kinds. @default silentLogger */
  readonly log?: Logger;
}

/**
 * The stores of all controllers: one for each combination of type, selector, name, namespaces, projection and whether
 * it is only read, however many read it.
 */
export class Stores {
  private readonly watched: (WatchedStore & { optional: boolean; mayBeDoubtful: boolean })[] = [];

  constructor(private readonly props: StoresProps) {}

  /** The store for a watch, made when the first one asks. */
  open(watch: Watch): Store {
    const { optional = false, keep = keepStatus, readOnly = false } = watch;
    const known = this.watched.find(
      ({ watch: other }) =>
        groupKind(other.type) === groupKind(watch.type) &&
        other.selector === watch.selector &&
        other.name === watch.name &&
        String(other.namespaces) === String(watch.namespaces) &&
        other.keep === watch.keep &&
        (other.readOnly ?? false) === readOnly,
    );
    if (known) {
      known.optional &&= optional;
      known.mayBeDoubtful &&= mayBeDoubtful(watch);
      return known.store;
    }
    const { namespaces } = watch;
    const perNamespace = namespaces === undefined ? this.props.perNamespace : namespaces !== '*';
    const store = new Store({ ...watch, ...this.props, keep, perNamespace, dropsUnreadable: readOnly });
    this.watched.push({ watch, store, optional, mayBeDoubtful: mayBeDoubtful(watch) });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }
}

/** Looks up objects for the plan of one key. */
export type Finder = Pick<Reader, 'find'>;

/** Watch of a controller, and the store that it fills. */
interface Watched {
  readonly watch: Watch;
  readonly store: Store;
  /** Objects by the keys that they map to, made at the first use: most controllers never need it. */
  mapped?: ObjectIndex;
}

type ObjectName = Pick<AnyObject['metadata'], 'namespace' | 'name'>;

/** A type alone, or an object of it. */
type Subject = TypeRef & Partial<Pick<AnyObject, 'metadata'>>;

/**
 * View of one controller: the stores of its own watches.
 *
 * **Guarantees.** An object that several watches of its type cover belongs to the most precise alone, as if the others didn't
 * deliver it: a watch of its name comes before one of its namespace, and that before one of all. Among equals it is the
 * one that was declared first.
 */
export class StoreReader implements Reader {
  private constructor(
    /** Watches of each type, the most precise first. */
    private readonly byType: ReadonlyMap<string, readonly Watched[]>,
    /** Names the controller in metrics. */
    readonly controller: string,
    private readonly finder?: Finder,
  ) {}

  /** @param controller names it in metrics */
  static open(watches: readonly Watch[], stores: Stores, controller = ''): StoreReader {
    refuseTwins(watches);
    const all = watches.map((watch) => ({ watch, store: stores.open(watch) }));
    all.sort((a, b) => precision(b.watch) - precision(a.watch));
    return new StoreReader(
      Map.groupBy(all, ({ watch }) => groupKind(watch.type)),
      controller,
    );
  }

  /** The same, for a plan that looks up objects. */
  withFinder(finder: Finder): StoreReader {
    return new StoreReader(this.byType, this.controller, finder);
  }

  find(lookup: Lookup, query: Query): Found {
    return this.finder?.find(lookup, query) ?? {};
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.watched(type, key).store.get(key)?.object;
  }

  all(type: TypeRef): readonly AnyObject[] {
    return this.among(type, ({ store }) => store.objects());
  }

  controlledBy(type: TypeRef, ownerUid: string, fieldManager?: string): readonly AnyObject[] {
    return this.among(type, ({ store }) => store.controlledBy(ownerUid, fieldManager));
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    return this.among(type, (watched) => (watched.mapped ??= indexOf(watched)).objectsOf(key));
  }

  /** Returns the store of an object, whether or not it is there; where several watches share a type, the type alone names the broadest. */
  store(of: Subject): Store {
    return this.watched(of, of.metadata).store;
  }

  /** Returns the store that a watch of the controller fills. */
  storeOf(watch: Watch): Store {
    const found = this.byType.get(groupKind(watch.type))?.find((watched) => watched.watch === watch);
    return (found ?? this.watched(watch.type)).store;
  }

  /** Reports whether an object that a watch of the controller delivers belongs to it, and not to a more precise one. */
  belongsTo(watch: Watch, object: AnyObject): boolean {
    return this.watched(object, object.metadata).watch === watch;
  }

  /** Reports whether the controller watches such objects. */
  isWatched(type: TypeRef): boolean {
    return this.byType.has(groupKind(type));
  }

  /** Returns what an object claims, by the watch that it belongs to; see `Watch.claims`. */
  claimsOf(object: AnyObject): readonly string[] {
    if (!this.byType.has(groupKind(object))) return [];
    const { watch } = this.watched(object, object.metadata);
    return watch.claims ? textsOf('claims', watch.claims(object)) : [];
  }

  /** Returns the type as it is served. */
  resourceType(type: TypeRef): ResourceType {
    return this.watched(type).watch.type;
  }

  /** Returns why an object may not be written or deleted: its kind isn't served, and may be installed all the same. */
  notServed(object: AnyObject): OperatorError | undefined {
    // What isn't watched is refused when it is applied.
    if (!this.byType.has(groupKind(object))) return undefined;
    const { store } = this.watched(object, object.metadata);
    if (store.unservedIn(object.metadata.namespace) !== 'doubtful') return undefined;
    const { apiVersion, kind } = object;
    return new OperatorError({
      reason: 'KindNotServed',
      retry: 'backoff',
      message: `${describeRef(object)} can't be changed: ${kind} is not served as ${apiVersion}; /readyz?verbose of the operator says why`,
    });
  }

  /**
   * Before an object is applied: that its kind is served, as far as is known.
   * @throws OperatorError `KindNotServed` where that is doubtful, `KindNotInstalled` where an optional one isn't installed
   */
  checkServed(object: AnyObject): void {
    const { watch, store } = this.watched(object, object.metadata);
    if (!store.unservedIn(object.metadata.namespace)) return;
    const doubtful = this.notServed(object);
    if (doubtful) throw doubtful;
    if (!watch.optional) return;
    const group = groupOf(object.apiVersion) || 'core';
    throw new OperatorError({
      reason: KIND_NOT_INSTALLED,
      message: `${describeRef(object)} can't be made: the kind ${object.kind} of the group ${group} is not installed in this cluster; install its CustomResourceDefinition (${object.apiVersion}), or remove what asks for it`,
    });
  }

  /** Returns the watch that an object belongs to, whether or not it is there; without its name, the broadest. */
  private watched(type: TypeRef, at?: string | ObjectName): Watched {
    const all = this.byType.get(groupKind(type));
    const broadest = all?.at(-1);
    if (!broadest)
      throw new OperatorError({
        reason: 'UndeclaredType',
        message: `${groupKind(type)} is not among the controller's watches: declare it, so that it is watched and permitted`,
      });
    if (all?.length === 1 || at === undefined) return broadest;
    const { namespace = '', name } = typeof at === 'string' ? splitKey(at) : at;
    return all?.find(({ watch }) => covers(watch, namespace, name)) ?? broadest;
  }

  /** Joins what each watch of a type finds among the objects that belong to it. */
  private among(type: TypeRef, find: (watched: Watched) => readonly AnyObject[]): readonly AnyObject[] {
    const broadest = this.watched(type);
    const all = this.byType.get(groupKind(type)) ?? [];
    if (all.length === 1) return find(broadest);
    return all.flatMap((watched) =>
      find(watched).filter((object) => this.watched(object, object.metadata) === watched),
    );
  }
}

/** Reason of a failure that ends as soon as the kind can be listed. */
export const KIND_NOT_INSTALLED = 'KindNotInstalled';

/** @throws OperatorError where two watches of one type can't be told apart */
function refuseTwins(watches: readonly Watch[]): void {
  const places = watches.map(({ type, namespaces, name }) =>
    JSON.stringify([groupKind(type), namespaces === '*' ? namespaces : namespaces?.toSorted(), name]),
  );
  const twin = watches.find((_, index) => places.indexOf(places[index] ?? '') !== index);
  if (!twin) return;
  throw new OperatorError({
    reason: 'InvalidDefinition',
    message: `${groupKind(twin.type)} is watched twice by one controller; watch it once, or tell the watches apart by namespaces or name`,
  });
}

/** A mapping that throws is reported where the keys are queued. */
function indexOf({ watch, store }: Watched): ObjectIndex {
  return store.indexedBy((object) => {
    try {
      return textsOf('mapsTo', watch.mapsTo(object));
    } catch {
      return [];
    }
  });
}

function precision({ name, namespaces }: Watch): number {
  return (name === undefined ? 0 : 2) + (namespaces === undefined || namespaces === '*' ? 0 : 1);
}

function covers({ name, namespaces }: Watch, namespace: string, itsName: string): boolean {
  if (name !== undefined && name !== itsName) return false;
  return namespaces === undefined || namespaces === '*' || namespaces.includes(namespace);
}

/**
 * Returns texts that a function of a watch has returned.
 * @throws TypeError for anything else
 */
export function textsOf(name: string, returned: unknown): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(returned) ? returned : [undefined];
  for (const text of texts)
    if (typeof text !== 'string') throw new TypeError(`${name} has to return a list of texts`);
  return texts as readonly string[];
}

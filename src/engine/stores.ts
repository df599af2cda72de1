import type { Reader, TypeRef, Watch, Deletion } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, objectKey, refOf, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { keepIdentity, keepStatus } from '../contract/projections.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { silentLogger } from '../telemetry/logger.js';
import type { Logger } from '../telemetry/logger.js';
import { systemClock } from './clock.js';
import { Deletions } from './deletions.js';
import type { Writer } from './pending-writes.js';
import { ServerTime } from './server-time.js';
import { Store } from './store.js';

/** A store, and the watch that fills it. */
export interface WatchedStore {
  readonly type: ResourceType;
  readonly selector?: string;
  readonly name?: string;
  /** Only these, whichever are watched else. */
  readonly namespaces?: readonly string[];
  readonly store: Store;
  /** None of those who read it needs the kind to be installed. */
  readonly optional: boolean;
  /** None of those who read it writes such objects. */
  readonly readOnly: boolean;
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
  private readonly watched: (WatchedStore & { readonly keep: Watch['keep']; optional: boolean })[] = [];

  constructor(private readonly props: StoresProps) {}

  /** The store for a watch, made when the first one asks. */
  open(watch: Watch): Store {
    const { optional = false, readOnly = false } = watch;
    const known = this.watched.find(
      (other) =>
        groupKind(other.type) === groupKind(watch.type) &&
        other.selector === watch.selector &&
        other.name === watch.name &&
        other.namespaces?.join() === watch.namespaces?.join() &&
        other.keep === watch.keep &&
        other.readOnly === readOnly,
    );
    if (known) {
      known.optional &&= optional;
      return known.store;
    }
    const store = this.make(watch);
    const { type, selector, name, namespaces, keep } = watch;
    const narrowed = {
      ...(selector !== undefined && { selector }),
      ...(name !== undefined && { name }),
      ...(namespaces && { namespaces }),
    };
    this.watched.push({ type, ...narrowed, store, keep, optional, readOnly });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }

  private make({ keep = keepStatus, selector, name, namespaces, readOnly = false }: Watch): Store {
    const { freeze, log = silentLogger } = this.props;
    const perNamespace = this.props.perNamespace || namespaces !== undefined;
    const store: Store = new Store({
      ...{ perNamespace, freeze },
      ...{ selective: selector !== undefined, readOnly, ...(name !== undefined && { name }) },
      keep: guardedKeep(
        keep,
        readOnly,
        reportTo(log, readOnly, () => store),
      ),
    });
    return store;
  }
}

/** What a reader knows beside the stores; one for each controller. */
export interface Known {
  /** Names it in metrics. @default - no name */
  readonly controller?: string;
  readonly deletions?: Deletions;
  readonly time?: ServerTime;
}

/** What one controller may see: the stores of its own watches. */
export class StoreReader implements Reader {
  /** As what the stores know whoever writes here; listeners take its `listener` for their own name. */
  readonly writer: Writer;

  private constructor(
    private readonly byType: ReadonlyMap<string, WatchesOfType>,
    private readonly known: Required<Known>,
    writer?: Writer,
  ) {
    this.writer = writer ?? { listener: this };
  }

  static open(watches: readonly Watch[], stores: Stores, known: Known = {}): StoreReader {
    const {
      controller = '',
      deletions = new Deletions(systemClock),
      time = new ServerTime(systemClock),
    } = known;
    refuseTwins(watches);
    const byType = new Map<string, WatchesOfType>();
    for (const watch of watches) {
      const type = groupKind(watch.type);
      byType.set(type, new WatchesOfType(new Watched(watch, stores.open(watch)), byType.get(type)?.all));
    }
    return new StoreReader(byType, { controller, deletions, time });
  }

  /** The same, for the plan of one key: what is written there is known as that key's. */
  forKey(key: string): StoreReader {
    return new StoreReader(this.byType, this.known, { listener: this.writer.listener, key });
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.watched(type).of(key).store.get(key)?.object;
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    return this.watched(type).flatMap(({ store }) => store.controlledBy(ownerUid));
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    return this.watched(type).flatMap(({ mapped }) => mapped.objectsOf(key));
  }

  deletions(type: TypeRef, key: string): readonly Deletion[] {
    return this.known.deletions.of(this.resourceType(type), key);
  }

  get clockSkewMilliseconds(): number | undefined {
    return this.known.time.skewMilliseconds;
  }

  /** Names it in metrics. */
  get controller(): string {
    return this.known.controller;
  }

  /** It was deleted for this controller. */
  deleted(object: AnyObject): void {
    this.known.deletions.add(object);
  }

  /** Where an object is, or would be; where several watches share a type, the type alone names the broadest. */
  store(of: Subject): Store {
    return this.watched(of).for(of).store;
  }

  /** What a watch of the controller fills. */
  storeOf(watch: Watch): Store {
    const found = this.watched(watch.type).all.find((watched) => watched.watch === watch);
    return found?.store ?? this.store(watch.type);
  }

  /** Whether an object that a watch of the controller delivers belongs to it, and not to a more precise one. */
  belongsTo(watch: Watch, object: AnyObject): boolean {
    return this.watched(watch.type).for(object).watch === watch;
  }

  /** Whether the controller watches such objects. */
  watches(type: TypeRef): boolean {
    return this.byType.has(groupKind(type));
  }

  /** Whether the controller works without the kind. */
  optional(of: Subject): boolean {
    return this.watched(of).for(of).watch.optional ?? false;
  }

  /** How the type is served. */
  resourceType(type: TypeRef): ResourceType {
    return this.watched(type).for({}).watch.type;
  }

  private watched(type: TypeRef): WatchesOfType {
    const known = this.byType.get(groupKind(type));
    if (known) return known;
    throw new OperatorError({
      reason: 'UndeclaredType',
      message: `${groupKind(type)} is not among the controller's watches: declare it, so that it is watched and permitted`,
    });
  }
}

/** A type alone, or an object of it. */
type Subject = TypeRef & Partial<Pick<AnyObject, 'metadata'>>;

/** @throws OperatorError where two watches of one type can't be told apart */
function refuseTwins(watches: readonly Watch[]): void {
  const places = watches.map(({ type, namespaces, name }) =>
    JSON.stringify([groupKind(type), namespaces?.toSorted(), name]),
  );
  const twin = watches.find((_, index) => places.indexOf(places[index] ?? '') !== index);
  if (!twin) return;
  throw new OperatorError({
    reason: 'InvalidDefinition',
    message: `${groupKind(twin.type)} is watched twice by one controller; watch it once, or tell the watches apart by namespaces or name`,
  });
}

/** A watch of a controller, and the store that it fills. */
class Watched {
  private index: MappedIndex | undefined;

  constructor(
    readonly watch: Watch,
    readonly store: Store,
  ) {
    if (watch.readOnly) this.index = new MappedIndex(store, watch);
  }

  /** Of what is written made when it is asked for first: most controllers never do. */
  get mapped(): MappedIndex {
    return (this.index ??= new MappedIndex(this.store, this.watch));
  }
}

/**
 * What one controller watches of one type: as a rule one watch.
 *
 * **Guarantees.** An object that several of them cover belongs to the most precise alone, as if the others didn't
 * deliver it: a watch of its name comes before one of its namespace, and that before one of all. Among equals it is the
 * one that was declared first.
 */
class WatchesOfType {
  /** The most precise first. */
  readonly all: readonly Watched[];
  private readonly broadest: Watched;

  /** @param earlier those that were declared before */
  constructor(watched: Watched, earlier: readonly Watched[] = []) {
    this.all = [...earlier, watched].toSorted((a, b) => precision(b.watch) - precision(a.watch));
    this.broadest = this.all.at(-1) ?? watched;
  }

  /** The one that an object of this name belongs to, whether or not there is one. */
  of(key: string): Watched {
    if (this.all.length === 1) return this.broadest;
    const { namespace = '', name } = splitKey(key);
    return this.all.find(({ watch }) => covers(watch, namespace, name)) ?? this.broadest;
  }

  /** The one that an object belongs to, or, where just the type is given, the broadest. */
  for({ metadata }: Partial<Pick<AnyObject, 'metadata'>>): Watched {
    if (!metadata || this.all.length === 1) return this.broadest;
    return this.of(objectKey(metadata.namespace, metadata.name));
  }

  /** What each of them finds among its own. */
  flatMap(find: (watched: Watched) => readonly AnyObject[]): readonly AnyObject[] {
    if (this.all.length === 1) return find(this.broadest);
    return this.all.flatMap((watched) => find(watched).filter((object) => this.for(object) === watched));
  }
}

function precision({ name, namespaces }: Watch): number {
  return (name === undefined ? 0 : 2) + (namespaces === undefined ? 0 : 1);
}

function covers({ name, namespaces }: Watch, namespace: string, itsName: string): boolean {
  if (name !== undefined && name !== itsName) return false;
  return namespaces === undefined || namespaces.includes(namespace);
}

/**
 * Which objects of a store a watch maps to a key: as many steps as there are, however many others the store has, and
 * no look-up in the store, which of 50,000 would take longer than all that is made of them.
 */
class MappedIndex {
  /** By name; a map only where there are several, since most keys have one object of a type. */
  private readonly byKey = new Map<string, AnyObject | Map<string, AnyObject>>();

  constructor(
    store: Store,
    private readonly watch: Pick<Watch, 'mapsTo'>,
  ) {
    for (const key of store.keys()) this.move(undefined, store.get(key)?.object);
    store.onChange((before, after) => {
      this.move(before, after);
    });
  }

  objectsOf(key: string): AnyObject[] {
    const objects = this.byKey.get(key);
    if (!objects) return [];
    return objects instanceof Map ? [...objects.values()] : [objects];
  }

  private move(before: AnyObject | undefined, after: AnyObject | undefined): void {
    const is = this.keysOf(after);
    if (before) for (const key of this.keysOf(before)) if (!is.includes(key)) this.remove(key, before);
    if (after) for (const key of is) this.set(key, after);
  }

  private set(key: string, object: AnyObject): void {
    const objects = this.byKey.get(key);
    if (objects instanceof Map) objects.set(nameOf(object), object);
    else if (objects === undefined || nameOf(objects) === nameOf(object)) this.byKey.set(key, object);
    else this.byKey.set(key, new Map([objects, object].map((each) => [nameOf(each), each])));
  }

  private remove(key: string, object: AnyObject): void {
    const objects = this.byKey.get(key);
    if (objects instanceof Map) objects.delete(nameOf(object));
    if (!(objects instanceof Map) || objects.size === 0) this.byKey.delete(key);
  }

  /** A mapping that throws is reported where the keys are queued. */
  private keysOf(object: AnyObject | undefined): readonly string[] {
    try {
      return object === undefined ? [] : this.watch.mapsTo(object);
    } catch {
      return [];
    }
  }
}

function nameOf({ metadata }: AnyObject): string {
  return objectKey(metadata.namespace, metadata.name);
}

type Keep = NonNullable<Watch['keep']>;

/**
 * A projection that never throws. Where the kind's own does, or loses the object's identity, the object is kept with
 * nothing but that: it is there, and whose it is; without spec, data and status nobody takes it for more.
 *
 * Left out, it would count as absent: what is absent is applied at every reconcile, and is not pruned. Only where
 * nobody writes may a projection leave an object out.
 */
function guardedKeep(
  keep: Keep,
  readOnly: boolean,
  report: (object: AnyObject, error: unknown) => void,
): Keep {
  return (object) => {
    try {
      const kept = keep(object);
      if (kept === undefined && readOnly) return undefined;
      if (hasIdentityOf(kept, object)) return kept;
      throw new TypeError('keep has not kept apiVersion, kind and the identity in metadata');
    } catch (error) {
      const identity = readOnly ? undefined : keepIdentity(object);
      report(object, error);
      return identity;
    }
  };
}

/** Says once per version of an object that its kind can't be trusted with it. */
function reportTo(
  log: Logger,
  readOnly: boolean,
  store: () => Store,
): (object: AnyObject, error: unknown) => void {
  const outcome = readOnly ? 'it is left out' : 'only its identity is kept';
  return (object, error) => {
    const { namespace, name, resourceVersion } = object.metadata;
    const known = store().get(objectKey(namespace, name));
    if (known?.object.metadata.resourceVersion === resourceVersion) return;
    log.error(
      { err: error, resourceVersion },
      `${describeRef(refOf(object))} can't be projected, which is a bug of the kind; ${outcome}`,
    );
  };
}

function hasIdentityOf(kept: AnyObject | undefined, object: AnyObject): kept is AnyObject {
  const [a, b] = [kept?.metadata, object.metadata];
  return (
    kept?.kind === object.kind &&
    kept.apiVersion === object.apiVersion &&
    a?.name === b.name &&
    a.namespace === b.namespace &&
    a.uid === b.uid &&
    a.resourceVersion === b.resourceVersion
  );
}

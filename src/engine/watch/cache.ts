import { isDeepStrictEqual } from 'node:util';
import type { Found, Lookup, Query, Reader, TypeRef, Watch } from '../../contract/controller.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import { controllerOf, describeRef, keyOf, refOf, splitKey } from '../../contract/object.js';
import { deepFreeze, isTooDeep, tooDeep } from '../../values/json.js';
import type { AnyObject } from '../../contract/object.js';
import { thrownReading } from '../../values/origin.js';
import { keepIdentity, keepStatus, keepUnreadable } from '../../values/projections.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { silentLogger } from '../../telemetry/logger.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Scope } from '../../client/api.js';
import {
  FieldPaths,
  hasDrifted,
  isHeld,
  isLegacy,
  managedFieldsOf,
  MAX_KEPT,
  ownerKey,
  sharedWith,
  withWalkableFields,
} from '../steps/managed-fields.js';
import type { ManagedFieldsEntry, OwnedPaths } from '../steps/managed-fields.js';

/** An object as it is kept, and what was worked out from it before the rest was dropped. */
export interface Entry {
  readonly object: AnyObject;
  readonly owned: OwnedPaths;
  /** Managers whose applied fields a leftover of a command owns too; see `isLegacy`. */
  readonly sharedWithLegacy?: readonly string[];
  /** The same of a leftover of an autoscaler; see `isHeld`. */
  readonly sharedWithHeld?: readonly string[];
  /**
   * Owners of fields, kept only since a watch has shown that another writer changed what was applied, and until the answer to
   * the next write: the report names the writer.
   */
  readonly drifted?: readonly ManagedFieldsEntry[];
}

/** The controller that writes, and the key whose plan it carries out. */
export interface Writer {
  /** Identity of the controller. */
  readonly controller: unknown;
  /** Whether its writes are dry runs: nothing was stored, so no answer is kept. @default false */
  readonly isDry?: boolean;
  /** @default - none */
  readonly key?: string;
}

/** Origin of a change. */
export interface ChangeSource {
  /** Whether it comes from a complete list. @default - from a watch, or the answer to a request */
  readonly list?: true;
  /** Writers whose writes to the object are under way: usually the change is theirs. */
  readonly writers?: Iterable<Writer>;
}

/** Called after the store has changed: with both states for an update, with one of them for a new or a removed object. */
export type Listener = (
  before: AnyObject | undefined,
  after: AnyObject | undefined,
  source: ChangeSource,
) => void;

export interface StoreProps {
  /** The projection taken of each object. An object for which it returns undefined counts as absent. */
  readonly keep: (object: AnyObject) => AnyObject | undefined;
  /** No controller here writes these objects, so who owns which of their fields isn't worked out. @default false */
  readonly readOnly?: boolean;
  /** Each namespace has a watch of its own. @default - one watch covers the cluster */
  readonly perNamespace?: boolean;
  /** The watch delivers only what this label selector matches. @default - whatever its labels */
  readonly selector?: string;
  /** The watch delivers only the object of this name. @default - whatever its name */
  readonly name?: string;
  /** Freezes what is kept, so that a change of it fails: for tests. @default false */
  readonly freeze?: boolean;
  /** An object that can't be projected counts as absent. @default false - see `keepUnreadable` */
  readonly dropsUnreadable?: boolean;
  /** For objects that can't be projected. @default silentLogger */
  readonly log?: Logger;
}

/** The kind isn't installed, so there are no objects; or it may be installed, and what is known stays. */
export type Unserved = 'missing' | 'doubtful';

/**
 * The objects of one type: what the watches delivered and what our own writes returned, whichever is newer.
 *
 * **Guarantees.** An object never goes back to an older version, unless a complete list or a read of it says so. What was
 * deleted doesn't come back through the late answer to a write. A relist replaces everything at once, and tells what has
 * gone. An object that is of no interest any more goes as one that is deleted.
 *
 * **Caveats.** Objects are shared, not copied: they must not be changed.
 */
export class Store {
  readonly paths = new FieldPaths();
  private readonly entries = new Map<string, Entry>();
  private readonly controllers = new ControllerIndex();
  private readonly listeners: Listener[] = [];
  /** Per watch, the newest version that it has delivered: every older change has been seen. */
  private readonly delivered = new Map<string, string>();
  /** Keys that our own requests have found gone, and whose end no watch has delivered yet. */
  private readonly awaitedDeletions = new Set<string>();
  private readonly live = new Set<string>();
  /** Writers by key. */
  private readonly writers = new Map<string, Set<Writer>>();
  /** Watches whose kind the API server doesn't serve, each with what that means. */
  private readonly unserved = new Map<string, Unserved>();

  constructor(private readonly props: StoreProps) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /** Keys of all objects that are known. */
  keys(): IterableIterator<string> {
    return this.entries.keys();
  }

  /** All objects that are known. */
  objects(): AnyObject[] {
    return Array.from(this.entries.values(), ({ object }) => object);
  }

  /** Objects that the owner with this UID controls; with a field manager, only those that it has applied. */
  controlledBy(ownerUid: string, fieldManager?: string): AnyObject[] {
    return this.controllers.keysOf(ownerUid).flatMap((key) => {
      const entry = this.entries.get(key);
      const isOurs = fieldManager === undefined || entry?.owned.has(ownerKey(fieldManager));
      return entry && isOurs ? entry.object : [];
    });
  }

  /** Reports whether a watch delivers changes of the namespace, or of the cluster, right now. */
  followed(namespace: string | undefined): boolean {
    return this.live.has(this.watchOf(namespace));
  }

  /** A watch has begun to deliver changes, or has ended. */
  setFollowed(namespace: string | undefined, followed: boolean): void {
    if (followed) this.live.add(this.watchOf(namespace));
    else this.live.delete(this.watchOf(namespace));
  }

  /** State of a kind that the API server doesn't serve; undefined while it serves it. */
  unservedIn(namespace: string | undefined): Unserved | undefined {
    return this.unserved.get(this.watchOf(namespace));
  }

  setUnserved(namespace: string | undefined, unserved: Unserved | undefined): void {
    if (unserved) this.unserved.set(this.watchOf(namespace), unserved);
    else this.unserved.delete(this.watchOf(namespace));
  }

  onChange(listener: Listener): void {
    this.listeners.push(listener);
  }

  /**
   * Returns what is kept of an object, so that the rest needn't be held until a list is complete; nothing if it is of no
   * interest.
   */
  project(object: AnyObject): Entry | undefined {
    const kept = this.kept(object);
    if (!kept) return undefined;
    if (this.props.freeze) deepFreeze(kept);
    if (this.props.readOnly) return { object: kept, owned: NOTHING_OWNED };
    const walkable = withWalkableFields(object);
    // Nothing is taken from leftovers where some entries aren't walked.
    const isWhole = walkable === object;
    const legacy = isWhole && sharedWith(isLegacy, object);
    const held = isWhole && sharedWith(isHeld, object);
    return {
      ...{ object: kept, owned: this.paths.owned(walkable) },
      ...(legacy && { sharedWithLegacy: legacy }),
      ...(held && { sharedWithHeld: held }),
    };
  }

  /**
   * Returns the projection of an object; it never throws, so that one object doesn't end the watch of all.
   *
   * An object that is written is there even if it can't be projected: what is absent is applied at every reconcile, and is
   * not pruned. Only where it isn't written may a projection leave an object out.
   */
  private kept(object: AnyObject): AnyObject | undefined {
    const { keep, readOnly, dropsUnreadable, log = silentLogger } = this.props;
    try {
      const kept = keep(object);
      if (kept === undefined && readOnly) return undefined;
      if (!hasIdentityOf(kept, object))
        throw new TypeError('keep has not kept apiVersion, kind and the identity in metadata');
      if (isTooDeep(kept)) throw tooDeep(describeRef(refOf(object)));
      return kept;
    } catch (cause) {
      const what = describeRef(refOf(object));
      const { resourceVersion } = object.metadata;
      const thrown = thrownReading([object], cause);
      const message = `${what} can't be projected, which is a bug of the kind: ${messageOf(thrown)}`;
      const bug = { reason: 'KeepFailed', message, isBug: true, cause: thrown };
      const known = thrown instanceof OperatorError ? thrown : new OperatorError(bug);
      const error = known.reason === 'TooDeep' ? tooDeep(what) : known;
      const outcome = dropsUnreadable ? 'it is left out' : 'its identity and status alone are kept';
      // Once for each version of the object.
      if (this.entries.get(keyOf(object))?.object.metadata.resourceVersion !== resourceVersion)
        log.error({ resourceVersion, ...(error.isBug && { err: thrown }) }, `${error.message}; ${outcome}`);
      return dropsUnreadable ? undefined : keepUnreadable(readOnly ? keepIdentity(object) : object, error);
    }
  }

  /** A watch has delivered an object. */
  observed(object: AnyObject): void {
    this.advance(object.metadata.resourceVersion, object.metadata.namespace);
    const before = this.entries.get(keyOf(object));
    // Usually this is the echo of a write of our own: there is nothing to work out again.
    if (before && !isNewer(object, before.object)) return;
    const entry = this.project(object);
    if (!entry) {
      this.remove(keyOf(object), {});
      return;
    }
    this.put(
      before && hasDrifted(before, entry)
        ? { ...entry, drifted: managedFieldsOf(withWalkableFields(object, MAX_KEPT)) }
        : entry,
      {},
    );
  }

  /** A watch has delivered the end of an object. */
  observedDeletion(object: AnyObject): void {
    this.advance(object.metadata.resourceVersion, object.metadata.namespace);
    const key = keyOf(object);
    const known = this.entries.get(key);
    this.awaitedDeletions.delete(key);
    // The deletion of a namesake that has been replaced meanwhile is old news.
    if (known && !isNewer(known.object, object)) this.remove(key, {});
  }

  /** Reports whether the watch has delivered something newer than this version. */
  hasPassed(resourceVersion: string, namespace: string | undefined): boolean {
    return compareResourceVersions(resourceVersion, this.deliveredVersion(namespace)) < 0;
  }

  /**
   * Takes a complete list of a namespace, or of the cluster, at one version. It counts for every object, but for what
   * our own writes returned later; a list that is older than what the watch has delivered counts for these too.
   * @returns whether the server has gone back to an older state, as after a restored backup
   */
  replace(all: readonly (Entry | undefined)[], resourceVersion: string, namespace?: string): boolean {
    const listed = new Map(all.flatMap((entry) => (entry ? [[keyOf(entry.object), entry] as const] : [])));
    let wentBack = this.hasPassed(resourceVersion, namespace);
    if (wentBack) this.delivered.delete(this.watchOf(namespace));
    for (const [key, { object }] of this.entries) {
      if (namespace !== undefined && object.metadata.namespace !== namespace) continue;
      if (!wentBack && compareResourceVersions(versionOf(object), resourceVersion) > 0) listed.delete(key);
      else if (!listed.has(key)) this.remove(key, { list: true });
    }
    for (const [key, entry] of listed) {
      const known = this.entries.get(key);
      if (isDeepStrictEqual(known, entry)) continue;
      // What isn't known, in a version that the watch has passed, was deleted later than that.
      wentBack ||= known
        ? isNewer(known.object, entry.object)
        : this.hasPassed(versionOf(entry.object), namespace) && !this.awaitedDeletions.has(key);
      this.put(entry, { list: true });
    }
    for (const key of this.awaitedDeletions)
      if (namespace === undefined || splitKey(key).namespace === namespace) this.awaitedDeletions.delete(key);
    this.advance(resourceVersion, namespace);
    return wentBack;
  }

  /** A bookmark: everything up to this version has been delivered, of the namespace or of the cluster. */
  advance(resourceVersion: string | undefined, namespace: string | undefined): void {
    if (resourceVersion && compareResourceVersions(resourceVersion, this.deliveredVersion(namespace)) > 0) {
      this.delivered.set(this.watchOf(namespace), resourceVersion);
    }
  }

  /** Sends a write of one object, and stores its answer. Changes meanwhile name the writer; see `ChangeSource.writers`. */
  async write<T extends { readonly object: AnyObject }>(
    key: string,
    writer: Writer,
    send: () => Promise<T>,
  ): Promise<T> {
    const writers = this.writers.get(key) ?? new Set();
    this.writers.set(key, writers.add(writer));
    let answer: T;
    try {
      answer = await send();
      if (writer.isDry) return answer;
      this.written(answer.object);
    } finally {
      writers.delete(writer);
      if (writers.size === 0) this.writers.delete(key);
    }
    const now = this.entries.get(key)?.object;
    // Others have changed it after the write.
    if (now && versionOf(now) !== versionOf(answer.object)) this.notify(key, now, now, {});
    return answer;
  }

  /** The API server has answered a write with this; what the watches have passed was changed or deleted since. */
  written(object: AnyObject): void {
    const known = this.entries.get(keyOf(object));
    const isNews = !this.hasPassed(versionOf(object), object.metadata.namespace);
    // The watch may have been faster.
    if (isNews && (!known || isNewer(object, known.object))) this.storeAnswer(object);
    this.dropDriftRecord(keyOf(object), versionOf(object));
  }

  /** Reads one object as it is in etcd: an older version than the known one counts, unless more was learned meanwhile. */
  async read(key: string, get: () => Promise<AnyObject>): Promise<AnyObject> {
    const { namespace } = splitKey(key);
    const [before, seen] = [this.entries.get(key), this.deliveredVersion(namespace)];
    const object = await get();
    const version = versionOf(object);
    const wasPassed = compareResourceVersions(version, seen) < 0;
    const isCurrent = this.entries.get(key) === before && wasPassed === this.hasPassed(version, namespace);
    if (isCurrent && before?.object.metadata.resourceVersion !== version) this.storeAnswer(object);
    else this.written(object);
    return object;
  }

  /** Returns who owns what of an object from an answer: usually that is known already. */
  ownedOf(object: AnyObject): OwnedPaths {
    const known = this.entries.get(keyOf(object));
    const same = known?.object.metadata.resourceVersion === object.metadata.resourceVersion;
    return known && same ? known.owned : this.paths.owned(withWalkableFields(object));
  }

  /** Drops what was kept to report who changed an object, as it was in this version. */
  dropDriftRecord(key: string, resourceVersion: string | undefined): void {
    const entry = this.entries.get(key);
    if (!entry?.drifted || entry.object.metadata.resourceVersion !== resourceVersion) return;
    const { drifted, ...rest } = entry;
    this.entries.set(key, rest);
  }

  /** The API server says that the object with this UID, or any of this name, isn't there. */
  gone(key: string, uid?: string): void {
    const known = this.entries.get(key)?.object;
    if (!known || (uid !== undefined && known.metadata.uid !== uid)) return;
    this.awaitedDeletions.add(key);
    this.remove(key, {});
  }

  private deliveredVersion(namespace: string | undefined): string {
    return this.delivered.get(this.watchOf(namespace)) ?? '0';
  }

  private watchOf(namespace: string | undefined): string {
    return this.props.perNamespace ? (namespace ?? '') : '';
  }

  /** An object that no watch has delivered. */
  private storeAnswer(object: AnyObject): void {
    const { selector, name = object.metadata.name } = this.props;
    // Whether another selector than a label's name matches it, only the watch can say.
    const isSelected = selector === undefined || Object.hasOwn(object.metadata.labels ?? {}, selector);
    if (!this.entries.has(keyOf(object)) && (!isSelected || name !== object.metadata.name)) return;
    const entry = this.project(object);
    // Removed now, it could come back with an older version that the watch has yet to deliver.
    if (entry) this.put(entry, {});
  }

  private put(entry: Entry, source: ChangeSource): void {
    const { object } = entry;
    const key = keyOf(object);
    const before = this.entries.get(key)?.object;
    this.controllers.move(key, before, object);
    this.entries.set(key, entry);
    this.notify(key, before, object, source);
  }

  private remove(key: string, source: ChangeSource): void {
    const before = this.entries.get(key)?.object;
    if (!before) return;
    this.controllers.move(key, before, undefined);
    this.entries.delete(key);
    this.notify(key, before, undefined, source);
  }

  private notify(
    key: string,
    before: AnyObject | undefined,
    after: AnyObject | undefined,
    source: ChangeSource,
  ): void {
    const writers = this.writers.get(key);
    const all = writers ? { ...source, writers } : source;
    for (const listener of this.listeners) listener(before, after, all);
  }
}

const NOTHING_OWNED: OwnedPaths = new Map();

/** Reports whether what is kept of an object is what it was, in another version. */
export function sameButVersion(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return !!before && !!after && isDeepStrictEqual(withoutVersion(before), withoutVersion(after));
}

function withoutVersion({ metadata: { resourceVersion, ...metadata }, ...rest }: AnyObject): object {
  return { ...rest, metadata };
}

function versionOf({ metadata }: AnyObject): string {
  return metadata.resourceVersion ?? '0';
}

function isNewer(a: AnyObject, b: AnyObject): boolean {
  return compareResourceVersions(versionOf(a), versionOf(b)) > 0;
}

/** Keys of the objects that an owner controls. */
class ControllerIndex {
  /** Keys by the owner's UID; a set only where there are several, since most owners have one child of a type. */
  private readonly keys = new Map<string, string | Set<string>>();

  keysOf(ownerUid: string): string[] {
    const keys = this.keys.get(ownerUid) ?? [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }

  /** An object was added, has changed, or is gone. */
  move(key: string, before: AnyObject | undefined, after: AnyObject | undefined): void {
    const old = before && controllerOf(before)?.uid;
    const now = after && controllerOf(after)?.uid;
    if (old === now) return;
    const known = old && this.keys.get(old);
    if (known instanceof Set) known.delete(key);
    if (old && (known === key || (known instanceof Set && known.size === 0))) this.keys.delete(old);
    if (!now) return;
    const keys = this.keys.get(now);
    if (keys instanceof Set) keys.add(key);
    else this.keys.set(now, keys === undefined || keys === key ? key : new Set([keys, key]));
  }
}

/**
 * Orders two resource versions of one type: negative if `a` is the older.
 *
 * They are decimal integers by contract since Kubernetes 1.35, and in practice always were; comparing length and
 * then text is exact at any size.
 * @see https://github.com/kubernetes/enhancements/issues/5504
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A store, and the watch that fills it. */
export interface WatchedStore {
  /** The first of the watches that share it: what `Stores.open` compares holds for all of them. */
  readonly watch: Watch;
  readonly store: Store;
  /** None of those who read it needs the kind to be installed. */
  readonly optional: boolean;
}

/** Returns what has to be watched for one store: everything at once, or each namespace by itself. */
export function scopesOf(watch: Watch, namespaces: readonly string[]): Scope[] {
  const { type, selector, name } = watch;
  const scope = { type, ...(selector !== undefined && { selector }), ...(name !== undefined && { name }) };
  const only = watch.namespaces ?? namespaces;
  if (!type.namespaced || (only.length === 0 && !watch.namespaces)) return [scope];
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
  private readonly watched: (WatchedStore & { optional: boolean })[] = [];

  constructor(private readonly props: StoresProps) {}

  /** The store for a watch, made when the first one asks. */
  open(watch: Watch): Store {
    const { optional = false } = watch;
    const known = this.watched.find(
      ({ watch: other }) =>
        groupKind(other.type) === groupKind(watch.type) &&
        other.selector === watch.selector &&
        other.name === watch.name &&
        other.namespaces?.join() === watch.namespaces?.join() &&
        other.keep === watch.keep &&
        (other.readOnly ?? false) === (watch.readOnly ?? false),
    );
    if (known) {
      known.optional &&= optional;
      return known.store;
    }
    const store = this.make(watch);
    this.watched.push({ watch, store, optional });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }

  private make({ keep = keepStatus, selector, name, namespaces, readOnly = false }: Watch): Store {
    const { freeze, log } = this.props;
    const perNamespace = this.props.perNamespace || namespaces !== undefined;
    return new Store({
      ...{ keep, perNamespace, freeze, readOnly, dropsUnreadable: readOnly },
      ...(log && { log }),
      ...(selector !== undefined && { selector }),
      ...(name !== undefined && { name }),
    });
  }
}

/** Looks up objects for the plan of one key. */
export interface Finder {
  find(lookup: Lookup, query: Query): Found;
}

/** View of one controller: the stores of its own watches. */
export class StoreReader implements Reader {
  readonly writer: Writer;

  private constructor(
    private readonly byType: ReadonlyMap<string, WatchesOfOneType>,
    /** Names the controller in metrics. */
    readonly controller: string,
    writer?: Writer,
    private readonly finder?: Finder,
  ) {
    this.writer = writer ?? { controller: this };
  }

  /** @param controller names it in metrics */
  static open(watches: readonly Watch[], stores: Stores, controller = ''): StoreReader {
    refuseTwins(watches);
    const byType = new Map<string, WatchesOfOneType>();
    for (const watch of watches) {
      const type = groupKind(watch.type);
      byType.set(type, new WatchesOfOneType(new Watched(watch, stores.open(watch)), byType.get(type)?.all));
    }
    return new StoreReader(byType, controller);
  }

  /** The same, for the plan of one key: what is written there is known as that key's. */
  forKey(key: string): StoreReader {
    return new StoreReader(this.byType, this.controller, { controller: this.writer.controller, key });
  }

  /** The same, where what is written are dry runs. */
  forDryRuns(): StoreReader {
    return new StoreReader(this.byType, this.controller, { ...this.writer, isDry: true }, this.finder);
  }

  /** The same, for a plan that looks up objects. */
  withFinder(finder: Finder): StoreReader {
    return new StoreReader(this.byType, this.controller, this.writer, finder);
  }

  find(lookup: Lookup, query: Query): Found {
    return this.finder?.find(lookup, query) ?? {};
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.watched(type).watchOfKey(key).store.get(key)?.object;
  }

  controlledBy(type: TypeRef, ownerUid: string, fieldManager?: string): readonly AnyObject[] {
    return this.watched(type).flatMap(({ store }) => store.controlledBy(ownerUid, fieldManager));
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    return this.watched(type).flatMap(({ mapped }) => mapped.objectsOf(key));
  }

  /** Where an object is, or would be; where several watches share a type, the type alone names the broadest. */
  store(of: Subject): Store {
    return this.watched(of).watchOf(of).store;
  }

  /** Returns the store that a watch of the controller fills. */
  storeOf(watch: Watch): Store {
    const found = this.watched(watch.type).all.find((watched) => watched.watch === watch);
    return found?.store ?? this.store(watch.type);
  }

  /** Reports whether an object that a watch of the controller delivers belongs to it, and not to a more precise one. */
  belongsTo(watch: Watch, object: AnyObject): boolean {
    return this.watched(watch.type).watchOf(object).watch === watch;
  }

  /** Reports whether the controller watches such objects. */
  isWatched(type: TypeRef): boolean {
    return this.byType.has(groupKind(type));
  }

  /** Reports whether the controller works without the kind. */
  optional(of: Subject): boolean {
    return this.watched(of).watchOf(of).watch.optional ?? false;
  }

  /** Returns what an object claims, by the watch that it belongs to; see `Watch.claims`. */
  claimsOf(object: AnyObject): readonly string[] {
    if (!this.isWatched(object)) return [];
    return textsOf('claims', this.watched(object).watchOf(object).watch.claims?.(object) ?? []);
  }

  /** Returns the type as it is served. */
  resourceType(type: TypeRef): ResourceType {
    return this.watched(type).watchOf({}).watch.type;
  }

  private watched(type: TypeRef): WatchesOfOneType {
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

  /** Index by key; of a type that is written, made at its first use: most controllers never need it. */
  get mapped(): MappedIndex {
    return (this.index ??= new MappedIndex(this.store, this.watch));
  }
}

/**
 * Watches of one controller for one type: usually a single one.
 *
 * **Guarantees.** An object that several of them cover belongs to the most precise alone, as if the others didn't
 * deliver it: a watch of its name comes before one of its namespace, and that before one of all. Among equals it is the
 * one that was declared first.
 */
class WatchesOfOneType {
  /** The most precise first. */
  readonly all: readonly Watched[];
  private readonly broadest: Watched;

  /** @param earlier those that were declared before */
  constructor(watched: Watched, earlier: readonly Watched[] = []) {
    this.all = [...earlier, watched].toSorted((a, b) => precision(b.watch) - precision(a.watch));
    this.broadest = this.all.at(-1) ?? watched;
  }

  /** The one that an object of this name belongs to, whether or not there is one. */
  watchOfKey(key: string): Watched {
    if (this.all.length === 1) return this.broadest;
    const { namespace = '', name } = splitKey(key);
    return this.all.find(({ watch }) => covers(watch, namespace, name)) ?? this.broadest;
  }

  /** The one that an object belongs to, or, where just the type is given, the broadest. */
  watchOf({ metadata }: Partial<Pick<AnyObject, 'metadata'>>): Watched {
    if (!metadata || this.all.length === 1) return this.broadest;
    return this.watchOfKey(keyOf({ metadata }));
  }

  /** Joins what each of them finds among its own. */
  flatMap(find: (watched: Watched) => readonly AnyObject[]): readonly AnyObject[] {
    if (this.all.length === 1) return find(this.broadest);
    return this.all.flatMap((watched) => find(watched).filter((object) => this.watchOf(object) === watched));
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
 * Index of the objects of a store that a watch maps to a key: as many steps as there are, however many others the store has, and
 * no look-up in the store, which of 50,000 would take longer than all that is made of them.
 */
class MappedIndex {
  /** Objects by name; a map only where there are several, since most keys have one object of a type. */
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
    if (objects instanceof Map) objects.set(keyOf(object), object);
    else if (objects === undefined || keyOf(objects) === keyOf(object)) this.byKey.set(key, object);
    else this.byKey.set(key, new Map([objects, object].map((each) => [keyOf(each), each])));
  }

  private remove(key: string, object: AnyObject): void {
    const objects = this.byKey.get(key);
    if (objects instanceof Map) objects.delete(keyOf(object));
    if (!(objects instanceof Map) || objects.size === 0) this.byKey.delete(key);
  }

  /** A mapping that throws is reported where the keys are queued. */
  private keysOf(object: AnyObject | undefined): readonly string[] {
    try {
      return object === undefined ? [] : textsOf('mapsTo', this.watch.mapsTo(object));
    } catch {
      return [];
    }
  }
}

/**
 * Returns texts that a function of a watch has returned.
 * @throws TypeError for anything else
 */
export function textsOf(name: string, returned: unknown): readonly string[] {
  const isList = Array.isArray(returned) && returned.every((one) => typeof one === 'string');
  if (!isList) throw new TypeError(`${name} has to return a list of texts`);
  return returned;
}

const IDENTITY = ['name', 'namespace', 'uid', 'resourceVersion'] as const;

function hasIdentityOf(kept: AnyObject | undefined, object: AnyObject): boolean {
  return (
    kept?.kind === object.kind &&
    kept.apiVersion === object.apiVersion &&
    IDENTITY.every((field) => kept.metadata[field] === object.metadata[field])
  );
}

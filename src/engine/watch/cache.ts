import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../../contract/error.js';
import { describeRef, keyOf, splitKey } from '../../contract/object.js';
import { deepFreeze, isTooDeep, tooDeep } from '../../values/json.js';
import type { AnyObject, ManagedFieldsEntry } from '../../contract/object.js';
import { thrownReading } from '../../values/origin.js';
import { keepIdentity, keepUnreadable, managedFieldsOf, ownerUidOf } from '../../values/projections.js';
import { silentLogger } from '../../telemetry/logger.js';
import type { Logger } from '../../telemetry/logger.js';
import {
  hasDrifted,
  MAX_KEPT,
  ownedFields,
  ownerKey,
  sharedWithLeftovers,
  withWalkableFields,
} from '../steps/managed-fields.js';
import type { OwnedFields } from '../steps/managed-fields.js';

/** An object as it is kept, and what was worked out from it before the rest was dropped. */
export interface Entry {
  readonly object: AnyObject;
  readonly owned: OwnedFields;
  /** Managers whose applied fields a leftover owns too, and whether one of a command does; see `isLeftOver`. */
  readonly shared?: ReadonlyMap<string, boolean>;
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
  /** Whether no controller here writes these objects, so that owners of fields aren't worked out. @default false */
  readonly readOnly?: boolean;
  /** Whether each namespace has a watch of its own. @default - one watch covers the cluster */
  readonly perNamespace?: boolean;
  /** The watch delivers only what this label selector matches. @default - whatever its labels */
  readonly selector?: string;
  /** The watch delivers only the object of this name. @default - whatever its name */
  readonly name?: string;
  /** Whether what is kept is frozen, so that a change of it fails: for tests. @default false */
  readonly freeze?: boolean;
  /** Whether an object that can't be projected counts as absent. @default false - see `keepUnreadable` */
  readonly dropsUnreadable?: boolean;
  /** For objects that can't be projected. @default silentLogger */
  readonly log?: Logger;
}

/** The kind isn't installed, so there are no objects; or it may be installed, and what is known stays. */
export type Unserved = 'missing' | 'doubtful';

/** State of a watch that fills a store. */
interface Following {
  /** The newest version that it has delivered: every older change has been seen. */
  delivered: string;
  /** Whether it delivers changes right now. */
  isLive: boolean;
  /** State of the kind where the API server doesn't serve it. */
  unserved: Unserved | undefined;
}

/** Objects of one type, by what watches and answers to writes have shown. They are shared and must not be changed; see docs/engine.md. */
export class Store {
  private readonly entries = new Map<string, Entry>();
  private readonly listeners: Listener[] = [];
  private readonly indexes: ObjectIndex[] = [];
  private readonly owners = this.indexedBy((object) => ownerUidOf(object) ?? []);
  /** Watches that fill the store, by namespace, or the only one. */
  private readonly watches = new Map<string, Following>();
  /** Keys that our own requests have found gone, and whose end no watch has delivered yet. */
  private readonly awaitedDeletions = new Set<string>();
  /** Writers by key. */
  private readonly writers = new Map<string, Set<Writer>>();

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

  /** Returns the objects that name the owner with this UID; with a field manager, only those that it has applied. */
  controlledBy(ownerUid: string, fieldManager?: string): readonly AnyObject[] {
    const objects = this.owners.objectsOf(ownerUid);
    if (fieldManager === undefined) return objects;
    const owner = ownerKey(fieldManager);
    return objects.filter((object) => this.entries.get(keyOf(object))?.owned.has(owner));
  }

  /** Makes an index of the objects, which follows their changes. */
  indexedBy(keysOf: (object: AnyObject) => string | readonly string[]): ObjectIndex {
    const index = new ObjectIndex(keysOf);
    for (const { object } of this.entries.values()) index.move(undefined, object);
    this.indexes.push(index);
    return index;
  }

  /** Reports whether a watch delivers changes of the namespace, or of the cluster, right now. */
  followed(namespace: string | undefined): boolean {
    return this.watchOf(namespace).isLive;
  }

  /** A watch has begun to deliver changes, or has ended. */
  setFollowed(namespace: string | undefined, followed: boolean): void {
    this.watchOf(namespace).isLive = followed;
  }

  /** State of a kind that the API server doesn't serve; undefined while it serves it. */
  unservedIn(namespace: string | undefined): Unserved | undefined {
    return this.watchOf(namespace).unserved;
  }

  setUnserved(namespace: string | undefined, unserved: Unserved | undefined): void {
    this.watchOf(namespace).unserved = unserved;
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
    const shared = sharedWithLeftovers(object);
    return { object: kept, owned: ownedFields(object), ...(shared && { shared }) };
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
      if (isTooDeep(kept)) throw tooDeep(describeRef(object));
      return kept;
    } catch (cause) {
      const what = describeRef(object);
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
    const hasDriftedSince = before && entry && hasDrifted(before, entry);
    const drifted = hasDriftedSince && managedFieldsOf(withWalkableFields(object, MAX_KEPT));
    this.set(keyOf(object), drifted ? { ...entry, drifted } : entry);
  }

  /** A watch has delivered the end of an object. */
  observedDeletion(object: AnyObject): void {
    this.advance(object.metadata.resourceVersion, object.metadata.namespace);
    const key = keyOf(object);
    const known = this.entries.get(key);
    this.awaitedDeletions.delete(key);
    // The deletion of a namesake that has been replaced meanwhile is old news.
    if (known && !isNewer(known.object, object)) this.set(key, undefined);
  }

  /** Reports whether the watch has delivered something newer than this version. */
  hasPassed(resourceVersion: string, namespace: string | undefined): boolean {
    return compareResourceVersions(resourceVersion, this.watchOf(namespace).delivered) < 0;
  }

  /**
   * Takes a complete list of a namespace, or of the cluster, at one version, and reports whether the server has gone back to an older
   * state, as after a restored backup. It counts for every object, but for what
   * our own writes returned later; a list that is older than what the watch has delivered counts for these too.
   */
  replace(all: readonly (Entry | undefined)[], resourceVersion: string, namespace?: string): boolean {
    const listed = new Map(all.flatMap((entry) => (entry ? [[keyOf(entry.object), entry] as const] : [])));
    let wentBack = this.hasPassed(resourceVersion, namespace);
    if (wentBack) this.watchOf(namespace).delivered = '0';
    for (const [key, { object }] of this.entries) {
      if (namespace !== undefined && object.metadata.namespace !== namespace) continue;
      if (!wentBack && compareResourceVersions(versionOf(object), resourceVersion) > 0) listed.delete(key);
      else if (!listed.has(key)) this.set(key, undefined, true);
    }
    for (const [key, entry] of listed) {
      const known = this.entries.get(key);
      if (isDeepStrictEqual(known, entry)) continue;
      // What isn't known, in a version that the watch has passed, was deleted later than that.
      wentBack ||= known
        ? isNewer(known.object, entry.object)
        : this.hasPassed(versionOf(entry.object), namespace) && !this.awaitedDeletions.has(key);
      this.set(key, entry, true);
    }
    for (const key of this.awaitedDeletions)
      if (namespace === undefined || splitKey(key).namespace === namespace) this.awaitedDeletions.delete(key);
    this.advance(resourceVersion, namespace);
    return wentBack;
  }

  /** A bookmark: everything up to this version has been delivered, of the namespace or of the cluster. */
  advance(resourceVersion: string | undefined, namespace: string | undefined): void {
    const watch = this.watchOf(namespace);
    if (resourceVersion && compareResourceVersions(resourceVersion, watch.delivered) > 0)
      watch.delivered = resourceVersion;
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
    const now = this.entries.get(key);
    // Others have changed it after the write.
    if (now && versionOf(now.object) !== versionOf(answer.object)) this.set(key, now);
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
    const [before, seen] = [this.entries.get(key), this.watchOf(namespace).delivered];
    const object = await get();
    const version = versionOf(object);
    const wasPassed = compareResourceVersions(version, seen) < 0;
    const isCurrent = this.entries.get(key) === before && wasPassed === this.hasPassed(version, namespace);
    if (isCurrent && before?.object.metadata.resourceVersion !== version) this.storeAnswer(object);
    else this.written(object);
    return object;
  }

  /** Returns who owns what of an object from an answer: usually that is known already. */
  ownedOf(object: AnyObject): OwnedFields {
    const known = this.entries.get(keyOf(object));
    const same = known?.object.metadata.resourceVersion === object.metadata.resourceVersion;
    return known && same ? known.owned : ownedFields(object);
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
    this.set(key, undefined);
  }

  private watchOf(namespace = ''): Following {
    const id = this.props.perNamespace ? namespace : '';
    let watch = this.watches.get(id);
    if (!watch) this.watches.set(id, (watch = { delivered: '0', isLive: false, unserved: undefined }));
    return watch;
  }

  /** An object that no watch has delivered. */
  private storeAnswer(object: AnyObject): void {
    const { selector, name = object.metadata.name } = this.props;
    // Whether another selector than a label's name matches it, only the watch can say.
    const isSelected = selector === undefined || Object.hasOwn(object.metadata.labels ?? {}, selector);
    if (!this.entries.has(keyOf(object)) && (!isSelected || name !== object.metadata.name)) return;
    const entry = this.project(object);
    // Removed now, it could come back with an older version that the watch has yet to deliver.
    if (entry) this.set(keyOf(object), entry);
  }

  /** Replaces what is known of an object; without an entry there is none. The listeners learn it, also where it is the same. */
  private set(key: string, entry: Entry | undefined, list?: true): void {
    const before = this.entries.get(key)?.object;
    const after = entry?.object;
    if (entry) this.entries.set(key, entry);
    else if (!this.entries.delete(key)) return;
    for (const index of this.indexes) index.move(before, after);
    const writers = this.writers.get(key);
    const source = { ...(list && { list }), ...(writers && { writers }) };
    for (const listener of this.listeners) listener(before, after, source);
  }
}

const NOTHING_OWNED: OwnedFields = new Map();

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

/**
 * Index of objects by keys of theirs: what is found takes as many steps as there are of the key, however many others there are, and
 * no look-up in the store, which of 50,000 would take longer than all that is made of them.
 */
export class ObjectIndex {
  /** Objects by name; a map only where there are several, since most keys have one object of a type. */
  private readonly byKey = new Map<string, AnyObject | Map<string, AnyObject>>();

  constructor(private readonly keysOf: (object: AnyObject) => string | readonly string[]) {}

  objectsOf(key: string): readonly AnyObject[] {
    const objects = this.byKey.get(key);
    if (!objects) return [];
    return objects instanceof Map ? [...objects.values()] : [objects];
  }

  /** Follows an object that was added, has changed, or is gone. */
  move(before: AnyObject | undefined, after: AnyObject | undefined): void {
    const now = after ? [this.keysOf(after)].flat() : [];
    if (before)
      for (const key of [this.keysOf(before)].flat()) if (!now.includes(key)) this.remove(key, before);
    if (after) for (const key of now) this.set(key, after);
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

function hasIdentityOf(kept: AnyObject | undefined, object: AnyObject): boolean {
  if (kept?.kind !== object.kind || kept.apiVersion !== object.apiVersion) return false;
  const [a, b] = [kept.metadata, object.metadata];
  return (
    a.name === b.name &&
    a.namespace === b.namespace &&
    a.uid === b.uid &&
    a.resourceVersion === b.resourceVersion
  );
}

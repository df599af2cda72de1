import { isDeepStrictEqual } from 'node:util';
import { controllerOf, objectKey, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { hasDrifted } from './drift.js';
import { managedFieldsOf } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import { Listeners } from './listeners.js';
import type { Listener, Source } from './listeners.js';
import { FieldPaths, isHeld, isLegacy, sharedWith } from './managed-fields.js';
import type { OwnedPaths } from './managed-fields.js';
import type { Answer, Writer } from './pending-writes.js';

/** An object as it is kept, and what was worked out from it before the rest was dropped. */
export interface Entry {
  readonly object: AnyObject;
  readonly owned: OwnedPaths;
  /** Managers whose applied fields a leftover of somebody's command owns too; see `isLegacy`. */
  readonly sharedWithLegacy?: readonly string[];
  /** The same of a leftover of an autoscaler; see `isHeld`. */
  readonly sharedWithHeld?: readonly string[];
  /**
   * Who owns what, kept only since a watch has shown that somebody changed what was applied, and until the answer to
   * the next write: it tells who it was.
   */
  readonly drifted?: readonly ManagedFieldsEntry[];
}

export interface StoreProps {
  /** The projection taken of each object. An object for which it returns undefined counts as absent. */
  readonly keep: (object: AnyObject) => AnyObject | undefined;
  /** Nobody here writes these objects, so who owns which of their fields isn't worked out. @default false */
  readonly readOnly?: boolean;
  /** Each namespace has a watch of its own. @default - one watch covers the cluster */
  readonly perNamespace?: boolean;
  /** The watch delivers only what a label selector matches. @default false */
  readonly selective?: boolean;
  /** The watch delivers only the object of this name. @default - whatever its name */
  readonly name?: string;
  /** Freezes what is kept, so that whoever changes it fails: for tests. @default false */
  readonly freeze?: boolean;
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
  private readonly listeners = new Listeners();
  /** Per watch, the newest version that it has delivered: every older change has been seen. */
  private readonly seen = new Map<string, string>();
  /** Keys of what our own requests have shown to be gone, and no watch has told the end of. */
  private readonly endsToCome = new Set<string>();
  private readonly live = new Set<string>();
  /** By watch, where the API server doesn't serve the kind. */
  private readonly unserved = new Map<string, Unserved>();

  constructor(private readonly props: StoreProps) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /** Of all objects that are known. */
  keys(): IterableIterator<string> {
    return this.entries.keys();
  }

  /** All that are known. */
  objects(): AnyObject[] {
    return Array.from(this.entries.values(), ({ object }) => object);
  }

  /** Those that the owner with this UID controls. */
  controlledBy(ownerUid: string): AnyObject[] {
    return this.controllers.keysOf(ownerUid).flatMap((key) => this.entries.get(key)?.object ?? []);
  }

  /** Whether a watch delivers changes of the namespace, or of the cluster, right now. */
  followed(namespace: string | undefined): boolean {
    return this.live.has(this.watchOf(namespace));
  }

  /** A watch has begun to deliver changes, or has ended. */
  setFollowed(namespace: string | undefined, followed: boolean): void {
    if (followed) this.live.add(this.watchOf(namespace));
    else this.live.delete(this.watchOf(namespace));
  }

  /** How the API server fails to serve the kind; undefined while it serves it. */
  unservedIn(namespace: string | undefined): Unserved | undefined {
    return this.unserved.get(this.watchOf(namespace));
  }

  setUnserved(namespace: string | undefined, unserved: Unserved | undefined): void {
    if (unserved) this.unserved.set(this.watchOf(namespace), unserved);
    else this.unserved.delete(this.watchOf(namespace));
  }

  /** @param name what the listener names itself by when it writes */
  onChange(listener: Listener, name?: unknown): void {
    this.listeners.add(listener, name);
  }

  /**
   * What is kept of an object, so that the rest needn't be held until a list is complete; nothing if it is of no
   * interest.
   */
  project(object: AnyObject): Entry | undefined {
    const kept = this.props.keep(object);
    if (!kept) return undefined;
    if (this.props.freeze) deepFreeze(kept);
    if (this.props.readOnly) return { object: kept, owned: NOTHING_OWNED };
    const legacy = sharedWith(isLegacy, object);
    const held = sharedWith(isHeld, object);
    return {
      ...{ object: kept, owned: this.paths.owned(object) },
      ...(legacy && { sharedWithLegacy: legacy }),
      ...(held && { sharedWithHeld: held }),
    };
  }

  /** A watch has delivered an object. */
  observed(object: AnyObject): void {
    this.advance(object.metadata.resourceVersion, object.metadata.namespace);
    const before = this.entries.get(keyOf(object));
    // As a rule this is the echo of a write of our own: there is nothing to work out again.
    if (before && !isNewer(object, before.object)) return;
    const entry = this.project(object);
    if (!entry) {
      this.remove(keyOf(object), {});
      return;
    }
    this.put(
      before && hasDrifted(before, entry) ? { ...entry, drifted: managedFieldsOf(object) } : entry,
      {},
    );
  }

  /** A watch has delivered the end of an object. */
  observedDeletion(object: AnyObject): void {
    this.advance(object.metadata.resourceVersion, object.metadata.namespace);
    const key = keyOf(object);
    const known = this.entries.get(key);
    this.endsToCome.delete(key);
    // The deletion of a namesake that has been replaced meanwhile is old news.
    if (known && !isNewer(known.object, object)) this.remove(key, {});
  }

  /** Reports whether the watch has delivered something newer than this version. */
  hasPassed(resourceVersion: string, namespace: string | undefined): boolean {
    return compareResourceVersions(resourceVersion, this.seenOf(namespace)) < 0;
  }

  /**
   * Takes a complete list of a namespace, or of the cluster, at one version. It counts for every object, but for what
   * our own writes returned later; a list that is older than what the watch has delivered counts for these too.
   * @returns whether the server has gone back to an older state, as after a restored backup
   */
  replace(all: readonly (Entry | undefined)[], resourceVersion: string, namespace?: string): boolean {
    const listed = new Map(all.flatMap((entry) => (entry ? [[keyOf(entry.object), entry] as const] : [])));
    let wentBack = this.hasPassed(resourceVersion, namespace);
    if (wentBack) this.seen.delete(this.watchOf(namespace));
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
        : this.hasPassed(versionOf(entry.object), namespace) && !this.endsToCome.has(key);
      this.put(entry, { list: true });
    }
    for (const key of this.endsToCome)
      if (namespace === undefined || splitKey(key).namespace === namespace) this.endsToCome.delete(key);
    this.advance(resourceVersion, namespace);
    return wentBack;
  }

  /** A bookmark: everything up to this version has been delivered, of the namespace or of the cluster. */
  advance(resourceVersion: string | undefined, namespace: string | undefined): void {
    if (resourceVersion && compareResourceVersions(resourceVersion, this.seenOf(namespace)) > 0) {
      this.seen.set(this.watchOf(namespace), resourceVersion);
    }
  }

  /** The API server has answered a write with this; what the watches have passed was changed or deleted since. */
  written(object: AnyObject, writer?: Writer): void {
    const known = this.entries.get(keyOf(object));
    const isNews = !this.hasPassed(versionOf(object), object.metadata.namespace);
    // The watch may have been faster.
    if (isNews && (!known || isNewer(object, known.object))) this.take(object, { writer });
    this.explained(keyOf(object), versionOf(object));
  }

  /** Reads one object as it is in etcd: an older version than the known one counts, unless more was learned meanwhile. */
  async read(key: string, get: () => Promise<AnyObject>): Promise<AnyObject> {
    const { namespace } = splitKey(key);
    const [before, seen] = [this.entries.get(key), this.seenOf(namespace)];
    const object = await get();
    const version = versionOf(object);
    const wasPassed = compareResourceVersions(version, seen) < 0;
    const isCurrent = this.entries.get(key) === before && wasPassed === this.hasPassed(version, namespace);
    if (isCurrent && before?.object.metadata.resourceVersion !== version) this.take(object, {});
    else this.written(object);
    return object;
  }

  /** Who owns what of an object that the API server has answered with: as a rule, that is known already. */
  ownedOf(object: AnyObject): OwnedPaths {
    const known = this.entries.get(keyOf(object));
    const same = known?.object.metadata.resourceVersion === object.metadata.resourceVersion;
    return known && same ? known.owned : this.paths.owned(object);
  }

  /**
   * Sends a write of one object, and keeps the answer. The writer is told of the change once, as his own, even if the
   * watch was faster than the answer.
   */
  async write<T extends Answer>(
    key: string,
    writer: Writer,
    send: () => Promise<T>,
    subresource?: 'status',
  ): Promise<T> {
    this.listeners.begin(writer, key, this.entries.get(key)?.object, subresource === 'status');
    try {
      const answer = await send();
      this.listeners.answered(writer, key, answer);
      this.written(answer.object, writer);
      return answer;
    } finally {
      this.listeners.end(writer, key, this.entries.get(key)?.object);
    }
  }

  /** What was kept to tell who changed an object, as it was in this version, has served its purpose. */
  explained(key: string, resourceVersion: string | undefined): void {
    const entry = this.entries.get(key);
    if (!entry?.drifted || entry.object.metadata.resourceVersion !== resourceVersion) return;
    const { drifted, ...rest } = entry;
    this.entries.set(key, rest);
  }

  /** The API server says that the object with this UID, or any of this name, isn't there. */
  gone(key: string, uid?: string): void {
    const known = this.entries.get(key)?.object;
    if (!known || (uid !== undefined && known.metadata.uid !== uid)) return;
    this.endsToCome.add(key);
    this.remove(key, {});
  }

  private seenOf(namespace: string | undefined): string {
    return this.seen.get(this.watchOf(namespace)) ?? '0';
  }

  private watchOf(namespace: string | undefined): string {
    return this.props.perNamespace ? (namespace ?? '') : '';
  }

  /** An object that no watch has delivered. */
  private take(object: AnyObject, source: Source): void {
    const { selective, name = object.metadata.name } = this.props;
    // Whether the selector matches it, only the watch can tell.
    if (!this.entries.has(keyOf(object)) && (selective || name !== object.metadata.name)) return;
    const entry = this.project(object);
    // Removed now, it could come back with an older version that the watch has yet to deliver.
    if (entry) this.put(entry, source);
  }

  private put(entry: Entry, source: Source): void {
    const { object } = entry;
    const key = keyOf(object);
    const before = this.entries.get(key)?.object;
    this.controllers.move(key, before, object);
    this.entries.set(key, entry);
    this.listeners.tell(key, before, object, source);
  }

  private remove(key: string, source: Source): void {
    const before = this.entries.get(key)?.object;
    if (!before) return;
    this.controllers.move(key, before, undefined);
    this.entries.delete(key);
    this.listeners.tell(key, before, undefined, source);
  }
}

const NOTHING_OWNED: OwnedPaths = new Map();

function keyOf(object: AnyObject): string {
  return objectKey(object.metadata.namespace, object.metadata.name);
}

function versionOf({ metadata }: AnyObject): string {
  return metadata.resourceVersion ?? '0';
}

function isNewer(a: AnyObject, b: AnyObject): boolean {
  return compareResourceVersions(versionOf(a), versionOf(b)) > 0;
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
}

/** Which objects an owner controls. */
class ControllerIndex {
  /** By the owner's UID. */
  private readonly index = new KeyIndex();

  keysOf(ownerUid: string): string[] {
    return this.index.keysOf(ownerUid);
  }

  /** An object was added, has changed, or is gone. */
  move(key: string, before: AnyObject | undefined, after: AnyObject | undefined): void {
    const old = before && controllerOf(before)?.uid;
    const now = after && controllerOf(after)?.uid;
    if (old === now) return;
    if (old) this.index.remove(old, key);
    if (now) this.index.add(now, key);
  }
}

/** Finds keys by something that several of them may have in common, such as an owner. */
class KeyIndex {
  /** A set only where there are several, since most owners have one child of a type. */
  private readonly keys = new Map<string, string | Set<string>>();

  keysOf(term: string): string[] {
    const keys = this.keys.get(term) ?? [];
    return typeof keys === 'string' ? [keys] : [...keys];
  }

  add(term: string, key: string): void {
    const keys = this.keys.get(term);
    if (keys === undefined) this.keys.set(term, key);
    else if (typeof keys !== 'string') keys.add(key);
    else if (keys !== key) this.keys.set(term, new Set([keys, key]));
  }

  remove(term: string, key: string): void {
    const keys = this.keys.get(term);
    if (typeof keys !== 'string') keys?.delete(key);
    if (keys === key || (typeof keys !== 'string' && keys?.size === 0)) this.keys.delete(term);
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

import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { ControllerIndex } from './controller-index.js';
import { hasDrifted } from './drift.js';
import { managedFieldsOf } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import { sharedWithLegacy } from './legacy-managers.js';
import { Listeners } from './listeners.js';
import type { Listener, Source } from './listeners.js';
import { FieldPaths } from './managed-fields.js';
import type { OwnedPaths } from './managed-fields.js';
import type { Answer, Writer } from './pending-writes.js';
import { compareResourceVersions } from './resource-version.js';

/** An object as it is kept, and what was worked out from it before the rest was dropped. */
export interface Entry {
  readonly object: AnyObject;
  readonly owned: OwnedPaths;
  /** Managers whose applied fields a leftover of somebody's command owns too; see `sharedWithLegacy`. */
  readonly sharedWithLegacy?: readonly string[];
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
 * **Guarantees.** An object never goes back to an older version. What was deleted doesn't come back through the
 * late answer to a write. A relist replaces everything at once, and tells what has gone. An object that is of no
 * interest any more goes as one that is deleted.
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
    const shared = sharedWithLegacy(object);
    return { object: kept, owned: this.paths.owned(object), ...(shared && { sharedWithLegacy: shared }) };
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
    // The deletion of a namesake that has been replaced meanwhile is old news.
    if (known && !isNewer(known.object, object)) this.remove(key, {});
  }

  /** A watch has delivered all objects of a namespace, or of the cluster, as they were at one version. */
  replace(all: readonly (Entry | undefined)[], resourceVersion: string, namespace?: string): void {
    const entries = all.filter((entry) => entry !== undefined);
    const listed = new Set(entries.map(({ object }) => keyOf(object)));
    // A list is never older than what was delivered before, unless the server itself was put back to a backup: then
    // nothing that was known counts.
    const watch = this.watchOf(namespace);
    const rewound = compareResourceVersions(resourceVersion, this.seen.get(watch) ?? '0') < 0;
    if (rewound) this.seen.delete(watch);
    for (const [key, { object }] of this.entries) {
      if (namespace !== undefined && object.metadata.namespace !== namespace) continue;
      const writtenSince =
        compareResourceVersions(object.metadata.resourceVersion ?? '0', resourceVersion) > 0;
      if (rewound || (!listed.has(key) && !writtenSince)) this.remove(key, { list: true });
    }
    for (const entry of entries) this.put(entry, { list: true });
    this.advance(resourceVersion, namespace);
  }

  /** A bookmark: everything up to this version has been delivered, of the namespace or of the cluster. */
  advance(resourceVersion: string | undefined, namespace: string | undefined): void {
    const watch = this.watchOf(namespace);
    if (resourceVersion && compareResourceVersions(resourceVersion, this.seen.get(watch) ?? '0') > 0) {
      this.seen.set(watch, resourceVersion);
    }
  }

  /** The API server has answered a write, or a read of one object, with this. */
  written(object: AnyObject, writer?: Writer): void {
    const version = object.metadata.resourceVersion ?? '0';
    const known = this.entries.get(keyOf(object));
    // Whether the selector matches it, only the watch can tell.
    if (!known && (this.props.selective || !this.isAskedFor(object))) return;
    // The watches have passed this version, so an object that they don't show has been deleted since.
    const seen = this.seen.get(this.watchOf(object.metadata.namespace)) ?? '0';
    if (!known && compareResourceVersions(version, seen) <= 0) return;
    // The watch may have been faster.
    if (!known || isNewer(object, known.object)) {
      const entry = this.project(object);
      // Removed now, it could come back with an older version that the watch has yet to deliver.
      if (!entry) return;
      this.put(entry, { writer });
    }
    this.explained(keyOf(object), version);
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
    if (known && (uid === undefined || known.metadata.uid === uid)) this.remove(key, {});
  }

  private isAskedFor({ metadata }: AnyObject): boolean {
    return this.props.name === undefined || this.props.name === metadata.name;
  }

  private watchOf(namespace: string | undefined): string {
    return this.props.perNamespace ? (namespace ?? '') : '';
  }

  private put(entry: Entry, source: Source): void {
    const { object } = entry;
    const key = keyOf(object);
    const before = this.entries.get(key)?.object;
    if (before && !isNewer(object, before)) return;
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

function isNewer(a: AnyObject, b: AnyObject): boolean {
  return compareResourceVersions(a.metadata.resourceVersion ?? '0', b.metadata.resourceVersion ?? '0') > 0;
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
}

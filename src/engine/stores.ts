import type { Reader, TypeRef, Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { silentLogger } from '../telemetry/logger.js';
import type { Logger } from '../telemetry/logger.js';
import { guardedKeep, reportTo } from './guarded-keep.js';
import { keepStatus } from '../contract/projections.js';
import { MappedIndex } from './mapped-index.js';
import type { Writer } from './pending-writes.js';
import { Store } from './store.js';

/** A store, and the watch that fills it. */
export interface WatchedStore {
  readonly type: ResourceType;
  readonly selector?: string;
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
 * The stores of all controllers: one for each combination of type, selector, projection and whether it is only read,
 * however many read it.
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
        other.keep === watch.keep &&
        other.readOnly === readOnly,
    );
    if (known) {
      known.optional &&= optional;
      return known.store;
    }
    const store = this.make(watch);
    const selector = watch.selector === undefined ? {} : { selector: watch.selector };
    this.watched.push({ type: watch.type, ...selector, store, keep: watch.keep, optional, readOnly });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }

  private make({ keep = keepStatus, selector, readOnly = false }: Watch): Store {
    const { perNamespace, freeze, log = silentLogger } = this.props;
    const store: Store = new Store({
      ...{ perNamespace, freeze },
      ...{ selective: selector !== undefined, readOnly },
      keep: guardedKeep(
        keep,
        readOnly,
        reportTo(log, readOnly, () => store),
      ),
    });
    return store;
  }
}

interface Watched {
  readonly type: ResourceType;
  readonly store: Store;
  readonly optional: boolean;
  /** Only of what is only read. */
  readonly mapped?: MappedIndex;
}

/** What one controller may see: the stores of its own watches. */
export class StoreReader implements Reader {
  /** As what the stores know whoever writes here; listeners take its `listener` for their own name. */
  readonly writer: Writer;

  private constructor(
    private readonly byType: ReadonlyMap<string, Watched>,
    readonly controller: string,
    writer?: Writer,
  ) {
    this.writer = writer ?? { listener: this };
  }

  /** @param controller names it in metrics. @default - no name */
  static open(watches: readonly Watch[], stores: Stores, controller = ''): StoreReader {
    const types = watches.map(({ type }) => groupKind(type));
    const twice = types.find((type, index) => types.indexOf(type) !== index);
    if (twice) {
      throw new OperatorError({
        reason: 'InvalidDefinition',
        message: `${twice} is watched twice by one controller; watch it once`,
      });
    }
    const byType = new Map(watches.map((watch) => [groupKind(watch.type), watched(watch, stores)]));
    return new StoreReader(byType, controller);
  }

  /** The same, for the plan of one key: what is written there is known as that key's. */
  forKey(key: string): StoreReader {
    return new StoreReader(this.byType, this.controller, { listener: this.writer.listener, key });
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.store(type).get(key)?.object;
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    return this.store(type).controlledBy(ownerUid);
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    const { mapped } = this.watched(type);
    if (mapped) return mapped.objectsOf(key);
    throw new OperatorError({
      reason: 'UndeclaredType',
      message: `${groupKind(type)} is not watched with readOnly: only what is never written is found by the key that it maps to`,
    });
  }

  store(type: TypeRef): Store {
    return this.watched(type).store;
  }

  /** Whether the controller watches such objects. */
  watches(type: TypeRef): boolean {
    return this.byType.has(groupKind(type));
  }

  /** Whether the controller works without the kind. */
  optional(type: TypeRef): boolean {
    return this.watched(type).optional;
  }

  /** How the type is served. */
  resourceType(type: TypeRef): ResourceType {
    return this.watched(type).type;
  }

  private watched(type: TypeRef): Watched {
    const known = this.byType.get(groupKind(type));
    if (known) return known;
    throw new OperatorError({
      reason: 'UndeclaredType',
      message: `${groupKind(type)} is not among the controller's watches: declare it, so that it is watched and permitted`,
    });
  }
}

function watched(watch: Watch, stores: Stores): Watched {
  const { type, optional = false, readOnly } = watch;
  const store = stores.open(watch);
  return { type, store, optional, ...(readOnly && { mapped: new MappedIndex(store, watch) }) };
}

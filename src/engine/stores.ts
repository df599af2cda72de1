import type { Reader, TypeRef, Watch } from '../contract/controller.js';
import type { Deletion } from '../contract/delete-step.js';
import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { silentLogger } from '../telemetry/logger.js';
import type { Logger } from '../telemetry/logger.js';
import { systemClock } from './clock.js';
import { Deletions } from './deletions.js';
import { guardedKeep, reportTo } from './guarded-keep.js';
import { keepStatus } from '../contract/projections.js';
import { MappedIndex } from './mapped-index.js';
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
      ...{ selective: selector !== undefined || name !== undefined, readOnly },
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
  /** Of what is written made when it is asked for first: most controllers never do. */
  readonly mapped: () => MappedIndex;
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
    private readonly byType: ReadonlyMap<string, Watched>,
    private readonly known: Required<Known>,
    writer?: Writer,
  ) {
    this.writer = writer ?? { listener: this };
  }

  static open(watches: readonly Watch[], stores: Stores, known: Known = {}): StoreReader {
    const { controller = '', deletions = new Deletions(systemClock), time = new ServerTime() } = known;
    const types = watches.map(({ type }) => groupKind(type));
    const twice = types.find((type, index) => types.indexOf(type) !== index);
    if (twice) {
      throw new OperatorError({
        reason: 'InvalidDefinition',
        message: `${twice} is watched twice by one controller; watch it once`,
      });
    }
    const byType = new Map(watches.map((watch) => [groupKind(watch.type), watched(watch, stores)]));
    return new StoreReader(byType, { controller, deletions, time });
  }

  /** The same, for the plan of one key: what is written there is known as that key's. */
  forKey(key: string): StoreReader {
    return new StoreReader(this.byType, this.known, { listener: this.writer.listener, key });
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.store(type).get(key)?.object;
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    return this.store(type).controlledBy(ownerUid);
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    return this.watched(type).mapped().objectsOf(key);
  }

  deletions(type: TypeRef, key: string): readonly Deletion[] {
    return this.known.deletions.of(this.watched(type).type, key);
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
  const { type, optional = false } = watch;
  const store = stores.open(watch);
  let index = watch.readOnly ? new MappedIndex(store, watch) : undefined;
  return { type, store, optional, mapped: () => (index ??= new MappedIndex(store, watch)) };
}

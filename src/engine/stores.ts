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
import type { Writer } from './pending-writes.js';
import { ServerTime } from './server-time.js';
import { Store } from './store.js';
import { Watched, WatchesOfType } from './watches-of-type.js';

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

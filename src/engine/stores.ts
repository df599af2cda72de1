import type { Reader, TypeRef, Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { silentLogger } from '../telemetry/logger.js';
import type { Logger } from '../telemetry/logger.js';
import { guardedKeep, reportTo } from './guarded-keep.js';
import { keepStatus } from './keep-status.js';
import type { Writer } from './pending-writes.js';
import { Store } from './store.js';

/** A store, and the watch that fills it. */
export interface WatchedStore {
  readonly type: ResourceType;
  readonly selector?: string;
  readonly store: Store;
  /** None of those who read it needs the kind to be installed. */
  readonly optional: boolean;
}

export interface StoresProps {
  readonly perNamespace: boolean;
  readonly freeze: boolean;
  /** For the bugs of kinds. @default silentLogger */
  readonly log?: Logger;
}

/** The stores of all controllers: one for each combination of type, selector and projection, however many read it. */
export class Stores {
  private readonly watched: (WatchedStore & { readonly keep: Watch['keep']; optional: boolean })[] = [];

  constructor(private readonly props: StoresProps) {}

  /** The store for a watch, made when the first one asks. */
  open(watch: Watch): Store {
    const known = this.watched.find(
      ({ type, selector, keep }) =>
        groupKind(type) === groupKind(watch.type) && selector === watch.selector && keep === watch.keep,
    );
    const optional = watch.optional ?? false;
    if (known) {
      known.optional &&= optional;
      return known.store;
    }
    const store = this.make(watch);
    const selector = watch.selector === undefined ? {} : { selector: watch.selector };
    this.watched.push({ type: watch.type, ...selector, store, keep: watch.keep, optional });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }

  private make({ keep = keepStatus, selector }: Watch): Store {
    const { perNamespace, freeze, log = silentLogger } = this.props;
    const store: Store = new Store({
      ...{ perNamespace, freeze },
      selective: selector !== undefined,
      keep: guardedKeep(
        keep,
        reportTo(log, () => store),
      ) as (object: AnyObject) => AnyObject,
    });
    return store;
  }
}

type Watched = ReadonlyMap<string, { readonly type: ResourceType; readonly store: Store }>;

/** What one controller may see: the stores of its own watches. */
export class StoreReader implements Reader {
  /** As what the stores know whoever writes here; listeners take its `listener` for their own name. */
  readonly writer: Writer;

  private constructor(
    private readonly byType: Watched,
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
    const byType = new Map(
      watches.map((watch) => [groupKind(watch.type), { type: watch.type, store: stores.open(watch) }]),
    );
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

  mappedTo(): readonly AnyObject[] {
    return [];
  }

  store(type: TypeRef): Store {
    return this.watched(type).store;
  }

  /** How the type is served. */
  resourceType(type: TypeRef): ResourceType {
    return this.watched(type).type;
  }

  private watched(type: TypeRef): { readonly type: ResourceType; readonly store: Store } {
    const known = this.byType.get(groupKind(type));
    if (known) return known;
    throw new OperatorError({
      reason: 'UndeclaredType',
      message: `${groupKind(type)} is not among the controller's watches: declare it, so that it is watched and permitted`,
    });
  }
}

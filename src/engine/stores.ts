import type { Reader, TypeRef, Watch } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { keepStatus } from './keep-status.js';
import { Store } from './store.js';

/** A store, and the watch that fills it. */
export interface WatchedStore {
  readonly type: ResourceType;
  readonly selector?: string;
  readonly store: Store;
}

/** The stores of all controllers: one for each combination of type, selector and projection, however many read it. */
export class Stores {
  private readonly watched: (WatchedStore & { readonly keep: Watch['keep'] })[] = [];

  constructor(private readonly options: { readonly perNamespace: boolean; readonly freeze: boolean }) {}

  /** The store for a watch, made when the first one asks. */
  open(watch: Watch): Store {
    const known = this.watched.find(
      ({ type, selector, keep }) =>
        groupKind(type) === groupKind(watch.type) && selector === watch.selector && keep === watch.keep,
    );
    if (known) return known.store;
    const { keep = keepStatus } = watch;
    const store = new Store({ ...this.options, keep, selective: watch.selector !== undefined });
    const selector = watch.selector === undefined ? {} : { selector: watch.selector };
    this.watched.push({ type: watch.type, ...selector, store, keep: watch.keep });
    return store;
  }

  all(): readonly WatchedStore[] {
    return this.watched;
  }
}

/** What one controller may see: the stores of its own watches. */
export class StoreReader implements Reader {
  private readonly byType: ReadonlyMap<string, { readonly type: ResourceType; readonly store: Store }>;

  /** @param controller names it in metrics. @default - no name */
  constructor(
    watches: readonly Watch[],
    stores: Stores,
    readonly controller = '',
  ) {
    const types = watches.map(({ type }) => groupKind(type));
    const twice = types.find((type, index) => types.indexOf(type) !== index);
    if (twice) {
      throw new OperatorError({
        reason: 'InvalidDefinition',
        message: `${twice} is watched twice by one controller; watch it once`,
      });
    }
    this.byType = new Map(
      watches.map((watch) => [groupKind(watch.type), { type: watch.type, store: stores.open(watch) }]),
    );
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    return this.store(type).get(key)?.object;
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    return this.store(type).controlledBy(ownerUid);
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

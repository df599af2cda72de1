import type { Watch } from '../contract/controller.js';
import { objectKey, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { MappedIndex } from './mapped-index.js';
import type { Store } from './store.js';

/** A watch of a controller, and the store that it fills. */
export class Watched {
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
export class WatchesOfType {
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

import { messageOf, OperatorError } from '../../contract/error.js';
import { Matching } from './matching.js';
import type { Settings } from './settings.js';
import { readWatcher } from './watcher.js';
import type { LiveWatcher, Watcher } from './watcher.js';

/** A JobWatcher that there is, and how it reads. */
export interface ReadWatcher {
  readonly cr: LiveWatcher;
  readonly watcher: Watcher | OperatorError;
}

interface Known {
  readonly generation: number | undefined;
  readonly watcher: Watcher | OperatorError;
}

/** Reads each generation of a watcher once, and judges each Job once for as long as all watchers stay as they are. */
export class WatcherSet {
  private known = new Map<string, Known>();
  private current: Matching;

  constructor(private readonly settings: Settings) {
    this.current = new Matching([], settings);
  }

  /** @param crs all that there are; what isn't among them any more is forgotten */
  read(crs: readonly LiveWatcher[]): readonly ReadWatcher[] {
    const known = new Map<string, Known>();
    const all = crs.map((cr) => {
      const read = this.readOne(cr);
      known.set(uidOf(cr), read);
      return { cr, watcher: read.watcher };
    });
    this.known = known;
    const watchers = all.flatMap(({ watcher }) => (watcher instanceof OperatorError ? [] : [watcher]));
    if (!sameItems(watchers, this.current.watchers)) this.current = new Matching(watchers, this.settings);
    return all;
  }

  /** Of those that were read last. */
  get matching(): Matching {
    return this.current;
  }

  private readOne(cr: LiveWatcher): Known {
    const { generation } = cr.metadata;
    const known = this.known.get(uidOf(cr));
    if (known && known.generation === generation) return known;
    return { generation, watcher: this.readNew(cr) };
  }

  private readNew(cr: LiveWatcher): Watcher | OperatorError {
    try {
      return readWatcher(cr, this.settings);
    } catch (error) {
      if (error instanceof OperatorError) return error;
      return new OperatorError({ reason: 'InvalidSpec', message: messageOf(error), cause: error });
    }
  }
}

export function uidOf({ metadata }: LiveWatcher): string {
  return metadata.uid ?? '';
}

/** In whatever order. */
function sameItems(a: readonly Watcher[], b: readonly Watcher[]): boolean {
  const known = new Set(b);
  return a.length === b.length && a.every((item) => known.has(item));
}

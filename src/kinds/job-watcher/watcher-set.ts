import { messageOf, OperatorError } from '../../contract/error.js';
import { MAX_NAMESPACE_SIZE, patternSizes, tooLarge } from './patterns.js';
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
  readonly sizes: ReadonlyMap<string, number> | OperatorError;
  /** @default - it wasn't read, since the patterns of others leave no room for its own */
  read?: Watcher | OperatorError;
  /** @default - its patterns never lacked room */
  crowded?: OperatorError;
  /** Which of these counts. @default - it wasn't looked at */
  watcher?: Watcher | OperatorError;
}

/** The patterns of one namespace. */
interface Taken {
  readonly patterns: Set<string>;
  size: number;
}

/**
 * Reads each generation of a watcher once.
 *
 * The patterns of one namespace are bounded: the oldest watchers keep theirs, and those that are beyond it are refused.
 */
export class WatcherSet {
  /** Oldest first. */
  private known = new Map<string, Known>();

  constructor(private readonly settings: Settings) {}

  /**
   * @param crs all that there are; what isn't among them any more is forgotten
   * @param isTimeUp asked after each that is new; what was read is known the next time
   * @returns nothing where time was up before all were read
   */
  read(crs: readonly LiveWatcher[], isTimeUp: () => boolean): readonly ReadWatcher[] | undefined {
    const byUid = new Map(crs.map((cr) => [uidOf(cr), cr]));
    const isKnown = ([uid, { generation }]: [string, Known]): boolean =>
      byUid.has(uid) && byUid.get(uid)?.metadata.generation === generation;
    const isSame = byUid.size === this.known.size && [...this.known].every(isKnown);
    if (!isSame && !this.readAll(crs, isTimeUp)) return undefined;
    return [...this.known].map(([uid, { watcher }]) => ({ cr: byUid.get(uid), watcher }) as ReadWatcher);
  }

  private readAll(crs: readonly LiveWatcher[], isTimeUp: () => boolean): boolean {
    const before = this.known;
    this.known = new Map();
    const byNamespace = new Map<string, Taken>();
    let isLate = false;
    for (const cr of [...crs].sort(oldestFirst)) {
      if (isLate) {
        this.known = new Map([...before, ...this.known]);
        return false;
      }
      const { namespace = '', generation } = cr.metadata;
      const last = before.get(uidOf(cr));
      const isNew = last?.generation !== generation;
      const known: Known =
        isNew || !last ? { generation, sizes: attempt(() => patternSizes(cr.spec)) } : last;
      this.known.set(uidOf(cr), known);
      const taken = byNamespace.get(namespace) ?? { patterns: new Set(), size: 0 };
      byNamespace.set(namespace, taken);
      known.watcher = this.readOne(cr, known, taken);
      isLate = isNew && isTimeUp();
    }
    return true;
  }

  private readOne(cr: LiveWatcher, known: Known, taken: Taken): Watcher | OperatorError {
    const { sizes } = known;
    if (sizes instanceof OperatorError) return sizes;
    const added = [...sizes].filter(([pattern]) => !taken.patterns.has(pattern));
    const size = added.reduce((sum, [, its]) => sum + its, 0);
    if (taken.size + size > MAX_NAMESPACE_SIZE)
      return (known.crowded ??= tooLarge(
        `the patterns have a size of ${size}, for which those of older JobWatchers in ${cr.metadata.namespace} leave no room`,
        MAX_NAMESPACE_SIZE,
        ['spec'],
      ));
    taken.size += size;
    for (const [pattern] of added) taken.patterns.add(pattern);
    return (known.read ??= attempt(() => readWatcher(cr, this.settings)));
  }
}

/** Returns an error in place of throwing it. */
export function attempt<T>(read: () => T): T | OperatorError {
  try {
    return read();
  } catch (error) {
    if (error instanceof OperatorError) return error;
    return new OperatorError({ reason: 'InvalidSpec', message: messageOf(error), cause: error });
  }
}

export function uidOf({ metadata }: LiveWatcher): string {
  return metadata.uid ?? '';
}

/** Those of the same second by name. */
function oldestFirst({ metadata: a }: LiveWatcher, { metadata: b }: LiveWatcher): number {
  const { creationTimestamp: first = '' } = a;
  const { creationTimestamp: second = '' } = b;
  return first === second ? (a.name < b.name ? -1 : 1) : first < second ? -1 : 1;
}

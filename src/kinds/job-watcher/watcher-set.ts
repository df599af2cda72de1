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
  private known = new Map<string, Known>();

  constructor(private readonly settings: Settings) {}

  /**
   * @param crs all that there are; what isn't among them any more is forgotten
   * @param isTimeUp asked after each that was read; what was read is known the next time
   * @returns nothing where time was up before all were read
   */
  read(crs: readonly LiveWatcher[], isTimeUp: () => boolean): readonly ReadWatcher[] | undefined {
    const before = this.known;
    this.known = new Map();
    const byNamespace = new Map<string, Taken>();
    const all: ReadWatcher[] = [];
    let isLate = false;
    for (const cr of [...crs].sort(oldestFirst)) {
      const known = this.knownOf(cr, before);
      const { namespace = '' } = cr.metadata;
      const taken = byNamespace.get(namespace) ?? { patterns: new Set(), size: 0 };
      byNamespace.set(namespace, taken);
      const refused = refusal(known, taken, namespace);
      if (!refused && !known.read) {
        if (isLate) continue;
        known.read = attempt(() => readWatcher(cr, this.settings));
        isLate = isTimeUp();
      }
      all.push({ cr, watcher: refused ?? (known.read as Watcher | OperatorError) });
    }
    return all.length === crs.length ? all : undefined;
  }

  private knownOf(cr: LiveWatcher, before: ReadonlyMap<string, Known>): Known {
    const { generation } = cr.metadata;
    const known = before.get(uidOf(cr));
    const isSame = known && known.generation === generation;
    const now: Known = isSame ? known : { generation, sizes: attempt(() => patternSizes(cr.spec)) };
    this.known.set(uidOf(cr), now);
    return now;
  }
}

/** Takes the patterns of a watcher in, or refuses it where they don't fit. */
function refusal({ sizes }: Known, taken: Taken, namespace: string): OperatorError | undefined {
  if (sizes instanceof OperatorError) return sizes;
  const added = [...sizes].filter(([pattern]) => !taken.patterns.has(pattern));
  const size = added.reduce((sum, [, its]) => sum + its, taken.size);
  if (size > MAX_NAMESPACE_SIZE) {
    const what = `with those of older JobWatchers in ${namespace} the patterns have a size of ${size}`;
    return tooLarge(what, MAX_NAMESPACE_SIZE, ['spec']);
  }
  taken.size = size;
  for (const [pattern] of added) taken.patterns.add(pattern);
  return undefined;
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

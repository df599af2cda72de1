import { messageOf, OperatorError } from '../../contract/error.js';
import { selects } from '../../values/label-selector.js';
import { compare, keyOf } from '../../contract/object.js';
import { controlOf } from '../../values/control.js';
import { compileRegularExpression, sizeOfRegularExpression } from '../../values/regular-expression.js';
import { formatPath } from '../../values/path.js';
import { durationSeconds } from './duration.js';
import type { Outcome } from './job.js';
import type { Settings } from './settings.js';
import type { JobWatcherSpec, LiveWatcher } from './spec.js';

/** A JobWatcher that is ready to judge: its spec, of which the durations are seconds and the patterns compiled. */
export interface Watcher extends Omit<
  JobWatcherSpec,
  'completedTTL' | 'failedTTL' | 'frequency' | 'selector'
> {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  /** Whether it is suspended by the annotation. @default - by its spec, if at all */
  readonly isPaused?: boolean;
  readonly ttlSeconds: Readonly<Partial<Record<Outcome, number>>>;
  readonly frequencySeconds: number;
  /** Whether its patterns count in its own namespace alone, though they may name others. */
  readonly isScopeLimited: boolean;
  /** Namespaces in which it acts, the admin's protected ones not left out. @default - its own namespace alone */
  readonly namespacePatterns?: readonly string[];
  /** @param found known answers for patterns on that name */
  coversJob(name: string, labels: Readonly<Record<string, string>>, found?: Map<string, boolean>): boolean;
}

const DEFAULT_FREQUENCY = '1m';

/**
 * Reads a JobWatcher.
 * @throws OperatorError `PatternsTooLarge`, `InvalidPattern`, `InvalidDuration` for what the API server would refuse
 *   today, `InvalidAnnotation` for what it can't check, and `NamespaceNotPermitted` where nothing can be in its scope
 */
export function readWatcher({ metadata, spec }: LiveWatcher, settings: Settings): Watcher {
  const { namespace = '' } = metadata;
  const { completedTTL, failedTTL, frequency, selector = {}, namespacePatterns, ...others } = spec;
  const { jobNamePatterns } = spec;
  checkPatterns(spec);
  const { isPaused } = controlOf(metadata.annotations ?? {});
  return {
    ...{ ...others, ...(isPaused && { suspend: true, isPaused }) },
    key: keyOf({ metadata }),
    namespace,
    ttlSeconds: {
      ...(completedTTL !== undefined && { completed: seconds(completedTTL, 'completedTTL') }),
      ...(failedTTL !== undefined && { failed: seconds(failedTTL, 'failedTTL') }),
    },
    frequencySeconds: Math.max(1, seconds(frequency ?? DEFAULT_FREQUENCY, 'frequency')),
    ...scope(namespace, namespacePatterns, settings),
    coversJob: (job, labels, found) =>
      selects(selector, labels) && (!jobNamePatterns || findsOne(jobNamePatterns, job, found)),
  };
}

/** An admin's namespace is listed by name: with a pattern, creating a namespace could make its creator an admin. */
function scope(
  own: string,
  patterns: readonly string[] | undefined,
  { adminNamespaces }: Settings,
): Pick<Watcher, 'isScopeLimited' | 'namespacePatterns'> {
  if (patterns === undefined) return { isScopeLimited: false };
  if (adminNamespaces.includes(own)) return { isScopeLimited: false, namespacePatterns: patterns };
  if (findsOne(patterns, own)) return { isScopeLimited: patterns.some((pattern) => pattern !== `^${own}$`) };
  throw new OperatorError({
    reason: 'NamespaceNotPermitted',
    path: ['spec', 'namespacePatterns'],
    message:
      `namespacePatterns don't match ${own}, and a JobWatcher there acts in that namespace alone; ` +
      'change the patterns, or ask an admin to make it in a namespace from which others may be watched',
  });
}

function seconds(text: string, field: string): number {
  const value = durationSeconds(text);
  if (value !== undefined) return value;
  throw new OperatorError({
    reason: 'InvalidDuration',
    path: ['spec', field],
    message: `spec.${field}: ${JSON.stringify(text)} is not a time that can pass; give one such as 90s or 1h30m`,
  });
}

/** A JobWatcher, and the reading of its spec, or why it can't work. */
export interface ReadWatcher {
  readonly cr: LiveWatcher;
  readonly watcher: Watcher | undefined;
  readonly error: OperatorError | undefined;
}

/** Findings about one generation. */
interface Known {
  /** Generation, and the annotations, which may change without another one. */
  readonly version: string;
  /** Sizes of its patterns. */
  readonly sizes: ReadonlyMap<string, number> | OperatorError;
  read?: Watcher | OperatorError;
}

/**
 * Reads each generation of a watcher once. The size of the patterns of one namespace is bounded: the oldest watchers keep
 * theirs, and those beyond it are refused.
 */
export class WatcherSet {
  private known = new Map<string, Known>();

  constructor(private readonly settings: Settings) {}

  /**
   * @param crs every watcher; what isn't among them is forgotten
   * @param isTimeUp asked after each that is new; what was read is known the next time
   * @returns the watchers, oldest first; undefined where time was up
   */
  read(crs: readonly LiveWatcher[], isTimeUp: () => boolean): readonly ReadWatcher[] | undefined {
    const all: ReadWatcher[] = [];
    const present = new Map<string, Known>();
    /** Patterns by namespace, each counted once. */
    const taken = new Map<string, { readonly patterns: Set<string>; size: number }>();
    for (const cr of [...crs].sort(oldestFirst)) {
      const { namespace = '', uid = '', generation, annotations } = cr.metadata;
      const version = `${generation} ${JSON.stringify(annotations)}`;
      const before = this.known.get(uid);
      const isNew = before?.version !== version;
      const known = isNew ? { version, sizes: attempt(() => patternSizes(cr.spec)) } : before;
      this.known.set(uid, known);
      present.set(uid, known);
      const its = taken.get(namespace) ?? { patterns: new Set(), size: 0 };
      taken.set(namespace, its);
      const read = this.readIn(cr, known, its);
      const isError = read instanceof OperatorError;
      all.push({ cr, watcher: isError ? undefined : read, error: isError ? read : undefined });
      if (isNew && isTimeUp()) return undefined;
    }
    this.known = present;
    return all;
  }

  /** @param its patterns of the older ones in its namespace */
  private readIn(
    cr: LiveWatcher,
    known: Known,
    its: { readonly patterns: Set<string>; size: number },
  ): Watcher | OperatorError {
    const { sizes } = known;
    if (sizes instanceof OperatorError) return sizes;
    const added = [...sizes].filter(([pattern]) => !its.patterns.has(pattern));
    const size = added.reduce((sum, [, one]) => sum + one, 0);
    if (its.size + size > MAX_NAMESPACE_SIZE) {
      const what = `the patterns have a size of ${size}, for which those of older JobWatchers in ${cr.metadata.namespace} leave no room`;
      return tooLarge(what, MAX_NAMESPACE_SIZE, ['spec']);
    }
    its.size += size;
    for (const [pattern] of added) its.patterns.add(pattern);
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

function oldestFirst({ metadata: a }: LiveWatcher, { metadata: b }: LiveWatcher): number {
  return (
    compare(a.creationTimestamp ?? '', b.creationTimestamp ?? '') ||
    compare(a.name, b.name) ||
    compare(a.namespace ?? '', b.namespace ?? '')
  );
}

/** Maximum number of instructions that a pattern is compiled to. */
export const MAX_PATTERN_SIZE = 1500;

/** Maximum number of instructions for all patterns of a JobWatcher. */
export const MAX_WATCHER_SIZE = 5000;

/** Maximum number of instructions for all patterns in a namespace, since each of its Jobs may be searched for them. */
export const MAX_NAMESPACE_SIZE = 20_000;

/** All patterns of a spec, each with its place. */
function patternsOf(spec: JobWatcherSpec) {
  return (['namespacePatterns', 'jobNamePatterns'] as const).flatMap((list) =>
    (spec[list] ?? []).map((pattern, index) => ({ pattern, path: ['spec', list, index] })),
  );
}

/**
 * Sizes the patterns of a JobWatcher, without compiling them: compiling is what costs.
 * @throws OperatorError `PatternsTooLarge`
 */
function patternSizes(spec: JobWatcherSpec): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const { pattern, path } of patternsOf(spec)) {
    const size = sizeOfRegularExpression(pattern);
    const what = `${JSON.stringify(pattern)} is a regular expression of size ${size}`;
    if (size > MAX_PATTERN_SIZE) throw tooLarge(what, MAX_PATTERN_SIZE, path);
    sizes.set(pattern, size);
  }
  const size = [...sizes.values()].reduce((sum, its) => sum + its, 0);
  if (size > MAX_WATCHER_SIZE)
    throw tooLarge(`the patterns have a size of ${size}`, MAX_WATCHER_SIZE, ['spec']);
  return sizes;
}

function tooLarge(what: string, most: number, path: readonly (string | number)[]): OperatorError {
  const message = `${formatPath(path)}: ${what}, at most ${most} is allowed; give less, and smaller repetitions: "x{0,100}" stands for a hundred x`;
  return new OperatorError({ reason: 'PatternsTooLarge', path, message });
}

/**
 * Checks the patterns of a JobWatcher: RE2, as the API server checks them.
 * @throws OperatorError `PatternsTooLarge`, or `InvalidPattern` with the parser's own message
 */
export function checkPatterns(spec: JobWatcherSpec): void {
  patternSizes(spec);
  for (const { pattern, path } of patternsOf(spec))
    try {
      compileRegularExpression(pattern);
    } catch (cause) {
      const message = `${JSON.stringify(pattern)} is not a regular expression of RE2: ${messageOf(cause)}; correct it`;
      throw new OperatorError({ reason: 'InvalidPattern', path, message, cause });
    }
}

/**
 * Reports whether one of the patterns is found anywhere in a text.
 * @param found known answers for that text: equal patterns are searched for once
 */
export function findsOne(
  patterns: readonly string[],
  text: string,
  found = new Map<string, boolean>(),
): boolean {
  return patterns.some((pattern) => {
    const known = found.get(pattern) ?? compileRegularExpression(pattern).test(text);
    found.set(pattern, known);
    return known;
  });
}

import { messageOf, OperatorError } from '../../contract/error.js';
import { objectKey } from '../../contract/object.js';
import type { CustomResource } from '../../contract/object.js';
import { compileRegularExpression, sizeOfRegularExpression } from '../../contract/regular-expression.js';
import { durationSeconds } from './duration.js';
import type { Outcome } from './keep-job.js';
import type { Settings } from './settings.js';
import type {
  JobWatcherSpec,
  JobWatcherStatus,
  KeepLast,
  LabelExpression,
  LabelSelector,
  Limits,
  OwnerPolicy,
} from './spec.js';

export type LiveWatcher = CustomResource<JobWatcherSpec, JobWatcherStatus>;

/** A JobWatcher that is ready to judge. */
export interface Watcher {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly ttlSeconds: Readonly<Partial<Record<Outcome, number>>>;
  readonly frequencySeconds: number;
  readonly priority: number;
  readonly dryRun: boolean;
  readonly suspended: boolean;
  readonly ownerPolicy: Required<OwnerPolicy>;
  readonly skipsTracked: boolean;
  readonly propagation: 'Background' | 'Foreground';
  readonly limits?: Limits;
  readonly keepLast?: KeepLast;
  readonly allowsShorter: boolean;
  /** Its patterns may name other namespaces, and count in its own alone. */
  readonly isScopeLimited: boolean;
  /** Where it acts, the admin's protected namespaces not left out. @default - in its own namespace alone */
  readonly namespacePatterns?: readonly string[];
  /** @param found which patterns are in that name, as far as that is known */
  coversJob(name: string, labels: Readonly<Record<string, string>>, found?: Map<string, boolean>): boolean;
}

const DEFAULT_FREQUENCY_SECONDS = 60;

/**
 * Reads a JobWatcher.
 * @throws OperatorError `PatternsTooLarge`, `InvalidPattern`, `InvalidDuration` for what the API server would refuse
 *   today, and `NamespaceNotPermitted` where nothing can be in its scope
 */
export function readWatcher({ metadata, spec }: LiveWatcher, settings: Settings): Watcher {
  const namespace = metadata.namespace ?? '';
  const { limits, keepLast, selector = {}, jobNamePatterns } = spec;
  checkPatterns(spec);
  return {
    key: objectKey(metadata.namespace, metadata.name),
    namespace,
    ttlSeconds: {
      ...(spec.completedTTL !== undefined && { completed: seconds(spec.completedTTL, 'completedTTL') }),
      ...(spec.failedTTL !== undefined && { failed: seconds(spec.failedTTL, 'failedTTL') }),
    },
    frequencySeconds:
      spec.frequency === undefined
        ? DEFAULT_FREQUENCY_SECONDS
        : Math.max(1, seconds(spec.frequency, 'frequency')),
    priority: spec.priority ?? 0,
    dryRun: spec.dryRun ?? false,
    suspended: spec.suspend ?? false,
    ownerPolicy: {
      cronJob: 'Delete',
      managedBy: 'Skip',
      ttlSecondsAfterFinished: 'Skip',
      ...spec.ownerPolicy,
    },
    skipsTracked: (spec.tracked ?? 'Skip') === 'Skip',
    propagation: spec.propagationPolicy ?? 'Background',
    ...(limits && { limits }),
    ...(keepLast && { keepLast }),
    allowsShorter: spec.allowShorterOverrides ?? false,
    ...scope(namespace, spec.namespacePatterns, settings),
    coversJob: (name, labels, found) =>
      selects(selector, labels) && (!jobNamePatterns || findsOne(jobNamePatterns, name, found)),
  };
}

/** An admin's namespace is listed by name: a pattern there would let whoever makes namespaces become one. */
function scope(
  own: string,
  patterns: readonly string[] | undefined,
  { adminNamespaces }: Settings,
): Pick<Watcher, 'isScopeLimited' | 'namespacePatterns'> {
  if (patterns === undefined) return { isScopeLimited: false };
  if (adminNamespaces.includes(own)) return { isScopeLimited: false, namespacePatterns: patterns };
  if (!findsOne(patterns, own)) {
    throw new OperatorError({
      reason: 'NamespaceNotPermitted',
      path: ['spec', 'namespacePatterns'],
      message:
        `namespacePatterns don't match ${own}, and a JobWatcher there acts in that namespace alone; ` +
        'change the patterns, or ask an admin to make it in a namespace from which others may be watched',
    });
  }
  return { isScopeLimited: patterns.some((pattern) => pattern !== `^${own}$`) };
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
  /** All of them were read against the same bounds. */
  private isComplete = false;

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
    const isSame = this.isComplete && byUid.size === this.known.size && [...this.known].every(isKnown);
    if (!isSame && !this.readAll(crs, isTimeUp)) return undefined;
    return [...this.known].map(([uid, { watcher }]) => ({ cr: byUid.get(uid), watcher }) as ReadWatcher);
  }

  private readAll(crs: readonly LiveWatcher[], isTimeUp: () => boolean): boolean {
    const before = this.known;
    this.isComplete = false;
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
    this.isComplete = true;
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

type Labels = Readonly<Record<string, string>>;

/**
 * Whether labels are as a selector wants them; an empty one takes any.
 * @see
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#resources-that-support-set-based-requirements
 */
export function selects(selector: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => valueOf(labels, key) === value) &&
    (selector.matchExpressions ?? []).every((expression) => holds(expression, labels))
  );
}

function holds({ key, operator, values = [] }: LabelExpression, labels: Labels): boolean {
  const value = valueOf(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** Most instructions that one pattern may be compiled to. */
export const MAX_PATTERN_SIZE = 1500;

/** The same of all patterns of one JobWatcher. */
export const MAX_WATCHER_SIZE = 5000;

/** The same of the different patterns of all JobWatchers in one namespace, which each of its Jobs may be searched for. */
export const MAX_NAMESPACE_SIZE = 20_000;

const LISTS = ['namespacePatterns', 'jobNamePatterns'] as const;

/**
 * Sizes of the patterns of a JobWatcher. None is compiled for that: compiling is what costs.
 * @throws OperatorError `PatternsTooLarge`
 */
export function patternSizes(spec: JobWatcherSpec): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const list of LISTS)
    for (const [index, pattern] of [...(spec[list] ?? [])].entries()) {
      const size = sizeOfRegularExpression(pattern);
      const what = `${JSON.stringify(pattern)} is a regular expression of size ${size}`;
      if (size > MAX_PATTERN_SIZE) throw tooLarge(what, MAX_PATTERN_SIZE, ['spec', list, index]);
      sizes.set(pattern, size);
    }
  const size = [...sizes.values()].reduce((sum, its) => sum + its, 0);
  if (size > MAX_WATCHER_SIZE)
    throw tooLarge(`the patterns have a size of ${size}`, MAX_WATCHER_SIZE, ['spec']);
  return sizes;
}

/** @param path where it is in the custom resource */
export function tooLarge(what: string, most: number, path: readonly (string | number)[]): OperatorError {
  const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
  const message = `${place.slice(1)}: ${what}, at most ${most} is allowed; give less, and smaller repetitions: "x{0,100}" stands for a hundred x`;
  return new OperatorError({ reason: 'PatternsTooLarge', path, message });
}

/**
 * Checks the patterns of a JobWatcher: RE2, as the API server checks them.
 * @throws OperatorError `PatternsTooLarge`, or `InvalidPattern` with the parser's own message
 */
export function checkPatterns(spec: JobWatcherSpec): void {
  patternSizes(spec);
  for (const list of LISTS)
    for (const [index, pattern] of [...(spec[list] ?? [])].entries()) {
      try {
        compileRegularExpression(pattern);
      } catch (cause) {
        const message = `${JSON.stringify(pattern)} is not a regular expression of RE2: ${messageOf(cause)}; correct it`;
        throw new OperatorError({ reason: 'InvalidPattern', path: ['spec', list, index], message, cause });
      }
    }
}

/**
 * Reports whether one of the patterns is found anywhere in a text.
 * @param found what is known of that text already: equal patterns are searched for once
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

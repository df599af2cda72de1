import { OperatorError } from '../../contract/error.js';
import { objectKey } from '../../contract/object.js';
import type { CustomResource } from '../../contract/object.js';
import { durationSeconds } from './duration.js';
import type { Outcome } from './finish.js';
import { checkPatterns, findsOne } from './patterns.js';
import { selects } from './selector.js';
import { isListed } from './settings.js';
import type { Settings } from './settings.js';
import type { JobWatcherSpec, JobWatcherStatus, KeepLast, Limits, OwnerPolicy } from './spec.js';

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

/** Whether nothing may be deleted in a namespace, whatever a JobWatcher says. */
export function isProtected({ protectedNamespaces }: Settings, namespace: string): boolean {
  return isListed(protectedNamespaces, namespace);
}

import type { Condition } from '../../contract/conditions.js';
import type { CustomResource } from '../../contract/object.js';

export type LiveWatcher = CustomResource<JobWatcherSpec, JobWatcherStatus>;

/** Which finished Jobs are deleted, and when. Durations are in the syntax of Go, e.g. `1h30m`. */
export interface JobWatcherSpec {
  /** Regular expressions of RE2, unanchored; one has to match the namespace. @default - the watcher's own namespace */
  readonly namespacePatterns?: readonly string[];
  /** Regular expressions of RE2, unanchored; one has to match the name. @default - every name */
  readonly jobNamePatterns?: readonly string[];
  /** @default - any labels */
  readonly selector?: LabelSelector;
  /** From the completion to the deletion. @default - never */
  readonly completedTTL?: string;
  /** From the failure to the deletion. @default - never */
  readonly failedTTL?: string;
  /** Minimum between two writes of the status, and between two runs with limits. @default 1m */
  readonly frequency?: string;
  /** @default false */
  readonly dryRun?: boolean;
  /** @default false */
  readonly suspend?: boolean;
  /** @default 0 */
  readonly priority?: number;
  /** Treatment of Jobs that others are responsible for. */
  readonly ownerPolicy?: {
    /** @default Delete */
    readonly cronJob?: DeleteOrSkip;
    /** Those whose `spec.managedBy` names another controller than Kubernetes' own. @default Skip */
    readonly managedBy?: DeleteOrSkip;
    /** Those that Kubernetes deletes by itself. @default Skip */
    readonly ttlSecondsAfterFinished?: DeleteOrSkip;
  };
  /** Jobs of Argo CD, Flux and Helm. @default Skip */
  readonly tracked?: DeleteOrSkip;
  /** @default Background */
  readonly propagationPolicy?: 'Background' | 'Foreground';
  /** @default - none */
  readonly limits?: Limits;
  /** @default - none is kept */
  readonly keepLast?: KeepLast;
  /** Whether annotations of a Job may shorten its TTL. @default false */
  readonly allowShorterOverrides?: boolean;
}

export type DeleteOrSkip = 'Delete' | 'Skip';

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** How much one run may delete. */
export interface Limits {
  readonly maxPerRun?: number;
  /** Share of the Jobs matched; never rounded up. */
  readonly maxPercent?: number;
  /** @default Abort */
  readonly mode?: 'Abort' | 'Throttle';
}

/** How many of the newest finished Jobs stay, for each controller, else for each value of the label. */
export interface KeepLast {
  readonly completed?: number;
  readonly failed?: number;
  readonly groupByLabel?: string;
}

/** Counts of a run. */
export interface RunCounts {
  readonly namespaces: number;
  readonly matched: number;
  readonly finished: number;
  readonly deleted: number;
  readonly failed: number;
  /** Jobs that stay, by reason. @default - none */
  readonly skipped?: Readonly<Record<string, number>>;
}

/** Times are RFC 3339. */
export interface JobWatcherStatus {
  readonly observedGeneration?: number;
  readonly lastStarted?: string;
  readonly lastFinished?: string;
  readonly nextDeletion?: string;
  readonly lastRun?: RunCounts;
  /** `namespace/name`, at most 20. */
  readonly dryRunCandidates?: readonly string[];
  readonly conditions?: readonly Condition[];
}

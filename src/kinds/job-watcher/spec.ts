import type { Condition } from '../../contract/conditions.js';
import type { LabelSelector } from '../../values/label-selector.js';
import type { CustomResource } from '../../contract/object.js';

export type LiveWatcher = CustomResource<JobWatcherSpec, JobWatcherStatus>;

/** Fields and defaults as in `crds/jobwatchers.batch.my.github.com.yaml`. Durations are in the syntax of Go, e.g. `1h30m`. */
export interface JobWatcherSpec {
  readonly namespacePatterns?: readonly string[];
  readonly jobNamePatterns?: readonly string[];
  readonly selector?: LabelSelector;
  readonly completedTTL?: string;
  readonly failedTTL?: string;
  readonly frequency?: string;
  readonly dryRun?: boolean;
  readonly suspend?: boolean;
  readonly priority?: number;
  readonly ownerPolicy?: {
    readonly cronJob?: DeleteOrSkip;
    readonly managedBy?: DeleteOrSkip;
    readonly ttlSecondsAfterFinished?: DeleteOrSkip;
  };
  readonly tracked?: DeleteOrSkip;
  readonly propagationPolicy?: 'Background' | 'Foreground';
  readonly limits?: Limits;
  readonly keepLast?: KeepLast;
  readonly allowShorterOverrides?: boolean;
}

export type DeleteOrSkip = 'Delete' | 'Skip';

/** Limits of what a run may delete. */
export interface Limits {
  readonly maxPerRun?: number;
  /** Share of the Jobs matched; never rounded up. */
  readonly maxPercent?: number;
  readonly mode?: 'Abort' | 'Throttle';
}

/** Number of the newest finished Jobs that stay, for each controller, else for each value of the label. */
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
  readonly skipped?: Readonly<Record<string, number>>;
}

/** Times are RFC 3339. */
export interface JobWatcherStatus {
  readonly observedGeneration?: number;
  readonly lastStarted?: string;
  readonly lastFinished?: string;
  readonly nextDeletion?: string;
  readonly lastRun?: RunCounts;
  readonly dryRunCandidates?: readonly string[];
  readonly conditions?: readonly Condition[];
}

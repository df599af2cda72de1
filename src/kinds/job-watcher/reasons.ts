/** Why a Job stays, as the status and the metrics count it; those from `NotDue` on hold for now alone. */
export const WHY = {
  NotFinished: 'it runs, waits or is suspended',
  Terminating: 'it is being deleted already',
  ProtectedNamespace: "its namespace is the system's, or the operator's",
  FinishUnclear: "when or how it finished can't be told for certain",
  KeepAnnotation: 'its own annotation keeps it',
  InvalidAnnotation: "its own annotation can't be read",
  NativeTTL: 'Kubernetes deletes it, by ttlSecondsAfterFinished',
  ManagedElsewhere: 'its managedBy names another controller',
  Tracked: 'Argo CD, Flux or Helm made it, and may make it again',
  Owned: 'it has a controller',
  CronJob: 'a CronJob made it',
  NoTTL: 'there is no TTL for how it finished',
  Suspended: 'the JobWatcher is suspended',
  NotDue: 'its time has yet to come',
  KeepLast: 'it is one of the newest',
  DecidedByOther: 'another JobWatcher decides on it',
  Limited: 'the run would be beyond the limits',
  DryRun: 'it would be deleted if this were no dry run',
  Recreated: 'Jobs of its name come back whenever they are deleted',
} as const;

export type Reason = keyof typeof WHY;

export const REASONS = Object.keys(WHY) as readonly Reason[];

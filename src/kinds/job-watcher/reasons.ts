/**
 * Why a Job stays, as the status and the metrics count it.
 *
 * For every watcher:
 * - `NotFinished`: it runs, waits or is suspended.
 * - `Terminating`: it is being deleted already, and waits for its Pods or for a finalizer.
 * - `ProtectedNamespace`: its namespace is the system's, or the operator's.
 * - `FinishUnclear`: when or how it finished can't be told for certain.
 * - `KeepAnnotation`, `InvalidAnnotation`: by its own annotations.
 *
 * By the watcher's spec:
 * - `NativeTTL`: Kubernetes itself deletes it, by `ttlSecondsAfterFinished`.
 * - `ManagedElsewhere`: its `managedBy` names another controller.
 * - `Tracked`: Argo CD, Flux or Helm made it, and may make it again.
 * - `Owned`, `CronJob`: it has a controller.
 * - `NoTTL`: there is none for how it finished.
 * - `Suspended`: the watcher is.
 *
 * For now:
 * - `NotDue`: its time has yet to come.
 * - `KeepLast`: it is one of the newest.
 * - `DecidedByOther`: another watcher decides on it.
 * - `Limited`: the run would be beyond the limits.
 * - `DryRun`: it would have been deleted.
 * - `Recreated`: Jobs of its name come back whenever they are deleted.
 */
export const REASONS = [
  'NotFinished',
  'Terminating',
  'ProtectedNamespace',
  'FinishUnclear',
  'KeepAnnotation',
  'InvalidAnnotation',
  'NativeTTL',
  'ManagedElsewhere',
  'Tracked',
  'Owned',
  'CronJob',
  'NoTTL',
  'Suspended',
  'NotDue',
  'KeepLast',
  'DecidedByOther',
  'Limited',
  'DryRun',
  'Recreated',
] as const;

export type Reason = (typeof REASONS)[number];

import type { OperatorError } from './error.js';
import type { ObjectRef } from './object.js';

/**
 * What became of one object of a plan.
 *
 * - `created`, `configured`, `deleted`: a request was sent and the cluster changed.
 * - `corrected`: somebody else had changed what we say, and it was put right; `drift` says who and what.
 * - `recreated`: it was deleted and made anew, since what had to change can't be changed.
 * - `unchanged`: it was as it should be; no request was sent, or the server found nothing to change.
 * - `skipped`: not tried, because something before it failed.
 * - `failed`: refused here or by the API server; `error` says why.
 */
export type Action =
  'created' | 'configured' | 'corrected' | 'recreated' | 'unchanged' | 'deleted' | 'skipped' | 'failed';

/** What somebody else did to fields of ours. */
export interface Drift {
  /** The field managers that took them, as in `kubectl-edit`. Empty if they were only removed. */
  readonly managers: readonly string[];
  /** Paths of the fields, as in `.spec.replicas`; the first ten. */
  readonly fields: readonly string[];
}

export interface Change {
  readonly ref: ObjectRef;
  readonly action: Action;
  /** Set exactly when `action` is `failed`. */
  readonly error?: OperatorError;
  /** Set when `action` is `corrected`. */
  readonly drift?: Drift;
}

/** The outcome of a plan, object by object, in its order. Logs, metrics, status and events all read this. */
export type ChangeSet = readonly Change[];

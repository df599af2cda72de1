import type { OperatorError } from './error.js';
import type { ObjectRef } from './object.js';

/**
 * What became of one object of a plan.
 *
 * - `created`, `configured`, `deleted`: a request was sent and the cluster changed.
 * - `unchanged`: it was as it should be; no request was sent, or the server found nothing to change.
 * - `skipped`: not tried, because something before it failed.
 * - `failed`: refused here or by the API server; `error` says why.
 */
export type Action = 'created' | 'configured' | 'unchanged' | 'deleted' | 'skipped' | 'failed';

export interface Change {
  readonly ref: ObjectRef;
  readonly action: Action;
  /** Set exactly when `action` is `failed`. */
  readonly error?: OperatorError;
}

/** The outcome of a plan, object by object, in its order. Logs, metrics, status and events all read this. */
export type ChangeSet = readonly Change[];

import type { Readiness } from './conditions.js';
import type { OperatorError } from './error.js';
import type { ObjectRef } from './object.js';

/**
 * Action on one object of a plan.
 *
 * - `created`, `configured`, `deleted`: a request was sent and the cluster changed.
 * - `corrected`: another writer had changed a field of ours, which was set back; `drift` says who and what.
 * - `drifted`: the same, but it is left, as the drift mode says.
 * - `recreated`: it was deleted and created again, since what had to change can't be changed.
 * - `unchanged`: it was as it should be; no request was sent, or the server found nothing to change.
 * - `skipped`: not tried, because something before it failed, or for the reason in `skippedFor` or `waitsFor`.
 * - `failed`: refused here or by the API server; `error` says why.
 */
export type Action =
  | 'created'
  | 'configured'
  | 'corrected'
  | 'drifted'
  | 'recreated'
  | 'unchanged'
  | 'deleted'
  | 'skipped'
  | 'failed';

/** Change of fields of ours by another writer. */
export interface Drift {
  /** The field managers that took them, as in `kubectl-edit`. Empty if they were only removed. */
  readonly managers: readonly string[];
  /** Paths of the fields, as in `.spec.replicas`; the first ten. */
  readonly fields: readonly string[];
}

/** Field that we meant to apply, and that another manager owns with another value. */
export interface FieldConflict {
  /** Path as the API server spells it, e.g. `.data.9000` or `.spec.ports[port=80,protocol="TCP"].targetPort`. */
  readonly field: string;
  readonly manager: string;
}

/** Outcome of one object of a plan, and its reason. */
export interface Change {
  readonly ref: ObjectRef;
  readonly action: Action;
  /** Set exactly when `action` is `failed`. */
  readonly error?: OperatorError;
  /** Set when `action` is `corrected` or `drifted`. */
  readonly drift?: Drift;
  /** Whether the same drift was reported before. @default false */
  readonly isKnown?: boolean;
  /** Changes that held steps would make, in words. @default - unknown */
  readonly pending?: readonly PendingChange[];
  /** Names of the values that were generated. @default - none */
  readonly made?: readonly string[];
  /** Fields that a shared object was applied without, since others own them. @default - nothing */
  readonly conflicts?: readonly FieldConflict[];
  /**
   * Reason why it was skipped, where nothing has failed: `changed`, an object to be deleted isn't as it was seen any more, or
   * `paced`, it was too many at once. The key is taken again.
   */
  readonly skippedFor?: 'changed' | 'paced';
  /** Reason why it was skipped, where another object has to be ready before. A change of that takes the key again. */
  readonly waitsFor?: Wait;
}

/** Condition of what a build would change, and doesn't. */
export const UPDATE_PENDING = 'UpdatePending';

/** Change that is held. */
export interface PendingChange {
  readonly reason: PendingReason;
  /** Sentence without a full stop, such as `Deployment web rolls its pods: .spec.template.spec.containers[0].image`. */
  readonly text: string;
  /** Whether it couldn't be found out now, as where the API server refuses for the moment. @default false */
  readonly isUnsure?: boolean;
}

/** Kinds of changes, the most severe first. */
export const PENDING_REASONS = [
  'Refused',
  'Recreates',
  'Deletes',
  'RollsPods',
  'Changes',
  'Creates',
] as const;
/** Most severe change of an object that is held. */
export type PendingReason = (typeof PENDING_REASONS)[number];

/** An object that has to be ready before another is applied, and isn't. */
export interface Wait {
  readonly ref: ObjectRef;
  readonly readiness: Readiness;
}

/** Outcome of a plan, step by step, in the plan's order. Logs, metrics, status and events all read this. */
export type ChangeSet = readonly Change[];

import type { ConditionProps, Readiness } from './conditions.js';
import type { OperatorError } from './error.js';
import type { AnyObject, CustomResource, ObjectRef } from './object.js';

/** What a kind's own status function is given. */
export interface StatusInput<Spec, Status> {
  /** The custom resource, with the status that was written last. */
  readonly cr: CustomResource<Spec, Status>;
  /** The children as the API server has them now: identity, status, and what their type's `keep` adds. */
  readonly children: readonly AnyObject[];
  /** The objects of `related` types, as kept. */
  readonly related: readonly AnyObject[];
  /** What couldn't be rendered, applied or deleted; its readiness stands in the conditions instead of yours. */
  readonly failures: readonly Failure[];
  /** The time of this reconcile; the only clock to read. */
  readonly now: Date;
}

/** What went wrong, and with which child; without one, nothing could be rendered. */
export interface Failure {
  readonly ref?: ObjectRef;
  readonly error: OperatorError;
}

/** How a custom resource fares, in the kind's own words. */
export interface StatusReport<Status extends object> {
  /**
   * Becomes the conditions `Ready`, `Reconciling` and `Stalled`.
   * @default - ready when every child is, by the rules of kstatus; see `childReadiness`
   */
  readonly readiness?: Readiness;
  /** Further conditions. @default - none */
  readonly conditions?: readonly ConditionProps[];
  /** Further fields of the status; `observedGeneration` and `conditions` are filled in. @default - none */
  readonly fields?: Partial<Status>;
  /**
   * When to look again although nothing has changed, for what is told only once it has lasted. Not in the past: then
   * the status has to tell it.
   * @default - only when something changes
   */
  readonly requeueAt?: Date;
}

/**
 * Tells how a custom resource fares. It must be pure, and its status must not count or tell the time: one that differs each
 * time is written each time.
 */
export type StatusFunction<Spec, Status extends object> = (
  input: StatusInput<Spec, Status>,
) => StatusReport<Status>;

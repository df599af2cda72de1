import type { ConditionProps, Readiness } from './conditions.js';
import type { AnyObject, CustomResource } from './object.js';

/** What a kind's own status function is given. */
export interface StatusInput<Spec, Status> {
  readonly cr: CustomResource<Spec, Status>;
  /** The children as the API server has them now: identity and status, no spec. */
  readonly children: readonly AnyObject[];
  readonly now: Date;
}

/** How a custom resource fares, in the kind's own words. */
export interface StatusReport<Status extends object> {
  /** Becomes the conditions `Ready`, `Reconciling` and `Stalled`. */
  readonly readiness: Readiness;
  /** Further conditions. @default - none */
  readonly conditions?: readonly ConditionProps[];
  /** Further fields of the status; `observedGeneration` and `conditions` are filled in. @default - none */
  readonly fields?: Partial<Status>;
}

/** Must be pure, and must not count or tell the time: a status that differs each time is written each time. */
export type StatusFunction<Spec, Status extends object> = (
  input: StatusInput<Spec, Status>,
) => StatusReport<Status>;

import type { Change, ChangeSet } from './change.js';
import type { ConditionProps, Readiness, Condition } from './conditions.js';
import type { EventProps } from './controller.js';
import type { OperatorError } from './error.js';
import { describeRef } from './object.js';
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

/** Everything that went wrong; `unplanned` is why nothing could be tried. */
export function failuresOf(changes: ChangeSet, unplanned?: OperatorError): Failure[] {
  const failed = changes.filter((change): change is Change & { error: OperatorError } => !!change.error);
  return [...(unplanned ? [{ error: unplanned }] : []), ...failed.map(({ ref, error }) => ({ ref, error }))];
}

/** The failure that the conditions tell of. */
export function worstOf(failures: readonly Failure[]): OperatorError | undefined {
  // Without objects there is nothing else to tell of. What needs somebody's hand is worth more to the reader than what
  // passes by itself.
  const worst =
    failures.find(({ ref }) => !ref) ??
    failures.find(({ error }) => error.retry === 'onChange') ??
    failures[0];
  return worst?.error;
}

export function failureReadiness({ retry, reason, message }: OperatorError): Readiness {
  return { phase: retry === 'onChange' ? 'stalled' : 'failing', reason, message };
}

/** Failures that may end by themselves, and are told all the same: somebody has to be told of his bug, or his rival. */
const TOLD: ReadonlySet<string> = new Set(['FieldContested', 'StatusFailed']);

/** What takes a person to end is told in one Warning when it begins, and in none while it stays the same. */
export function failureEvent(
  cr: CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>,
  error: OperatorError | undefined,
): EventProps | undefined {
  if (!error || (error.retry !== 'onChange' && !TOLD.has(error.reason))) return undefined;
  const type = error.retry === 'onChange' ? 'Stalled' : 'Reconciling';
  const told = cr.status?.conditions?.find((condition) => condition.type === type);
  const known = told?.status === 'True' && told.message === error.message;
  return known
    ? undefined
    : { type: 'Warning', reason: error.reason, action: 'Reconcile', note: error.message };
}

/** The same for what no step has failed of, and only the children tell. */
export function stalledEvent(
  cr: CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>,
  { phase, reason, message }: Readiness,
): EventProps | undefined {
  if (phase !== 'stalled') return undefined;
  const told = cr.status?.conditions?.find(({ type }) => type === 'Stalled');
  if (told?.status === 'True' && told.reason === reason) return undefined;
  return { type: 'Warning', reason, action: 'Reconcile', note: message };
}

/** One event when somebody's changes were undone, so that they learn why theirs didn't last, and from whom. */
export function correctionEvent(changes: ChangeSet): EventProps | undefined {
  const notes = changes.flatMap(({ ref, action, drift }) => {
    if (action !== 'corrected' || !drift) return [];
    const who = drift.managers.join(', ') || 'somebody';
    return [`${describeRef(ref)}: put back ${drift.fields.join(', ') || 'fields'}, changed by ${who}`];
  });
  if (notes.length === 0) return undefined;
  return { type: 'Normal', reason: 'DriftCorrected', action: 'Apply', note: notes.join('; ') };
}

import type { Action, Change, ChangeSet } from '../contract/change.js';
import type { ConditionProps, Readiness, Condition } from '../contract/conditions.js';
import type { EventProps } from '../contract/plan.js';
import type { OperatorError } from '../contract/error.js';
import { describeRef } from '../contract/object.js';
import type { AnyObject, CustomResource, ObjectRef } from '../contract/object.js';
import type { ResourceTypeProps } from '../contract/resource.js';

/** Input of a kind's own status function. */
export interface StatusInput<Spec, Status, Child extends AnyObject = AnyObject> {
  /** The custom resource, with the status that was written last; what others write there calls for no new one at once. */
  readonly cr: CustomResource<Spec, Status>;
  /** The children as the API server has them now: identity, status, and what their type's `keep` adds. */
  readonly children: readonly Child[];
  /** The objects of `related` types, as kept. */
  readonly related: readonly AnyObject[];
  /** Objects that couldn't be rendered, applied or deleted; their readiness stands in the conditions instead of yours. */
  readonly failures: readonly Failure[];
  /** The time of this reconcile; the only clock to read. */
  readonly now: Date;
}

/** Objects that are made of the children by others, such as Pods: read for the status, and never written. */
export interface RelatedTypeProps extends ResourceTypeProps {
  /** A label selector: what doesn't carry it is never sent to us. */
  readonly selector: string;
  /**
   * Returns what of an object `status` reads, beside its identity, its labels and its owners; undefined drops the object.
   * Where many are well and few are not, keep those few.
   */
  readonly keep: (object: AnyObject) => Readonly<Record<string, unknown>> | undefined;
  /** Returns the name of the custom resource that an object (as kept) belongs to, in the same namespace. */
  readonly nameOf: (object: AnyObject) => string | undefined;
}

/** Error, and the child that it is of; without one, nothing could be rendered. */
export interface Failure {
  readonly ref?: ObjectRef;
  readonly error: OperatorError;
}

/** Status of a custom resource, in the kind's own words. */
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
   * Time of the next reconcile although nothing has changed, for a status that depends on how long something has lasted.
   * Not in the past: then the status has to report it.
   * @default - only when something changes
   */
  readonly requeueAt?: Date;
}

/** Computes the status of a custom resource. It must be pure, and its result without counters or the current time, since a status that differs is written each time. */
export type StatusFunction<Spec, Status extends object, Child extends AnyObject = AnyObject> = (
  input: StatusInput<Spec, Status, Child>,
) => StatusReport<Status>;

/** Returns everything that went wrong; `unplanned` is why nothing could be tried. */
export function failuresOf(changes: ChangeSet, unplanned?: OperatorError): Failure[] {
  const failed = changes.filter((change): change is Change & { error: OperatorError } => !!change.error);
  return [...(unplanned ? [{ error: unplanned }] : []), ...failed.map(({ ref, error }) => ({ ref, error }))];
}

/** Returns the failure that the conditions show. */
export function worstOf(failures: readonly Failure[]): OperatorError | undefined {
  // Without objects there is nothing else to report. What needs a person is worth more than what passes by itself.
  const worst =
    failures.find(({ ref }) => !ref) ??
    failures.find(({ error }) => error.retry === 'onChange') ??
    failures[0];
  return worst?.error;
}

export function failureReadiness({ retry, reason, message }: OperatorError): Readiness {
  return { phase: retry === 'onChange' ? 'stalled' : 'failing', reason, message };
}

/** Failures that may end by themselves, and need a person all the same: for a bug, or a rival writer. */
const REPORTED: ReadonlySet<string> = new Set(['FieldContested', 'StatusFailed']);

type WithConditions = CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>;

/** Returns one Warning when a failure begins that takes a person to end, and none while it stays the same. */
export function failureEvent(cr: WithConditions, error: OperatorError): EventProps | undefined {
  const isStalled = error.retry === 'onChange';
  if (!isStalled && !REPORTED.has(error.reason)) return undefined;
  return newWarning(cr, isStalled ? 'Stalled' : 'Reconciling', error, 'message');
}

/** Returns the same for a stall that only the children show. */
export function stalledEvent(cr: WithConditions, readiness: Readiness): EventProps | undefined {
  return readiness.phase === 'stalled' ? newWarning(cr, 'Stalled', readiness, 'reason') : undefined;
}

function newWarning(
  cr: WithConditions,
  type: string,
  found: Pick<Readiness, 'reason' | 'message'>,
  by: 'reason' | 'message',
): EventProps | undefined {
  const known = cr.status?.conditions?.find((condition) => condition.type === type);
  if (known?.status === 'True' && known[by] === found[by]) return undefined;
  return { type: 'Warning', reason: found.reason, action: 'Reconcile', note: found.message };
}

/** Returns an event when changes of other writers were undone, so that they learn why; and when they begin to be left. */
export function driftEvent(cr: WithConditions, changes: ChangeSet): EventProps | undefined {
  if (!changes.some(({ drift }) => drift)) return undefined;
  const drifted = driftedCondition(changes);
  if (drifted) return newWarning(cr, drifted.type, drifted, 'message');
  const note = driftNote(changes, 'corrected', 'corrected');
  return { type: 'Normal', reason: 'DriftCorrected', action: 'Apply', note };
}

/** Returns the condition of drift that is left as it is. */
export function driftedCondition(changes: ChangeSet): ConditionProps | undefined {
  const message = driftNote(changes, 'drifted', 'left');
  return message === '' ? undefined : { type: 'Drifted', status: 'True', reason: 'DriftLeft', message };
}

function driftNote(changes: ChangeSet, wanted: Action, verb: string): string {
  const notes = changes.flatMap(({ ref, action, drift }) => {
    if (action !== wanted || !drift) return [];
    const who = drift.managers.join(', ') || 'another writer';
    return [`${describeRef(ref)}: ${verb} ${drift.fields.join(', ') || 'fields'}, changed by ${who}`];
  });
  return notes.join('; ');
}

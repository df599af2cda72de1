import type { Action, ChangeSet } from '../contract/change.js';
import type { Condition, ConditionProps, ConditionStatus, Phase, Readiness } from '../contract/conditions.js';
import { OperatorError } from '../contract/error.js';
import { PAUSED_ANNOTATION, statusFieldManager } from '../contract/names.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, KubernetesObject, ObjectRef } from '../contract/object.js';
import type { EventProps, EventStep, Explanation, StatusWrite } from '../contract/plan.js';
import type { ResourceTypeProps } from '../contract/resource.js';
import { canonicalJson } from '../values/json.js';
import { statusOrError } from '../values/origin.js';
import type { KeepFunction } from './kubernetes-types.js';

/** Input of a kind's own status function. */
export interface StatusInput<Spec, Status, Child extends AnyObject = AnyObject> {
  /** The custom resource, with the status that was written last; what others write there calls for no new one at once. */
  readonly cr: CustomResource<Spec, Status>;
  /**
   * The children as the API server has them now: identity, status, and what their type's `keep` adds. Of a kind that `observes` and doesn't
   * `remember` also `isCurrent`, unless it couldn't be rendered.
   */
  readonly children: readonly Child[];
  /** The objects of `related` types, as kept. */
  readonly related: readonly AnyObject[];
  /** Objects that couldn't be rendered, applied or deleted; their readiness stands in the conditions instead of yours. */
  readonly failures: readonly Failure[];
  /** The time of this reconcile; the only clock to read. */
  readonly now: Date;
  /** Fields that it returned last, as they are stored, of a kind that `remembers` them; none at first. @default - the kind doesn't */
  readonly last?: Partial<Status>;
}

/** Objects that are made of the children by others, such as Pods: read for the status, and never written. */
export interface RelatedTypeProps extends ResourceTypeProps {
  /** A label selector: what doesn't carry it is never sent to us. */
  readonly selector: string;
  /**
   * Returns what of an object `status` reads, beside its identity, its labels and its owners; undefined drops the object.
   * Where many are well and few are not, keep those few.
   */
  readonly keep: KeepFunction<Readonly<Record<string, unknown>> | undefined>;
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

/**
 * Computes the status of a custom resource, of the settings too that the construct gets. It must be pure, and its result without the current
 * time, or a number that grows with each reconcile, since a status that differs is written each time.
 */
export type StatusFunction<
  Spec,
  Status extends object,
  Child extends AnyObject = AnyObject,
  Settings = unknown,
  References = unknown,
> = (
  input: StatusInput<Spec, Status, Child> & {
    readonly settings: Settings;
    /**
     * The objects that the construct reads, of Secrets without their data; undefined where one is missing, of which `failures` says more, and
     * on deletion of a kind without `finalizes`.
     */
    readonly references: References | undefined;
  },
) => StatusReport<Status>;

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

/** A custom resource, as far as its status is read. */
export type LiveResource = CustomResource<
  unknown,
  { readonly conditions?: readonly Partial<Condition>[]; readonly observedGeneration?: number }
>;

/** Returns one Warning when a failure begins that takes a person to end, and none while it stays the same. */
export function failureEvent(cr: LiveResource, error: OperatorError): EventProps | undefined {
  const isStalled = error.retry === 'onChange';
  if (!isStalled && !REPORTED.has(error.reason)) return undefined;
  return newWarning(cr, isStalled ? 'Stalled' : 'Reconciling', error, 'message');
}

/** Returns the same for a stall that only the children show. */
export function stalledEvent(cr: LiveResource, readiness: Readiness): EventProps | undefined {
  return readiness.phase === 'stalled' ? newWarning(cr, 'Stalled', readiness, 'reason') : undefined;
}

function newWarning(
  cr: LiveResource,
  type: string,
  found: Pick<Readiness, 'reason' | 'message'>,
  by: 'reason' | 'message',
): EventProps | undefined {
  const known = cr.status?.conditions?.find((condition) => condition.type === type);
  if (known?.status === 'True' && known[by] === found[by]) return undefined;
  return { type: 'Warning', reason: found.reason, action: 'Reconcile', note: found.message };
}

/** Returns an event when changes of other writers were undone, so that they learn why; and when they begin to be left. */
export function driftEvent(cr: LiveResource, changes: ChangeSet): EventProps | undefined {
  const drifted = driftedCondition(changes);
  if (drifted) return newWarning(cr, drifted.type, drifted, 'message');
  const note = driftNote(changes, 'corrected', 'corrected');
  if (note === '') return undefined;
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

/** Maximum number of characters of a message. @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go */
const MESSAGE_LIMIT = 32_768;

const STANDARD: Record<
  Phase,
  readonly [ready: ConditionStatus, reconciling: ConditionStatus, stalled: ConditionStatus]
> = {
  ready: ['True', 'False', 'False'],
  progressing: ['Unknown', 'True', 'False'],
  failing: ['False', 'True', 'False'],
  stalled: ['False', 'False', 'True'],
};

/** `Ready`, `Reconciling` and `Stalled` for a readiness; all three carry its reason and message. */
export function standardConditions({ phase, reason, message }: Readiness): ConditionProps[] {
  const [ready, reconciling, stalled] = STANDARD[phase];
  return [
    { type: 'Ready', status: ready, reason, message },
    { type: 'Reconciling', status: reconciling, reason, message },
    { type: 'Stalled', status: stalled, reason, message },
  ];
}

/**
 * Dates conditions: the time of the last flip is kept from the previous condition of the same type where the
 * status is the same, else it is `now`.
 */
export function dateConditions(
  conditions: readonly ConditionProps[],
  previous: readonly Partial<Condition>[],
  now: Date,
  observedGeneration: number | undefined,
): Condition[] {
  return conditions.map((condition) => {
    const before = previous.find(({ type }) => type === condition.type);
    // One that can't be read, which the API server stores too, counts as none.
    const isKept = before?.status === condition.status && !isNaN(Date.parse(before.lastTransitionTime ?? ''));
    const kept = isKept ? before.lastTransitionTime : undefined;
    return {
      ...condition,
      message: condition.message.slice(0, MESSAGE_LIMIT).toWellFormed(),
      lastTransitionTime: kept ?? rfc3339Seconds(now),
      ...(observedGeneration !== undefined && { observedGeneration }),
    };
  });
}

/**
 * Returns what a kind's own function says of the status, or why it can't.
 * @param known the fields that the schema of the status has; any where it is undefined
 */
export function reportOf(
  cr: LiveResource,
  known: readonly string[] | undefined,
  failures: readonly Failure[],
  say: () => StatusReport<object>,
): { readonly report: StatusReport<object>; readonly error?: OperatorError } {
  const compute = (): StatusReport<object> => {
    const report = say();
    requireKnownFields(report.fields ?? {}, known);
    // Throws for what can't be sent.
    canonicalJson([report.fields, report.conditions]);
    return report;
  };
  // What is missing now, as the status of a child that was created a moment ago, may be there at the next try; beside
  // another failure, that one says when to try again.
  const report = statusOrError(refOf(cr), compute, worstOf(failures) ? 'onChange' : 'backoff');
  return report instanceof OperatorError ? { report: {}, error: report } : { report };
}

/** The API server drops what the schema doesn't list, without a word. @param known undefined where any field may be there */
function requireKnownFields(fields: object, known: readonly string[] | undefined): void {
  for (const field of Object.keys(fields))
    if (known && !known.includes(field))
      throw new Error(
        `it has a field ${field}, of which the schema knows nothing; add ${field}: { type: 'string' }, or whatever it is, to "status" of defineCrd, or to the properties of the status in the CRD`,
      );
}

/** Status of one of several custom resources, and what else was found out with it. */
interface Told {
  readonly status: object;
  readonly events: readonly (EventProps | undefined)[];
}

/**
 * Concludes a plan with the statuses and events of several custom resources, those for which something is reported. What is thrown for
 * one is the error of that one alone.
 */
export function concludeEach<Item extends { readonly cr: CustomResource }, Found extends Told>(
  kind: string,
  items: readonly Item[],
  reportOn: (item: Item) => Found | undefined,
) {
  const fieldManager = statusFieldManager(kind);
  const status: StatusWrite[] = [];
  const events: EventStep[] = [];
  const reports: Found[] = [];
  for (const item of items) {
    const { cr: target } = item;
    const found = statusOrError(refOf(target), () => reportOn(item));
    if (!found) continue;
    const isError = found instanceof OperatorError;
    status.push({ target, fieldManager, status: isError ? found : found.status });
    if (isError) continue;
    reports.push(found);
    const regarding = { ...refOf(target), uid: target.metadata.uid ?? '' };
    events.push(...found.events.flatMap((event) => (event ? { regarding, event } : [])));
  }
  return { status, events, reports };
}

/** `metav1.Time` on the wire: RFC 3339 in UTC, whole seconds. */
export function rfc3339Seconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Readiness while an earlier rendering is applied, until it is known why the later ones differ. */
export const SETTLING: Readiness = {
  ...{ phase: 'progressing', reason: 'Settling' },
  message:
    'What is rendered keeps changing without an edit: an earlier rendering is kept until it is known whether its own effects are the cause',
};

/** Returns the readiness of a paused custom resource of which an object is missing; undefined where all are there. */
export function pausedReadiness(
  rendered: readonly AnyObject[],
  children: readonly AnyObject[],
): Readiness | undefined {
  const present = new Set(children.map(objectId));
  const missing = rendered.find((object) => !present.has(objectId(object)));
  if (!missing) return undefined;
  const message = `${describeRef(missing)} is missing, and is not created during a pause`;
  return { phase: 'progressing', reason: 'Paused', message };
}

/** Returns a readiness with the pause as its reason, which `kubectl get` shows. */
export function asPaused({ phase, reason, message }: Readiness): Readiness {
  return { phase, reason: 'Paused', message: reason === 'Paused' ? message : `Paused; ${message}` };
}

/** Returns the condition of a pause, with the generation that waits for its end. */
export function pausedCondition(cr: LiveResource): ConditionProps {
  const { generation } = cr.metadata;
  const waiting = generation === observedGenerationOf(cr) ? '' : `; generation ${generation} waits`;
  const message = `Nothing but this status is written${waiting}; remove the annotation ${PAUSED_ANNOTATION} to go on`;
  return { type: 'Paused', status: 'True', reason: 'Paused', message };
}

/** Returns what `apply` and `diff` print of a paused custom resource. */
export function pausedExplanation(cr: KubernetesObject): Explanation {
  const summary = `is paused: its objects stay as they are; remove the annotation ${PAUSED_ANNOTATION} to go on`;
  return { of: refOf(cr), summary, differs: false };
}

/** Returns a custom resource as it would be after its pause; undefined where it isn't paused. */
export function unpaused<T extends AnyObject>(cr: T): T | undefined {
  const { [PAUSED_ANNOTATION]: paused, ...annotations } = cr.metadata.annotations ?? {};
  return paused === 'true' ? { ...cr, metadata: { ...cr.metadata, annotations } } : undefined;
}

/** Returns the generation that was carried out last; the schema's default of -1 means none. */
export function observedGenerationOf({ status }: LiveResource): number | undefined {
  const { observedGeneration = -1 } = status ?? {};
  return observedGeneration < 0 ? undefined : observedGeneration;
}

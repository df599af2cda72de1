import type { ChangeSet } from './change.js';
import type { OperatorError } from './error.js';
import type { AnyObject, CustomResource, ObjectRef, Owner, OwnerReference } from './object.js';

/**
 * Work for one key, derived from what is known: steps, and a conclusion from what came of them.
 *
 * The steps are carried out one after another. A failed one doesn't keep the next from being tried, but for what a barrier or
 * a hand-over holds back, and unless the API server is out of reach: then the rest waits for the next try, the status included.
 */
export interface Plan {
  readonly steps: readonly Step[];
  /** Error that stops the plan for this key; logged, counted and retried like a failed step. The status has to report it too. */
  readonly error?: OperatorError;
  /**
   * Returns what follows from the outcome. Called once, after the last step; the reader then shows what the steps left. Where it
   * explains something, a preview calls it before as well, with no changes.
   */
  conclude(changes: ChangeSet): Conclusion;
}

/** Part of a plan that follows from what came of its steps. */
export interface Conclusion {
  /**
   * Statuses, written several at a time, and only where they differ from what is there; several for one object in this order.
   * A failed one doesn't keep the others from being written.
   */
  readonly status: readonly StatusWrite[];
  /** Events, sent in this order once the statuses are written. */
  readonly events: readonly EventStep[];
  /**
   * Latest time of the next reconcile, by the clock that gave `now`; `now` takes the key again at once, as where an object that
   * was created decides on the next step. A plan must not ask for that each time.
   * @default - only when something changes
   */
  readonly next?: Date | 'now';
  /** Other keys to take, since the plan has made way for them. @default - none */
  readonly wakes?: readonly string[];
  /** Samples of the controller's `metrics`. @default - nothing */
  readonly samples?: readonly Sample[];
  /** Error for which a status can't say all that it should; handled like the error of a plan. @default - nothing failed */
  readonly error?: OperatorError;
  /** Meaning of the plan for custom resources, of a controller that `explains`. @default - its steps say it all */
  readonly explanations?: readonly Explanation[];
}

/** Plan of a key for which there is nothing to do. */
export const NOTHING: Plan = { steps: [], conclude: () => ({ status: [], events: [] }) };

/** Step of a plan. What each does is written at its handler, in `src/engine/steps/`. */
export type Step =
  | FinalizerStep
  | RememberStep
  | OwnStep
  | HandOverStep
  | GenerateStep
  | PruneStep
  | CollectStep
  | ContributeStep
  | Barrier
  | ForeignStep;

/**
 * Finalizer that a custom resource is to have before the steps behind a barrier, or that it loses behind the steps before: in a namespace
 * that is being deleted at once, and else only where nothing is left to do, and none of these steps had anything to do.
 */
export interface FinalizerStep {
  readonly do: 'finalizer';
  /** The custom resource, as known: nothing is written where it has another version. */
  readonly object: AnyObject;
  readonly name: string;
  readonly fieldManager: string;
  readonly isPresent: boolean;
  /**
   * Work before it goes: whether the namespace is being deleted is shown by `steps`, or the API server is `asked`.
   * @default - nothing is left to do
   */
  readonly left?: 'steps' | 'asked';
}

/** Status of a custom resource that the steps behind it follow from: written first, and with a barrier behind it they wait for that. */
export interface RememberStep {
  readonly do: 'remember';
  /** The custom resource, as known: nothing is written where it has another version. */
  readonly object: AnyObject;
  readonly fieldManager: string;
  readonly status: object;
}

/** Build of an operator that applies an object. */
export interface AppliedBuild {
  readonly name: string;
  /** Time of the plan, in milliseconds: of several objects, the latest says which build a custom resource has. */
  readonly at: number;
}

/** Object that belongs to one owner: created, corrected by force, and refused with `OwnershipConflict` where others own it. */
export interface OwnStep {
  readonly do: 'own';
  /** Desired state, whole, without owner reference and hash, which the engine adds. */
  readonly object: AnyObject;
  readonly owner: Owner;
  /** Manager that applies it; where the owner is only recorded, one that no other owner applies with. */
  readonly fieldManager: string;
  /** Whether the owner belongs to others, whose controllers may have made what it controls. @default false */
  readonly ofOthers?: boolean;
  /** @default - the operator's, which corrects by default */
  readonly drift?: DriftMode;
  /** Build that applies it, which its record says. @default - none is recorded: updates aren't held, or this object releases none */
  readonly build?: AppliedBuild;
  /**
   * Whether the object is deleted and created again where an immutable field has to change. Only for objects that are of no value in
   * themselves, or with `orphan`, which leaves what they own to the next one.
   * @default false - such a change fails with the reason `ImmutableField`
   */
  readonly recreate?: boolean | 'orphan';
  /**
   * Paths of fields that are applied as they were when the object was created, which an annotation records.
   * @default - none
   */
  readonly createOnly?: readonly string[];
  /**
   * Objects of steps of the same owner that have to be ready before, as those steps give them: until then the object is left as
   * it is, unless it has been applied in this form. A change of what it waits for has to requeue the key.
   * @default - none
   */
  readonly waitsFor?: readonly AnyObject[];
}

/**
 * Fields that pass to another field manager, applied before their present one lets go of them, to an object that is there. A plan
 * has to leave the step out once that is done. A failed one holds back the other steps of the same object.
 */
export interface HandOverStep {
  readonly do: 'handOver';
  /** Sent as it is, without hash and owner. */
  readonly object: AnyObject;
  readonly fieldManager: string;
}

/**
 * Secret, given without data: those of the values that it lacks are made at random, by their keys. What it holds is left as it is,
 * unless its annotation `reconstruct.kosmos.io/generated` is to change: then all are made.
 */
export interface GenerateStep {
  readonly do: 'generate';
  readonly object: AnyObject;
  readonly owner: OwnerReference;
  readonly fieldManager: string;
  readonly values: GeneratedValues;
  /** Texts that are made of the values. @default - none */
  readonly texts?: ComposedTexts;
  /** Certificates beside the values, by their names. @default - none */
  readonly certificates?: CertificateRequests;
}

/** Certificate that the certificate authority of a Secret is to issue. */
export interface CertificateRequest {
  /** DNS names, each once, in lower case. */
  readonly dnsNames: readonly string[];
  readonly days: number;
}

/** Certificates that are to be issued, by their names. */
export type CertificateRequests = Readonly<Record<string, CertificateRequest>>;

/** Texts that stand beside generated values in their Secret, and are made of these. */
export interface ComposedTexts {
  /** Hash of what they are made of beside the values: with another one, they are made again. */
  readonly template: string;
  /** Returns the texts by their keys. Called with the values only when the Secret is written. */
  compose(values: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
}

/** A value that the operator makes at random: text, or bytes in base64 for a key. */
export interface GeneratedValue {
  /** Characters of the text. @default 32 */
  readonly length?: number;
  /** Characters that it is made of, each once. @default - letters and digits */
  readonly alphabet?: string;
  /** Random bytes, instead of text: the value is their base64. @default - text */
  readonly bytes?: number;
  /** Whether a value that was emptied counts as missing, and is made again. @default false - it stalls the custom resource */
  readonly emptyIsMissing?: boolean;
}

/** Values that the operator makes for each custom resource of a kind, by their keys in its Secret. */
export type GeneratedValues = Readonly<Record<string, GeneratedValue>>;

/** Object of ours to be deleted; a conflict fails and is retried at once. */
export interface PruneStep {
  readonly do: 'prune';
  /** Object as known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
}

/**
 * Object of ours whose owner is only recorded, and doesn't seem to be there: deleted once the API server has confirmed that, and else
 * left as it is.
 */
export interface CollectStep {
  readonly do: 'collect';
  readonly object: AnyObject;
  readonly owner: ObjectRef & { readonly uid: string };
}

/**
 * Fields of an object of others, for one owner: applied without force, but for those that are taken. With nothing but its identity, all
 * are given up, and those that were taken have the value from before.
 */
export interface ContributeStep {
  readonly do: 'contribute';
  readonly object: AnyObject;
  /** Has its `recordedKey`. */
  readonly owner: Owner;
  /** Manager that no other owner applies with. */
  readonly fieldManager: string;
  /** Paths of fields that are taken from other writers, unless an autoscaler or another owner holds them. */
  readonly takes: readonly string[];
  /** @default - the operator's, which corrects by default */
  readonly drift?: DriftMode;
}

/** Holds back all steps behind it while one before it has failed or waits. */
export interface Barrier {
  readonly do: 'barrier';
}

/** Steps of a custom resource that are held: a dry run finds out what they would change, where that isn't known. */
export interface HoldStep extends ForeignStep {
  readonly do: 'reconstruct/hold';
  /** Whether it is to be found out. */
  readonly isNews: boolean;
  readonly steps: Plan['steps'];
}

/** Step with a handler of its own, which its controller brings. */
export interface ForeignStep {
  /** Name of the handler, e.g. `widget/notify`. */
  readonly do: `${string}/${string}`;
  /** Object that it concerns; a watch maps it to the key. */
  readonly object: AnyObject;
}

/** Carries out foreign steps; its whole type is that of the engine, in `src/engine/plan/hand.ts`. */
export interface ForeignHandler {
  readonly do: ForeignStep['do'];
}

/**
 * Handling of fields of ours that another writer has changed: they are set back, reported and left, or left. An edit of the
 * custom resource applies the whole object in every mode, and what is missing is created.
 */
export type DriftMode = (typeof DRIFT_MODES)[number];
export const DRIFT_MODES = ['correct', 'warn', 'ignore'] as const;

/** Status to be written, where it differs. */
export interface StatusWrite {
  readonly target: CustomResource;
  readonly fieldManager: string;
  /** Status, or the error for which there is none: then the write fails with it, and no other. */
  readonly status: object | OperatorError;
  /** Whether it is written only where the custom resource has the version of `target`. @default false */
  readonly isConditional?: boolean;
}

/** Event to be sent. */
export interface EventStep {
  readonly regarding: ObjectRef & { readonly uid: string };
  readonly event: EventProps;
}

/** Content of an event. @see https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/ */
export interface EventProps {
  readonly type: 'Normal' | 'Warning';
  /** Reason in CamelCase; at most 128 characters. */
  readonly reason: string;
  /** Action in CamelCase; at most 128 characters. */
  readonly action: string;
  /** For people; cut at 1,024 characters. */
  readonly note: string;
}

/** Value of a metric. */
export interface Sample {
  /** The name of one of the controller's metrics; one that it doesn't declare is logged as a bug. */
  readonly metric: string;
  /** A value for each of the metric's labels. @default - none */
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Meaning of a plan for one custom resource, in words, before it is carried out. */
export interface Explanation {
  /** The custom resource. */
  readonly of: ObjectRef;
  /** Predicate that follows its name in a sentence: `would delete 3 of 10 Jobs matched`. */
  readonly summary: string;
  /** Whether something in the cluster would change that the plan's applies don't show. */
  readonly differs: boolean;
  /** Keys of what would go or change: one whose keys differ by a change of another one is shown too. @default - none */
  readonly touches?: readonly string[];
  /** @default - none */
  readonly tables?: readonly Table[];
}

/** Rows below a title. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  /** Rows, each with as many cells as there are columns. */
  readonly rows: readonly (readonly string[])[];
}

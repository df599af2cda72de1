import type { ChangeSet, Wait } from './change.js';
import type { OperatorError } from './error.js';
import type { GeneratedValues } from './generated.js';
import type { AnyObject, CustomResource, ObjectRef, OwnerReference } from './object.js';
import type { ResourceType } from './resource.js';
import type { SharedApply } from './shared.js';
import type { Sweep } from './sweep.js';

/**
 * The core of the contract: everything that the engine knows of a kind.
 *
 * **Guarantees.** `reconcile` is never called twice at once for one key, and not before every watch has delivered its
 * first complete list. After anything that `mapsTo` or `concerns` names has changed, it is called again, but for a status of
 * the custom resource that the plan of the key writes itself. After another write of that plan it is called again within ten
 * seconds, so a plan that writes something else each time goes on for ever.
 *
 * **Assumptions.** `keep`, `mapsTo`, `concerns` and `reconcile` are pure: no I/O, no clock but `now`, no state of their own.
 * Where a plan depends on what no watch shows, such as an admin's policy, a change of that has to requeue the key. A reconcile
 * reads the present state and derives everything from it, since any event may be lost, doubled or late. A plan whose applies
 * depend on those of the plan before, and on no change after them, sets `requeueAt`.
 *
 * **Errors.** What `reconcile` throws is logged as a bug of the kind and retried with backoff. A mistake of a user is no
 * reason to throw: it belongs into the status.
 */
export interface Controller {
  /** Unique among the controllers of a process; names the queue in logs and metrics. */
  readonly name: string;
  /** Kind that its keys name, for logs; usually the kind of its custom resource. */
  readonly kind: string;
  /**
   * The first is of its own custom resources. The others open once that one is answered: while the kind isn't installed,
   * or may not be read, the controller costs nothing else.
   */
  readonly watches: readonly Watch[];
  /** Types of which plans look up single objects, by name or labels; the rights to read them follow from it. @default - none */
  readonly lookups?: readonly Lookup[];
  /** Metrics that its plans give samples of, beside those of every kind. @default - nothing */
  readonly metrics?: readonly Metric[];
  /**
   * Debounces keys, where many events lead to one plan. First lists, retries, `requeueAt` and `again` aren't delayed.
   * @default - a key is taken as soon as a worker is free
   */
  readonly settle?: Settle;
  /**
   * Returns the plan for a key, from what is known now.
   * @param now by our clock, or by the API server's where they differ by more than 30 s, as for `Plan.requeueAt`
   */
  reconcile(key: string, reader: Reader, now: Date): Plan;
}

/** Usual difference of clocks; beyond it the API server's counts. */
export const TOLERATED_SKEW_MILLISECONDS = 30_000;

/** Delays of a key that waits for further events. */
export interface Settle {
  /** Time without an event after which the key is taken. */
  readonly quietMilliseconds: number;
  /** Longest delay after the first event. */
  readonly longestMilliseconds: number;
}

/** Right of a controller on the objects of a watch, beside reading them; its rights follow from it. */
export type Write = 'create' | 'patch' | 'delete' | 'status' | 'finalizers';

/**
 * Kind of object that a controller reads. It may watch one type several times, distinguished by `namespaces` and `name`,
 * for rights on some objects alone. An object belongs to the most precise of them only: one of its name comes before one of
 * its namespace, that before one of all, and of equals the one that is declared first.
 */
export interface Watch {
  readonly type: ResourceType;
  /** Label selector. @default - every object of the type */
  readonly selector?: string;
  /**
   * The controller works without it: while no such kind is installed, there are no objects of it.
   * @default false - the controller starts once the kind is served and listed
   */
  readonly optional?: boolean;
  /**
   * Returns what of an object is kept in memory; it must keep `apiVersion`, `kind` and the identity in `metadata`. An object
   * for which it returns undefined is ignored, as if it weren't there; only where `readOnly` is set. Of objects that are
   * applied it must keep what `keepStatus` does, or they are applied with every reconcile.
   * @default keepStatus - identity, the annotations of this project and the status, for objects that we write
   */
  readonly keep?: (object: AnyObject) => AnyObject | undefined;
  /**
   * The controller never applies these objects, though it may delete them: field ownership isn't computed, a change of
   * nothing that is kept is ignored, and any other enqueues within 100 ms, or a second while much is changing.
   * @default false
   */
  readonly readOnly?: boolean;
  /**
   * Namespaces of the objects, whichever the operator watches: for objects that are shared by many.
   * @default - the namespaces that the operator watches
   */
  readonly namespaces?: readonly string[];
  /** Name of the only object, so that a right on it alone is enough. @default - every name */
  readonly name?: string;
  /** Rights on these objects beside reading them. @default - nothing */
  readonly writes?: readonly Write[];
  /**
   * Returns cluster-wide values that an object (as kept, or as applied) has or asks for, and that no other object may have,
   * such as node ports: an apply that was refused because one is taken is retried as soon as it is released, or within ten seconds
   * if it is by the same plan.
   * @default - none: retried within five minutes
   */
  readonly claims?: (object: AnyObject) => readonly string[];
  /** Returns the keys to reconcile when the object (as kept) appears, changes or goes. */
  mapsTo(object: AnyObject): readonly string[];
  /**
   * Reports whether the object (as kept) concerns a custom resource, as one that names it in its spec: then the keys of that are
   * reconciled too. Asked of each that is known, with every change of the object; a plan finds the object with `Reader.get`,
   * since `Reader.mappedTo` goes by `mapsTo` alone.
   * @param resource a custom resource, as the first watch of the controller keeps it
   * @default - it concerns what `mapsTo` names
   */
  readonly concerns?: (object: AnyObject, resource: AnyObject) => boolean;
}

/** A type of objects of which a controller reads only those that its plans ask for. */
export interface Lookup {
  readonly type: ResourceType;
  /** Returns what of an object is kept in memory; it must keep `apiVersion`, `kind` and the identity in `metadata`. */
  readonly keep: (object: AnyObject) => AnyObject;
}

/** Objects of one type that a plan asks for: one by its name, or all with these labels. */
export interface Query {
  /** @default - none, for what is cluster-scoped */
  readonly namespace?: string;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Answer to a query. */
export type Found =
  /** Objects as kept, by name; `why` is the reason where there are none, if it is known. */
  | { readonly objects: readonly AnyObject[]; readonly why?: string; readonly isTooMuch?: never }
  /** Not known yet, or more than is kept; `why` is the last failure to find out. */
  | { readonly objects?: undefined; readonly why?: string; readonly isTooMuch?: boolean };

/** View of what the watches have delivered so far, and of the responses to our own writes. Reading it costs no request. */
export interface Reader {
  /** Returns one object as kept, or nothing if there is none. @throws if no watch of the controller covers the type */
  get(type: TypeRef, key: string): AnyObject | undefined;
  /**
   * Returns the objects of a type that the owner with this UID controls, by their owner reference. That proves nothing: who may
   * create an object may give it any reference.
   * @param fieldManager only what it has applied too, such as what may be deleted. @default - whatever wrote it
   * @throws if no watch covers the type
   */
  controlledBy(type: TypeRef, ownerUid: string, fieldManager?: string): readonly AnyObject[];
  /**
   * Returns the objects of a type that their watch maps to the key, in no particular order. An object is the same one for as
   * long as it stays unchanged, so what is derived from it may be remembered in a WeakMap.
   * @throws if no watch of the controller covers the type
   */
  mappedTo(type: TypeRef, key: string): readonly AnyObject[];
  /**
   * Returns the objects that a query finds. What a plan has asked for is watched, and a change of it requeues the key, for as
   * long as the latest plan of the key has asked for it too.
   * @param lookup one of those that the controller declares
   */
  find(lookup: Lookup, query: Query): Found;
  /**
   * Time by which the API server's clock is ahead of ours now, in whole seconds of the server, so up to a second too little.
   * The `now` of a reconcile includes it, where the two are more than 30 s apart.
   * @default - undefined: it hasn't answered yet
   */
  readonly clockSkewMilliseconds: number | undefined;
}

/** A type of objects. */
export interface TypeRef {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Work for one key, derived from what is known; the engine carries it out, in this order. */
export interface Plan {
  /**
   * Applied one after another. A failed one doesn't keep the next from being applied, unless the API server is out of reach:
   * then the rest of the plan waits for the next try, the status included. A failed hand-over keeps the same object from
   * being applied.
   */
  readonly apply: readonly ApplyStep[];
  /**
   * Carried out one after another, and only when every apply has succeeded, unless `deleteFirst` is set. A failed one
   * doesn't keep the next from being tried.
   */
  readonly delete: readonly DeleteStep[];
  /**
   * Deletes come before the applies, and neither wait for the others' success: for plans of many custom resources, where the
   * failure of one must not keep open what another has lost the right to. A plan doesn't apply what it deletes.
   * @default false - applies come first
   */
  readonly deleteFirst?: boolean;
  /** Objects of others to be deleted, after `delete`. @default - nothing */
  readonly sweep?: Sweep;
  /**
   * Written last, several at a time, and only where it differs from what is there; several for one object in this order.
   * A failed one doesn't keep the others from being written.
   */
  readonly status: readonly StatusStep[];
  /** Sent last, in the order given. */
  readonly events: readonly EventStep[];
  /** Samples of the controller's `metrics`; computed however the plan has ended. @default - nothing */
  readonly samples?: AfterApply<readonly Sample[]>;
  /**
   * Latest time of the next reconcile, by the clock that gave `now`; a function is called after everything else.
   * @default - only when something changes
   */
  readonly requeueAt?: Date | AfterApply<Date | undefined>;
  /**
   * Requests another reconcile at once, as where an object that was created now decides on the next step. A plan must not
   * ask for it each time.
   * @default - only when something changes
   */
  readonly again?: AfterApply<boolean>;
  /** Error that stops the plan for this key; logged, counted and retried like a failed apply. The status has to report it too. */
  readonly error?: OperatorError;
  /** Returns the error of a status that can't be computed. @default - nothing does */
  readonly statusError?: AfterApply<OperatorError | undefined>;
  /**
   * Explains what the plan means for custom resources, for `reconstruct diff` alone; nothing else shows the sweep.
   * @default - its applies and deletes say it all
   */
  readonly explain?: () => readonly Explanation[];
}

/** Computed once the applies and deletes of the plan are done; the reader then shows what they left. */
export type AfterApply<T> = (changes: ChangeSet) => T;

/**
 * Handling of fields of ours that another writer has changed: they are set back, reported and left, or left. An edit of the
 * custom resource applies the whole object in every mode, and what is missing is created.
 */
export type DriftMode = (typeof DRIFT_MODES)[number];

export const DRIFT_MODES = ['correct', 'warn', 'ignore'] as const;

/** An object to be applied. */
export interface ApplyStep {
  /**
   * The whole intent, without owner reference and hash, which the engine adds. A shared object with nothing but its
   * identity gives up all our fields; it isn't created for that.
   */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /**
   * Set: the object belongs to this owner alone. It is created, corrected by force, and refused with the reason
   * `OwnershipConflict` where it exists without belonging to the owner.
   * Not set: the object is shared; our fields are applied without force, and it is created again where it has gone.
   */
  readonly owner?: OwnerReference;
  /** Only for an object with an owner. @default - the operator's, which corrects unless it is told otherwise */
  readonly drift?: DriftMode;
  /** Rules for a shared object. @default - created where it is missing; a conflict fails the step */
  readonly shared?: SharedApply;
  /**
   * Deletes and creates the object again where an immutable field has to change. Only for objects that are of no value in
   * themselves.
   * @default false - such a change fails with the reason `ImmutableField`
   */
  readonly recreate?: boolean;
  /**
   * The object is a Secret, given without data: those of these values that it lacks are made at random, by their keys. What it
   * holds is left as it is, unless its annotation `reconstruct.kosmos.io/generated` is to change: then all are made.
   */
  readonly generate?: GeneratedValues;
  /**
   * Sent as it is whenever it is planned, without hash and owner, to an object that is there: for a field that passes
   * from one field manager to another. It comes before the apply that lets go of the field. The plan has to leave it
   * out once it is done.
   * @default false
   */
  readonly handOver?: boolean;
  /**
   * Returns what has to be ready before, and isn't: the object is left as it is, and nothing of the plan is deleted. Asked when
   * it is its turn, so after the steps before it. A change of what it waits for has to requeue the key.
   * @default - it waits for nothing
   */
  readonly waitsFor?: () => Wait | undefined;
}

/** A status to be written, where it differs. */
export interface StatusStep {
  readonly target: CustomResource;
  readonly fieldManager: string;
  /** Nothing is written where it returns undefined. */
  readonly status: AfterApply<object | undefined>;
}

/** An event to be sent. */
export interface EventStep {
  readonly regarding: ObjectRef & { readonly uid: string };
  /** Nothing is sent where it returns undefined. */
  readonly event: AfterApply<EventProps | undefined>;
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

/** An object of ours to be deleted; a conflict fails and is retried at once. */
export interface DeleteStep {
  /** Object as known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
}

/** Metric of a kind. */
export interface Metric {
  /** A sample is added to a counter, replaces the one before of a gauge, and is sorted into the buckets of a histogram. */
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Name by the rules of Prometheus, e.g. `reconstruct_jobs_deleted_total`; unique in the process. */
  readonly name: string;
  /** A sentence without a full stop; stands in docs/reference/metrics.md. */
  readonly help: string;
  /** Never one that holds the name of an object, of which there may be any number. @default - none */
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram's buckets, ascending. @default - 5 ms to 60 s */
  readonly buckets?: readonly number[];
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
  /** Specifies whether something in the cluster would change that the plan's applies don't show. */
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

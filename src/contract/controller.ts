import type { ChangeSet } from './change.js';
import type { OperatorError } from './error.js';
import type { AnyObject, CustomResource, ObjectRef, OwnerReference } from './object.js';
import type { ResourceType } from './resource.js';
import type { SharedApply } from './shared.js';
import type { Sweep } from './sweep.js';

/**
 * The core of the contract: what the engine knows of any kind.
 *
 * **Guarantees.** `reconcile` is never called twice at once for one key, and not before every watch has delivered its
 * first complete list. After anything that `mapsTo` names has changed, it is called again, but for a status that the
 * controller writes itself, and for an object that the plan of the key has created: its status and events are computed
 * after that.
 *
 * **Assumptions.** `keep`, `mapsTo` and `reconcile` are pure: no I/O, no clock but `now`, no state of their own. Where
 * a plan depends on what no watch shows, such as an admin's policy, a change of that has to ask for another
 * look. A reconcile reads the present state and works out the rest, since any event may be lost, doubled or late. A
 * plan whose applies depend on those of the plan before, and on no change after them, asks for its time (`requeueAt`).
 *
 * **Errors.** What `reconcile` throws is logged as a bug of the kind and tried again after a backoff. A mistake of a
 * user is no reason to throw: it belongs into the status.
 */
export interface Controller {
  /** Unique among the controllers of a process; names the queue in logs and metrics. */
  readonly name: string;
  /** Kind that its keys name, for logs; the kind of its custom resource, as a rule. */
  readonly kind: string;
  /**
   * The first is of its own custom resources. The others open once that one is answered: while the kind isn't installed,
   * or may not be read, the controller costs nothing else.
   */
  readonly watches: readonly Watch[];
  /** Metrics that its plans give samples of, beside what is measured for every kind. @default - nothing */
  readonly metrics?: readonly Metric[];
  /**
   * Where many events lead to one plan: they are waited out. What a first list brings, retries, `requeueAt` and `again`
   * aren't delayed.
   * @default - a key is taken as soon as a worker is free
   */
  readonly settle?: Settle;
  /**
   * Returns what is to be done for a key, from what is known now.
   * @param now by our clock, or by the API server's where they differ by more than 30 s; so is
   *   the time of `Plan.requeueAt`
   */
  reconcile(key: string, reader: Reader, now: Date): Plan;
}

/** Difference of clocks that is usual; beyond it the API server's counts. */
export const TOLERATED_SKEW_MILLISECONDS = 30_000;

/** Wait of a key for further events. */
export interface Settle {
  /** It is taken once nothing has happened for so long, ... */
  readonly quietMilliseconds: number;
  /** ... and so long after the first event at the latest. */
  readonly longestMilliseconds: number;
}

/** Right of a controller on the objects of a watch, beside reading them; its rights follow from it. */
export type Write = 'create' | 'patch' | 'delete' | 'status' | 'finalizers';

/**
 * One kind of object that a controller reads. It may watch one type several times, told apart by `namespaces` and `name`,
 * for rights on some objects alone. An object belongs to the most precise of them, as if the others didn't deliver it: one
 * of its name comes before one of its namespace, that before one of all, and of equals the one that is declared first.
 */
export interface Watch {
  /** Type of the objects. */
  readonly type: ResourceType;
  /** A label selector. @default - every object of the type */
  readonly selector?: string;
  /**
   * The controller works without it: while no such kind is installed, there are no objects of it.
   * @default false - the controller starts once the kind is served and listed
   */
  readonly optional?: boolean;
  /**
   * Returns what of an object is kept in memory; it must keep `apiVersion`, `kind` and the identity in `metadata`. An object
   * for which it returns undefined is of no interest, as if it weren't there; only where `readOnly` is set.
   * Of objects that are applied it must keep what `keepStatus` does, or they are applied with every reconcile.
   * @default keepStatus - identity, the annotations of this project and the status, for objects that we write
   */
  readonly keep?: (object: AnyObject) => AnyObject | undefined;
  /**
   * The controller never applies these objects, though it may delete them: who owns which field isn't worked out, a
   * change of which nothing is kept calls nobody, and any other within 100 ms, or a second while much is changing.
   * @default false
   */
  readonly readOnly?: boolean;
  /**
   * Only objects in these namespaces, whichever the operator is told to watch: for objects that are shared by many.
   * @default - the namespaces that the operator watches
   */
  readonly namespaces?: readonly string[];
  /** Only the object of this name, so that a right on it alone is enough. @default - every name */
  readonly name?: string;
  /** Rights on these objects beside reading them. @default - nothing */
  readonly writes?: readonly Write[];
  /**
   * Returns cluster-wide values that an object (as kept, or as applied) has or asks for, and that no other object may have,
   * such as node ports: an apply that was refused because one is taken is tried again as soon as it is given up.
   * @default - none: tried again within five minutes
   */
  readonly claims?: (object: AnyObject) => readonly string[];
  /** The keys to reconcile when the object (as kept) appears, changes or goes. */
  mapsTo(object: AnyObject): readonly string[];
}

/** View of what the watches have delivered so far, and what our own writes returned. Reading it costs no request. */
export interface Reader {
  /**
   * One object as kept, or nothing if there is none.
   * @throws if no watch of the controller covers the type.
   */
  get(type: TypeRef, key: string): AnyObject | undefined;
  /**
   * All objects of a type that the owner with this UID controls.
   * @throws if no watch of the controller covers the type.
   */
  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[];
  /**
   * All objects of a type that their watch maps to the key, in no particular order. An object is the same one for as long
   * as it stays unchanged, so what is worked out from it may be remembered in a WeakMap.
   * @throws if no watch of the controller covers the type.
   */
  mappedTo(type: TypeRef, key: string): readonly AnyObject[];
  /**
   * Time by which the API server's clock is ahead of ours now, whatever ours is set to: in whole seconds of the server, so up
   * to a second too little. It is in the `now` of a reconcile already, where the two are more than 30 s apart.
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
   * Applied one after another. One that fails doesn't keep the next from being applied, unless the API server is out
   * of reach: then the rest of the plan waits for the next try, the status included. What can't be handed
   * over keeps the same object from being applied.
   */
  readonly apply: readonly ApplyStep[];
  /**
   * Carried out one after another, and only when every apply has succeeded, unless `deleteFirst` is set. One that fails
   * doesn't keep the next from being tried.
   */
  readonly delete: readonly DeleteStep[];
  /**
   * The deletes are carried out before the applies, and neither wait for the others' success: for plans of many custom
   * resources, where nobody's failure may keep open what another has lost the right to. What is deleted isn't applied by
   * the same plan.
   * @default false - applies come first
   */
  readonly deleteFirst?: boolean;
  /** Objects of others to be deleted, after `delete`. @default - nothing */
  readonly sweep?: Sweep;
  /**
   * Written last, several at a time, and only where it differs from what is there. Several for one object are written
   * in this order. One that fails doesn't keep the others from being written.
   */
  readonly status: readonly StatusStep[];
  /** Sent last, in the order given. */
  readonly events: readonly EventStep[];
  /** Samples of the controller's `metrics`; computed however the plan has ended. @default - nothing */
  readonly samples?: AfterApply<readonly Sample[]>;
  /**
   * Reconcile again at this time at the latest, by the clock that gave `now`; where it depends on how the plan went, it is asked after everything
   * else.
   * @default - only when something changes
   */
  readonly requeueAt?: Date | AfterApply<Date | undefined>;
  /**
   * Specifies whether to reconcile again at once, as where only an object that was made now tells what is to be done next. A plan
   * must not ask for it each time.
   * @default - only when something changes
   */
  readonly again?: AfterApply<boolean>;
  /**
   * Error for which nothing can be done for this key; logged, counted and retried like a failed apply. The status has to tell it
   * too.
   */
  readonly error?: OperatorError;
  /** Returns the error of a status that can't be computed. @default - nothing does */
  readonly statusError?: AfterApply<OperatorError | undefined>;
  /**
   * Explains what the plan means for custom resources, asked for by `reconstruct diff` alone; the sweep is shown by nothing else.
   * @default - its applies and deletes say it all
   */
  readonly explain?: () => readonly Explanation[];
}

/** Computed once the applies and deletes of the plan are done; the reader then shows what they left. */
export type AfterApply<T> = (changes: ChangeSet) => T;

/** An object to be applied. */
export interface ApplyStep {
  /**
   * The whole intent, without owner reference and hash, which the engine adds. Of a shared object that names nothing
   * but itself, all our fields are given up; it isn't created for that.
   */
  readonly object: AnyObject;
  readonly fieldManager: string;
  /**
   * Set: the object belongs to this owner alone. It is created, corrected by force, and refused with the reason
   * `OwnershipConflict` where it exists without belonging to the owner.
   * Not set: the object is shared; our fields are applied without force, and it is created again where it has gone.
   */
  readonly owner?: OwnerReference;
  /** Rules for a shared object. @default - created where it is missing; a conflict fails the step */
  readonly shared?: SharedApply;
  /**
   * Where a field has to change that can't be changed, the object is deleted and created again. Only for objects that
   * are of no value in themselves.
   * @default false - such a change fails with the reason `ImmutableField`
   */
  readonly recreate?: boolean;
  /**
   * Sent as it is whenever it is planned, without hash and owner, to an object that is there: for a field that passes
   * from one field manager to another. It comes before the apply that lets go of the field. The plan has to leave it
   * out once it is done.
   * @default false
   */
  readonly handOver?: boolean;
  /** Specifies whether a hand-over takes the field from its owner, where `owner` controls the object. @default false */
  readonly force?: boolean;
}

/** A status to be written, where it differs. */
export interface StatusStep {
  readonly target: CustomResource;
  readonly fieldManager: string;
  readonly status: AfterApply<object>;
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
  /** As known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
}

/** Something that a kind measures. */
export interface Metric {
  /**
   * - `counter`: a sample is added.
   * - `gauge`: a sample replaces the one before.
   * - `histogram`: a sample is sorted into the buckets.
   */
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** By the rules of Prometheus, e.g. `reconstruct_jobs_deleted_total`; unique in the process. */
  readonly name: string;
  /** A sentence without a full stop; stands in docs/reference/metrics.md. */
  readonly help: string;
  /** Never one that holds the name of an object, of which there may be any number. @default - none */
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram's buckets, ascending. @default - 5 ms to 60 s */
  readonly buckets?: readonly number[];
}

/** One value of a metric. */
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
  /**
   * Keys of what would go, or change, in the cluster: where they are others by a change of another custom resource,
   * that is told of this one too.
   * @default - none
   */
  readonly touches?: readonly string[];
  /** @default - there is nothing more to say */
  readonly tables?: readonly Table[];
}

/** Rows below a title. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  /** As many cells each as there are columns. */
  readonly rows: readonly (readonly string[])[];
}

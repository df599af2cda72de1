import type { AnyObject } from './object.js';
import type { ForeignHandler, Plan } from './plan.js';
import type { ResourceType } from './resource.js';

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
 * depend on those of the plan before, and on no change after them, sets `Conclusion.next`.
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
  /** Whether its conclusions explain what plans mean; else `reconstruct diff` needn't read what statuses are made of. @default false */
  readonly explains?: boolean;
  /** Handlers of its foreign steps. @default - none */
  readonly handlers?: readonly ForeignHandler[];
  /**
   * Debounces keys, where many events lead to one plan. First lists, retries and `Conclusion.next` aren't delayed.
   * @default - a key is taken as soon as a worker is free
   */
  readonly settle?: Settle;
  /**
   * Returns the plan for a key, from what is known now.
   * @param now by our clock, or by the API server's where they differ by more than 30 s, as for `Conclusion.next`
   */
  reconcile(key: string, reader: Reader, now: Date): Plan;
}

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
   * Whether the controller works without it: while no such kind is installed, there are no objects of it.
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
   * Whether the controller never applies these objects, though it may delete them: field ownership isn't computed, a change of
   * nothing that is kept is ignored, and any other enqueues within 100 ms, or a second while much is changing.
   * @default false
   */
  readonly readOnly?: boolean;
  /**
   * Namespaces of the objects, or `*` for all, whichever the operator watches: for objects that are shared by many, or belong to
   * custom resources elsewhere.
   * @default - the namespaces that the operator watches
   */
  readonly namespaces?: readonly string[] | '*';
  /** Name of the only object, so that a right on it alone is enough. @default - every name */
  readonly name?: string;
  /** Rights on these objects beside list and watch. Any list, also an empty one, includes get. @default - list and watch alone */
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
   * @default - only what `mapsTo` names
   */
  readonly concerns?: (object: AnyObject, resource: AnyObject) => boolean;
}

/** A type of objects of which a controller keeps only those that its plans ask for; of Secrets it reads no others, if they are asked for by name. */
export interface Lookup {
  readonly type: ResourceType;
  /** Returns what of an object is kept in memory; it must keep `apiVersion`, `kind` and the identity in `metadata`. */
  readonly keep: (object: AnyObject) => AnyObject;
  /** Namespaces that it is asked for in, or `*` for all, whichever the operator watches. @default - those that the operator watches */
  readonly namespaces?: readonly string[] | '*';
}

/** Objects of one type that a plan asks for: one by its name, those that a selector selects, or all. */
export interface Query {
  /** Namespace of the objects; `*` for all. @default - none, for what is cluster-scoped */
  readonly namespace?: string;
  readonly name?: string;
  /** Label selector as text, as of `selectorText`. @default - whatever its labels */
  readonly selector?: string;
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
  /** Returns all objects of a type, in no particular order. @throws if no watch of the controller covers the type */
  all(type: TypeRef): readonly AnyObject[];
  /**
   * Returns the objects of a type that the owner with this UID controls, by their owner reference, or by their record where they have
   * none. That proves nothing: who may create an object may give it any.
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
}

/** A type of objects. */
export interface TypeRef {
  readonly apiVersion: string;
  readonly kind: string;
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

import type { EventProps, Reader, TypeRef } from './controller.js';
import type { AnyObject } from './object.js';

/**
 * Deletion of objects that belong to others, by a rule that was made for them; an opt-in of plans, beside `Plan.delete`.
 *
 * Carried out one after another, after the deletes of the plan. Of each object:
 * - It has changed since it was seen: `skipped`, and the key is taken again, which is no failure.
 * - We may not delete it: `failed` with the reason `Forbidden`, or `Refused` by a policy or webhook, and not tried again for
 *   ten minutes; until then each plan gets the same error. Where the right is missing, nothing of its type is tried in its
 *   namespace meanwhile; where something else refuses it, that object isn't as long as it stays as it is.
 */
export interface Sweep {
  readonly steps: readonly SweepStep[];
  /**
   * Deletions a second, over all plans of the controller. After 30 s, the rest is `skipped`, and the key is taken again as
   * soon as its status is written; a second later where none had its turn.
   */
  readonly deletesPerSecond: number;
}

/** Fate of the objects that the deleted one owns. */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** An object of others to be deleted. */
export interface SweepStep {
  /** Object as known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
  /** @default Background */
  readonly propagation?: Propagation;
  /** Sent as an event of the object before it goes. @default - nothing */
  readonly announce?: EventProps;
  /**
   * Written to the log, in one line for each request, with namespace, name, UID and outcome: `deleted`, `gone` (it
   * wasn't there any more), `changed` (it isn't as it was seen), or the reason of the failure.
   * @default - no such line
   */
  readonly audit?: Readonly<Record<string, unknown>>;
}

/** Memory of deletions. */
export const DELETIONS_KEPT_MILLISECONDS = 24 * 3_600_000;

/** A deletion that was carried out. */
export interface Deletion {
  readonly uid: string;
  readonly at: Date;
}

/** Reader of a controller whose plans sweep: the engine gives every controller one. */
export interface SweepReader extends Reader {
  /**
   * Returns what the sweeps of this controller have deleted under that name within 24 hours, oldest first: for rules that must not
   * delete what comes back each time. A restart forgets it, and so does what is beyond 10,000 deletions.
   */
  deletions(type: TypeRef, key: string): readonly Deletion[];
}

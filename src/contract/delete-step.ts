import type { EventProps } from './controller.js';
import type { AnyObject } from './object.js';

/** What becomes of the objects that the deleted one owns. */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** An object to be deleted. */
export interface DeleteStep {
  /** As known; its UID and resource version become preconditions, so nothing unseen is deleted. */
  readonly object: AnyObject;
  /** @default Background */
  readonly propagation?: Propagation;
  /**
   * It isn't ours: it is deleted by a rule that somebody has made for it.
   * - It has changed since it was seen: `skipped`, and the key is taken again, which is no failure.
   * - We may not: `failed` with the reason `Forbidden`, or `Invalid` as policies have it, and not asked again for ten
   *   minutes; until then each plan gets the same error. Where the right is missing, nothing of its type is asked for in
   *   its namespace meanwhile; where something else refuses it, that object isn't as long as it stays as it is.
   * @default false - it is ours: a conflict fails and is retried at once, a missing right is retried with a growing
   * pause
   */
  readonly foreign?: boolean;
  /** Told of the object before it goes. @default - nothing */
  readonly announce?: EventProps;
  /**
   * Written to the log, in one line for each request, with namespace, name, UID and outcome: `deleted`, `gone` (it
   * wasn't there any more), `changed` (it isn't as it was seen), or the reason of the failure.
   * @default - no such line
   */
  readonly audit?: Readonly<Record<string, unknown>>;
}

/** How long a deletion is remembered. */
export const DELETIONS_KEPT_MILLISECONDS = 24 * 3_600_000;

/** A deletion that was carried out. */
export interface Deletion {
  readonly uid: string;
  readonly at: Date;
}

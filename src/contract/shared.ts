import type { ChangeSet, FieldConflict } from './change.js';
import type { AnyObject } from './object.js';

/** Rules by which an object that others share is applied; an opt-in of apply steps, without meaning for one that has an `owner`. */
export interface SharedApply {
  /**
   * Others have to create it: while it isn't there, the step fails with the reason `TargetMissing`, and is tried again when
   * it appears.
   * @default false - it is created
   */
  readonly mustExist?: boolean;
  /**
   * Returns what to apply instead, where others own fields that the intent names, and have a different value there: all
   * that were met so far. It is sent in the same pass; another conflict is asked about again, three times at most. Returned
   * undefined, the step fails with `FieldConflict`. `Change.conflicts` then names what was met, for as long as it is so.
   *
   * A conflict costs a request. So a plan that can see who owns what (a `keep` that keeps something of `managedFields`)
   * leaves others' fields out from the start; then this is for the race alone, and a restart costs nothing either. Else
   * what was left out is tried again when the intent or the object changes, and once after a restart.
   * @default - a conflict fails the step
   */
  readonly onConflict?: (conflicts: readonly FieldConflict[]) => AnyObject | undefined;
  /**
   * Returns what to apply in the light of what became of the steps before it, instead of `object`; it must name the same
   * object. Returned undefined, the step is skipped.
   * @default - `object`
   */
  readonly revise?: (changes: ChangeSet) => AnyObject | undefined;
}

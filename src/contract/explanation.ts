import type { ObjectRef } from './object.js';

/** What a plan means for one custom resource, in words, for whoever asks before it is carried out. */
export interface Explanation {
  /** The custom resource. */
  readonly of: ObjectRef;
  /** What follows its name in a sentence: `would delete 3 of 10 Jobs matched`. */
  readonly summary: string;
  /** Whether something in the cluster would change that the plan's applies don't show. */
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

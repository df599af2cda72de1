import type { StructuralSchema } from '../../contract/crd.js';
import type { Problem } from '../../synth/problem.js';
import { valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

/** Members of which an object has exactly one, or, where it may do without, at most one. */
export interface Union {
  readonly members: readonly string[];
  readonly mayBeNone?: boolean;
  /** The field that names the member. */
  readonly named?: string;
}

/** The spec of a kind, as edits by chance go through it. */
export interface Fields {
  readonly schema: StructuralSchema;
  /** Every field that holds a value, and every list by the path of its items. */
  readonly leaves: readonly Path[];
  readonly lists: readonly Path[];
  /** All values that a field may get; for what isn't a list, a map or an object. */
  choices(path: Path): readonly unknown[];
  /** The keys that a map may get. */
  keys(path: Path): readonly string[];
  union(path: Path): Union | undefined;
  /** A value whose parts go together. */
  consistent(path: Path, value: unknown): unknown;
  /** What a field can't be without. */
  companions(field: string): readonly Path[];
  /** It is never set. */
  isBarred(path: Path): boolean;
  /** It is only set where that is asked for, since what comes of it is refused. */
  isRefused(path: Path): boolean;
  /** Once it is there, it can't be changed. @default - no field is like that */
  isFixed?(path: Path): boolean;
  /** What is wrong with a spec, also as an edit of another, by paths from the custom resource on. */
  problems(spec: Spec, before?: Spec): readonly Problem[];
}

/** Whether a spec has any field that is refused. */
export function hasRefusedFields(fields: Fields, spec: Spec): boolean {
  return fields.leaves.some((path) => fields.isRefused(path) && valuesAt(spec, path).length > 0);
}

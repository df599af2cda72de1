import type { FieldConflict } from '../../contract/change.js';
import type { OperatorError } from '../../contract/error.js';
import { objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { HandedOver } from './handed-over.js';

/**
 * What would become of an object.
 *
 * - `created`, `changed`, `deleted`, `unchanged`: as the words say.
 * - `recreated`: deleted and made anew.
 * - `failed`: refused; `error` says why.
 * - `skipped`: not tried, because something before it failed.
 */
export type PreviewAction =
  'created' | 'changed' | 'recreated' | 'deleted' | 'unchanged' | 'failed' | 'skipped';

export interface ObjectPreview {
  readonly ref: ObjectRef;
  readonly action: PreviewAction;
  /** As it is, whole. @default - it isn't there, or nothing was to be found out about it */
  readonly before?: AnyObject;
  /** As it would be: whole, or what is applied where it would be made. @default - it would go, or stays as it is */
  readonly after?: AnyObject;
  readonly error?: OperatorError;
  /** Fields that would be taken from other managers. */
  readonly takes: readonly FieldConflict[];
  /** Fields that would be left out, since others own them. */
  readonly leaves: readonly FieldConflict[];
}

/** An object may be in a plan twice; the last word is the one that counts, unless it wasn't said. */
export function note(objects: Map<string, ObjectPreview>, found: ObjectPreview): void {
  const id = objectId(found.ref);
  const known = objects.get(id);
  const saysLess = found.action === 'unchanged' || found.action === 'skipped';
  if (known && saysLess) return;
  const leaves = [...(known?.leaves ?? []), ...found.leaves];
  objects.set(id, { ...found, leaves });
}

/** Of an object that exists in the dry run alone. */
export function layOver(objects: Map<string, ObjectPreview>, id: string, handed: HandedOver): void {
  const known = objects.get(id);
  if (known?.after) objects.set(id, { ...known, after: handed.laidOver(known.after) });
}

/** @param failed nothing is deleted then */
export function asDeleted(object: AnyObject, failed: boolean): ObjectPreview {
  return { ref: refOf(object), action: failed ? 'skipped' : 'deleted', takes: [], leaves: [] };
}

export function asFailed(ref: ObjectRef, error: OperatorError): ObjectPreview {
  return { ref, action: 'failed', error, takes: [], leaves: [] };
}

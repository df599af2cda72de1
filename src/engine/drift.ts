import type { Drift } from '../contract/change.js';
import { isHashAnnotation } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import { describePath, difference, isAppliedBy, managedFieldsOf, touches } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import type { Entry } from './cache.js';

const FIELDS_TOLD = 10;

/**
 * Who had taken which fields from a manager, judged by what it got back.
 * @param before who owned what when the manager's fields were gone
 * @param corrected the object after the manager has applied again
 */
export function driftOf(before: readonly ManagedFieldsEntry[], corrected: AnyObject, manager: string): Drift {
  const isOwn = (entry: ManagedFieldsEntry): boolean => isAppliedBy(manager, entry);
  const had = before.find(isOwn)?.fieldsV1 ?? {};
  const has = managedFieldsOf(corrected).find(isOwn)?.fieldsV1 ?? {};
  const paths = difference(has, had);
  const managers = before
    .filter((entry) => !isOwn(entry) && paths.some((path) => touches(entry.fieldsV1 ?? {}, path)))
    .map((entry) => entry.manager ?? '');
  return {
    managers: [...new Set(managers)].sort(),
    fields: paths.slice(0, FIELDS_TOLD).map(describePath),
  };
}

/**
 * Whether what was applied to an object that carries our hash isn't what it was before; or still isn't. It may be what
 * it has to be where the hash is another one: then we have applied something else, perhaps another process of ours.
 */
export function hasDrifted(before: Entry, after: Entry): boolean {
  if (before.object.metadata.uid !== after.object.metadata.uid) return false;
  const [hashBefore, hashAfter] = [appliedHash(before), appliedHash(after)];
  // Whoever takes the hash off is somebody else.
  if (hashAfter !== hashBefore && hashAfter !== undefined) return false;
  if (hashBefore === undefined) return false;
  if (before.drifted) return true;
  for (const [owner, paths] of before.owned) if (after.owned.get(owner) !== paths) return true;
  return false;
}

/** Of an object that several of our managers share, all of their hashes. */
function appliedHash({ object }: Entry): string | undefined {
  const { annotations } = object.metadata;
  if (!annotations) return undefined;
  const ours = Object.keys(annotations).filter(isHashAnnotation);
  return ours.length === 0
    ? undefined
    : ours
        .sort()
        .flatMap((name) => [name, annotations[name]])
        .join();
}

import { isDeepStrictEqual } from 'node:util';
import type { AnyObject } from '../contract/object.js';

/**
 * Whether an object asks for the same as before, its status aside. Its generation tells, so of an object that has
 * none this can't be said.
 */
export function asksForTheSame(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  if (!before || after?.metadata.generation === undefined) return false;
  const { metadata: a } = before;
  const { metadata: b } = after;
  return (
    a.generation === b.generation &&
    a.uid === b.uid &&
    a.deletionTimestamp === b.deletionTimestamp &&
    isDeepStrictEqual(a.labels, b.labels) &&
    isDeepStrictEqual(a.annotations, b.annotations) &&
    isDeepStrictEqual(a.ownerReferences, b.ownerReferences)
  );
}

/**
 * Whether the status of an object has changed, and nothing else. With an equal status, something has changed that
 * isn't kept, e.g. who owns a field.
 */
export function onlyStatusDiffers(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return asksForTheSame(before, after) && !sameStatus(before, after);
}

export function sameStatus(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return isDeepStrictEqual(before?.status, after?.status);
}

/** Whether what is kept of an object is what it was, in another version. */
export function sameButVersion(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  return !!before && !!after && isDeepStrictEqual(withoutVersion(before), withoutVersion(after));
}

function withoutVersion({ metadata: { resourceVersion, ...metadata }, ...rest }: AnyObject): object {
  return { ...rest, metadata };
}

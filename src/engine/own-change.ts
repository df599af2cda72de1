import { isDeepStrictEqual } from 'node:util';
import { isHashAnnotation } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import type { OwnWrite } from './pending-writes.js';

/**
 * Whether the plan that has written an object learns nothing from the answer that it couldn't foresee: the object is
 * new, or what is kept of it is as it was, but for what every apply changes.
 *
 * Somebody else's change may have come between the version that was known and our write, and its event is then old
 * news. So any other difference counts as one, even if it was our own doing: at worst, that costs a look.
 */
export function tellsNothingMore(
  own: OwnWrite,
  before: AnyObject | undefined,
  after: AnyObject | undefined,
): boolean {
  if (!after) return false;
  if (!before) return own.created;
  const { generation: then = 0 } = before.metadata;
  const { generation: now = 0 } = after.metadata;
  return now <= then + 1 && isDeepStrictEqual(withoutBookkeeping(before), withoutBookkeeping(after));
}

function withoutBookkeeping({ metadata, ...rest }: AnyObject): object {
  const { resourceVersion, generation, annotations = {}, ...others } = metadata;
  const notOurs = Object.entries(annotations).filter(([name]) => !isHashAnnotation(name));
  return { ...rest, metadata: { ...others, annotations: Object.fromEntries(notOurs) } };
}

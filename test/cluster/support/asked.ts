import type { AnyObject } from '../../../src/contract/object.js';

/** What an object asks for, and whose it is; what its own controller reports may come at any time. */
export function asked({ metadata, spec }: AnyObject): object {
  const { name, uid, generation, labels, annotations, ownerReferences } = metadata;
  return { name, uid, generation, labels, annotations, ownerReferences, spec };
}

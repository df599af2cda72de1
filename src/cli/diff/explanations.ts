import { isDeepStrictEqual } from 'node:util';
import type { Explanation } from '../../contract/explanation.js';
import { objectId } from '../../contract/object.js';
import type { Preview } from '../../engine/preview/controller-preview.js';

/** What is told of the custom resources that were asked for, and of others for which something changes by them. */
export function explanationsFor(asked: ReadonlySet<string>, found: Preview): Explanation[] {
  const before = new Map(found.explainedBefore.map((one) => [objectId(one.of), one]));
  return found.explanations.flatMap((after) => {
    const id = objectId(after.of);
    const known = before.get(id);
    if (asked.has(id)) return [told(after)];
    return known ? altered(known, after) : [];
  });
}

function told({ of, summary, differs, tables }: Explanation): Explanation {
  return { of, summary, differs, ...(tables && { tables }) };
}

function altered(before: Explanation, after: Explanation): Explanation[] {
  const touches = ({ touches: keys = [] }: Explanation): string[] => [...keys].sort();
  if (isDeepStrictEqual(touches(before), touches(after))) return [];
  const summary = `${after.summary}; as things are, it ${before.summary}`;
  return [{ ...told(after), differs: true, summary }];
}

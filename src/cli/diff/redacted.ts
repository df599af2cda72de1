import type { AnyObject } from '../../contract/object.js';
import { visible } from '../../engine/preview/dry-run.js';

interface Pair {
  readonly before?: AnyObject;
  readonly after?: AnyObject;
}

/**
 * What may be shown of an object as it is and as it would be: of a Secret, which of its values would be others, and none
 * of them.
 */
export function shown({ before, after }: Pair): Pair {
  const [was, is] = [before && visible(before), after && visible(after)];
  return {
    ...(was && { before: redacted(was, is, 'before') }),
    ...(is && { after: redacted(is, was, 'after') }),
  };
}

type Values = Readonly<Record<string, unknown>>;

function redacted(object: AnyObject, other: AnyObject | undefined, side: 'before' | 'after'): AnyObject {
  if (object.kind !== 'Secret' || object.apiVersion !== 'v1') return object;
  const hidden = (['data', 'stringData'] as const).flatMap((field) => {
    const values = object[field] as Values | null | undefined;
    if (!values) return [];
    const others = (other?.[field] ?? {}) as Values;
    return [[field, hide(values, others, side)] as const];
  });
  return { ...object, ...Object.fromEntries(hidden) };
}

function hide(values: Values, others: Values, side: string): Values {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      Object.hasOwn(others, key) && others[key] !== value ? `(redacted, ${side})` : '(redacted)',
    ]),
  );
}

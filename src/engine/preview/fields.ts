import type { AnyObject } from '../../contract/object.js';
import { visible } from './dry-run.js';
import { byKey, differences, formatFieldPath } from '../../values/path.js';

export interface FieldChange {
  /** Path such as `.spec.template.spec.containers[name="web"].image`. */
  readonly path: string;
  /** @default - the field is new */
  readonly before?: unknown;
  /** @default - the field is removed */
  readonly after?: unknown;
}

/** Compares two values field by field, in the order of the second. */
export function fieldChanges(before: unknown, after: unknown): FieldChange[] {
  return differences(before, after, byKey).map(({ path, values: [was, is] }) => ({
    path: formatFieldPath(path),
    ...(was !== undefined && { before: was }),
    ...(is !== undefined && { after: is }),
  }));
}

/** Matches an item of a list in a path: `[0]` or `[name="web"]`, and not a name in a map, `["app"]`. */
const ITEM = /\[(?:\d+|\w+=(?:\d+|"(?:[^"\\]|\\.)*"))\]/g;

/** Returns a path such as `.spec.containers[].image`, which is the same for each item of a list. */
export function ofAnyItem(path: string): string {
  return path.replace(ITEM, '[]');
}

type Members = Readonly<Record<string, unknown>>;

interface Pair {
  readonly before?: AnyObject;
  readonly after?: AnyObject;
}

/** Returns what may be shown of both: of a Secret, which of its values differ, and none of them. */
export function redactedPair({ before, after }: Pair): Pair {
  const [was, is] = [before && visible(before), after && visible(after)];
  return {
    ...(was && { before: redacted(was, is, 'before') }),
    ...(is && { after: redacted(is, was, 'after') }),
  };
}

function redacted(object: AnyObject, other: AnyObject | undefined, side: 'before' | 'after'): AnyObject {
  if (object.kind !== 'Secret' || object.apiVersion !== 'v1') return object;
  const hidden = ['data', 'stringData'].flatMap((field): [string, Members][] => {
    const values = object[field] as Members | null | undefined;
    if (!values) return [];
    const others = (other?.[field] ?? {}) as Members;
    const hide = ([key, value]: [string, unknown]): [string, string] => [
      key,
      Object.hasOwn(others, key) && others[key] !== value ? `(redacted, ${side})` : '(redacted)',
    ];
    return [[field, Object.fromEntries(Object.entries(values).map(hide))]];
  });
  return { ...object, ...Object.fromEntries(hidden) };
}

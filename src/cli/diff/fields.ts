import { isDeepStrictEqual } from 'node:util';
import { isMap } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { visible } from '../../engine/preview/dry-run.js';

export interface FieldChange {
  /** Path such as `.spec.template.spec.containers[name="web"].image`. */
  readonly path: string;
  /** @default - the field is new */
  readonly before?: unknown;
  /** @default - the field is removed */
  readonly after?: unknown;
}

/** Keys of list items: the first counts that all items have, each with a value of its own. */
const KEYS: readonly string[] = ['name', 'uid', 'port', 'containerPort', 'mountPath', 'key', 'ip', 'type'];

/** Compares two values field by field, in the order of the second. */
export function fieldChanges(before: unknown, after: unknown, path = ''): FieldChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isMap(before) && isMap(after)) {
    const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
    const of = (map: Members, name: string): unknown => (Object.hasOwn(map, name) ? map[name] : undefined);
    return names.flatMap((name) => {
      const step = /^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
      return fieldChanges(of(before, name), of(after, name), path + step);
    });
  }
  if (Array.isArray(before) && Array.isArray(after)) return itemChanges(before, after, path);
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
}

function itemChanges(before: readonly unknown[], after: readonly unknown[], path: string): FieldChange[] {
  for (const key of KEYS) {
    const [was, is] = [byKey(before, key), byKey(after, key)];
    if (!was || !is) continue;
    const found = [...new Set([...is.keys(), ...was.keys()])].flatMap((value) =>
      fieldChanges(was.get(value), is.get(value), `${path}[${key}=${JSON.stringify(value)}]`),
    );
    // The items are the same, in another order.
    return found.length > 0 ? found : [{ path, before, after }];
  }
  if (before.length !== after.length) return [{ path, before, after }];
  return after.flatMap((item, index) => fieldChanges(before[index], item, `${path}[${index}]`));
}

/** Returns the items by a key; undefined where it doesn't identify them. */
function byKey(items: readonly unknown[], key: string): Map<unknown, unknown> | undefined {
  const found = new Map(items.map((item) => [isMap(item) ? item[key] : undefined, item]));
  const isKey = [...found.keys()].every((value) => typeof value === 'string' || typeof value === 'number');
  return isKey && found.size === items.length ? found : undefined;
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

import { isDeepStrictEqual } from 'node:util';
import { isMap } from '../../contract/object.js';

/** One field that is another, or is there on one side only. */
export interface FieldChange {
  /** As in `.spec.template.spec.containers[name="web"].image`. */
  readonly path: string;
  /** @default - it isn't there */
  readonly before?: unknown;
  /** @default - it would go */
  readonly after?: unknown;
}

/** By the first of these that all items have, each its own, the items of a list are told apart. */
const KEYS: readonly string[] = ['name', 'uid', 'port', 'containerPort', 'mountPath', 'key', 'ip', 'type'];

/** What differs, as deep down as it can be said, in the order of the second. */
export function fieldChanges(before: unknown, after: unknown, path = ''): FieldChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isMap(before) && isMap(after)) return memberChanges(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) return itemChanges(before, after, path);
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
}

function memberChanges(before: Members, after: Members, path: string): FieldChange[] {
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  const of = (map: Members, name: string): unknown => (Object.hasOwn(map, name) ? map[name] : undefined);
  return names.flatMap((name) => fieldChanges(of(before, name), of(after, name), path + member(name)));
}

function itemChanges(before: readonly unknown[], after: readonly unknown[], path: string): FieldChange[] {
  const key = KEYS.find((candidate) => isKeyOf(candidate, before) && isKeyOf(candidate, after));
  if (key === undefined) {
    const pairs = before.length === after.length ? after.map((item, index) => [before[index], item]) : [];
    if (pairs.length === 0) return [{ path, before, after }];
    return pairs.flatMap(([was, is], index) => fieldChanges(was, is, `${path}[${index}]`));
  }
  const was = new Map(before.map((item) => [valueOf(item, key), item]));
  const is = new Map(after.map((item) => [valueOf(item, key), item]));
  const values = [...new Set([...is.keys(), ...was.keys()])];
  const found = values.flatMap((value) =>
    fieldChanges(was.get(value), is.get(value), `${path}[${key}=${JSON.stringify(value)}]`),
  );
  // The items are the same, in another order.
  return found.length > 0 ? found : [{ path, before, after }];
}

function isKeyOf(key: string, items: readonly unknown[]): boolean {
  const values = items.map((item) => valueOf(item, key));
  return (
    values.every((value) => typeof value === 'string' || typeof value === 'number') &&
    new Set(values).size === values.length
  );
}

function valueOf(item: unknown, key: string): unknown {
  return isMap(item) ? item[key] : undefined;
}

function member(name: string): string {
  return /^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

type Members = Readonly<Record<string, unknown>>;

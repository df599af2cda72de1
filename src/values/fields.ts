import type { AnyObject, FieldsV1 } from '../contract/object.js';
import { isMap, isTooDeep } from './json.js';
import { parseFieldPath } from './path.js';

/** Values of fields by path: each alone in a list, which is empty where there is none. */
export type FieldValues = Readonly<Record<string, readonly unknown[]>>;

/** Reads such values from an annotation, in which every writer may have put anything. @throws SyntaxError where it isn't JSON */
export function parseFieldValues(json: string): FieldValues | undefined {
  const values: unknown = JSON.parse(json);
  const isRecord = isMap(values) && !isTooDeep(values) && Object.values(values).every(Array.isArray);
  return isRecord ? (values as FieldValues) : undefined;
}

/** Returns the steps of a path through maps; none of another text. */
export function stepsOf(path: string): readonly string[] {
  return parseFieldPath(path) ?? [];
}

/** Returns the value at a path, alone in a list, which is empty where there is none. */
export function valuesAt(object: AnyObject, path: string): readonly unknown[] {
  let value: unknown = object;
  for (const step of stepsOf(path)) {
    if (!isMap(value) || !Object.hasOwn(value, step)) return [];
    value = value[step];
  }
  return value === undefined ? [] : [value];
}

/** Returns a copy with another value at a path, or none. */
export function withValue(
  of: unknown,
  [step = '', ...rest]: readonly string[],
  values: readonly unknown[],
): unknown {
  const { [step]: inner, ...others } = isMap(of) ? of : {};
  if (values.length === 0 && (inner === undefined || rest.length === 0)) return others;
  return { ...others, [step]: rest.length === 0 ? values[0] : withValue(inner, rest, values) };
}

/** Returns what of a set lies below a path; what is owned as a whole includes all below it. */
export function fieldsBelow(fields: FieldsV1 | undefined, steps: readonly string[]): FieldsV1 | undefined {
  let node = fields;
  for (const [depth, step] of steps.entries()) {
    if (depth > 0 && node && Object.keys(node).length === 0) return node;
    node = node?.[`f:${step}`];
  }
  return node;
}

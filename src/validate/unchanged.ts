import { isDeepStrictEqual } from 'node:util';
import type { StructuralSchema } from '../contract/crd.js';
import type { Path } from './problem.js';
import { isMap } from '../values/json.js';

/** A part of an object, and the old value in its place. */
export interface Pair {
  readonly schema: StructuralSchema | undefined;
  readonly value: unknown;
  readonly old: unknown;
}

/** A part of an object where it is judged. */
export interface Place {
  readonly value: unknown;
  readonly path: Path;
  /** Part with the old value in its place. @default - undefined: there was none, or it can't be compared */
  readonly pair: Pair | undefined;
  /**
   * The same, or else of the nearest part around it: where that is as it was, what was wrong before isn't refused.
   * @see
   * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
   */
  readonly nearest: Pair | undefined;
}

/** Returns the place of a member or an item. */
export function placeBelow(place: Place, step: string | number, value: unknown): Place {
  const pair = place.pair && partOf(place.pair, step);
  return { value, path: [...place.path, step], pair, nearest: pair ?? place.nearest };
}

/** Returns a part of both; nothing where the old value can't be determined. */
function partOf({ schema, value, old }: Pair, step: string | number): Pair | undefined {
  if (typeof step === 'number') {
    if (!schema || !Array.isArray(value)) return undefined;
    const item: unknown = value[step];
    const match = oldItem(schema, old, item);
    return match === undefined ? undefined : { schema: schema.items, value: item, old: match };
  }
  if (!isMap(value) || !isMap(old) || !Object.hasOwn(value, step) || !Object.hasOwn(old, step))
    return undefined;
  const member = schemaBelow(schema, step);
  return member && { schema: member, value: value[step], old: old[step] };
}

/** Returns the old item of a list of type `map` with the same keys. Items of other lists have no identity. */
function oldItem(schema: StructuralSchema, old: unknown, item: unknown): unknown {
  const keys = isKeyed(schema) ? (schema['x-kubernetes-list-map-keys'] ?? []) : [];
  if (keys.length === 0 || !Array.isArray(old)) return undefined;
  const keyOf = (of: unknown, key: string): unknown =>
    isMap(of) && Object.hasOwn(of, key) ? of[key] : undefined;
  // A key that is missing, or no scalar, is the same as no other.
  const isSame = (a: unknown, b: unknown): boolean => typeof (a ?? {}) !== 'object' && a === b;
  return old.find((other: unknown) => keys.every((key) => isSame(keyOf(other, key), keyOf(item, key))));
}

/**
 * Reports whether both are the same to the API server: lists of type `map` in whatever order, and a field that no schema
 * describes never.
 * @see https://github.com/kubernetes/apiserver/blob/master/pkg/cel/common/equality.go CachedDeepEqual
 */
export function isUnchanged(pair: Pair): boolean {
  const { schema, value, old } = pair;
  const isPartUnchanged = (step: string | number): boolean => {
    const part = partOf(pair, step);
    return part !== undefined && isUnchanged(part);
  };
  if (Array.isArray(value) && Array.isArray(old) && isKeyed(schema))
    return value.length === old.length && value.every((_, index) => isPartUnchanged(index));
  if (isMap(value) && isMap(old)) {
    const keys = Object.keys(value);
    return keys.length === Object.keys(old).length && keys.every(isPartUnchanged);
  }
  return isDeepStrictEqual(value, old);
}

function isKeyed(schema: StructuralSchema | undefined): boolean {
  return schema?.['x-kubernetes-list-type'] === 'map';
}

/** Returns the schema of a member, or of the items of a list; nothing where there is none. */
export function schemaBelow(
  schema: StructuralSchema | undefined,
  step: string | number,
): StructuralSchema | undefined {
  if (typeof step === 'number') return schema?.items;
  const { properties = {}, additionalProperties } = schema ?? {};
  if (Object.hasOwn(properties, step)) return properties[step];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** Returns the schemas right below one: of fields by name, of the values of a map as `*`, and of the items of a list as `[]`. */
export function schemasBelow(schema: StructuralSchema): Readonly<Record<string, StructuralSchema>> {
  const { properties, additionalProperties: values, items } = schema;
  return { ...properties, ...(typeof values === 'object' && { '*': values }), ...(items && { '[]': items }) };
}

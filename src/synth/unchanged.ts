import { isDeepStrictEqual } from 'node:util';
import type { StructuralSchema } from '../contract/crd.js';
import { isMap } from '../contract/object.js';
import type { Path } from './problem.js';

/** A part of an object, and what was in its place before. */
export interface Pair {
  readonly schema: StructuralSchema | undefined;
  readonly value: unknown;
  readonly old: unknown;
}

/**
 * Reports whether what is at a path, or the nearest part around it that can be compared, is as it was: then the API server
 * doesn't refuse it for what was wrong with it before.
 * @see
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
 */
export function isUnchangedAt(root: Pair, path: Path): boolean {
  let at = root;
  for (const step of path) {
    const next = partOf(at, step);
    if (!next) break;
    at = next;
  }
  return isUnchanged(at);
}

/** A part of both; nothing where nobody can say what it was before. */
export function partOf(pair: Pair, step: string | number): Pair | undefined {
  return typeof step === 'number' ? itemOf(pair, step) : memberOf(pair, step);
}

/**
 * Reports whether both are the same to the API server: lists of type `map` in whatever order, and a field that no schema
 * describes never.
 * @see https://github.com/kubernetes/apiserver/blob/master/pkg/cel/common/equality.go CachedDeepEqual
 */
export function isUnchanged(pair: Pair): boolean {
  const { schema, value, old } = pair;
  if (Array.isArray(value) && Array.isArray(old)) {
    if (!isKeyed(schema)) return isDeepStrictEqual(value, old);
    return value.length === old.length && value.every((_, index) => isPartUnchanged(pair, index));
  }
  if (isMap(value) && isMap(old)) {
    const keys = Object.keys(value);
    return keys.length === Object.keys(old).length && keys.every((key) => isPartUnchanged(pair, key));
  }
  return isDeepStrictEqual(value, old);
}

function isPartUnchanged(pair: Pair, step: string | number): boolean {
  const part = partOf(pair, step);
  return part !== undefined && isUnchanged(part);
}

function itemOf({ schema, value, old }: Pair, index: number): Pair | undefined {
  if (!schema || !Array.isArray(value)) return undefined;
  const item: unknown = value[index];
  const match = oldItem(schema, old, item);
  return match === undefined ? undefined : { schema: schema.items, value: item, old: match };
}

function memberOf({ schema, value, old }: Pair, key: string): Pair | undefined {
  if (!isMap(value) || !isMap(old) || !Object.hasOwn(value, key) || !Object.hasOwn(old, key))
    return undefined;
  const { properties = {}, additionalProperties } = schema ?? {};
  const other = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const member = Object.hasOwn(properties, key) ? properties[key] : other;
  return member && { schema: member, value: value[key], old: old[key] };
}

/** The item that a list of type `map` had under the keys of this one. Items of other lists can't be told apart. */
export function oldItem(schema: StructuralSchema, old: unknown, item: unknown): unknown {
  const keys = isKeyed(schema) ? (schema['x-kubernetes-list-map-keys'] ?? []) : [];
  if (keys.length === 0 || !Array.isArray(old)) return undefined;
  return old.find((other: unknown) => keys.every((key) => sameScalar(field(other, key), field(item, key))));
}

function isKeyed(schema: StructuralSchema | undefined): boolean {
  return schema?.['x-kubernetes-list-type'] === 'map';
}

/** A key that is missing, or no scalar, is the same as no other. */
function sameScalar(a: unknown, b: unknown): boolean {
  return a !== undefined && a !== null && typeof a !== 'object' && a === b;
}

function field(value: unknown, key: string): unknown {
  return isMap(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

import { isDeepStrictEqual } from 'node:util';
import type { StructuralSchema } from '../contract/crd.js';
import type { Path } from './problem.js';

export interface Change {
  readonly schema: StructuralSchema;
  readonly value: unknown;
  readonly old: unknown;
  readonly path: Path;
}

/**
 * Whether what is at a path is as it was. Items of lists are compared only where they have keys; where they haven't,
 * the list is asked as a whole.
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
 */
export function isUnchanged({ schema, value, old, path }: Change): boolean {
  let at: { schema: StructuralSchema | undefined; value: unknown; old: unknown } = { schema, value, old };
  for (const step of path) {
    const next = typeof step === 'number' ? itemOf(at, step) : memberOf(at, step);
    if (!next) break;
    at = next;
  }
  return isDeepStrictEqual(at.value, at.old);
}

interface Pair {
  readonly schema: StructuralSchema | undefined;
  readonly value: unknown;
  readonly old: unknown;
}

function itemOf({ schema, value, old }: Pair, index: number): Pair | undefined {
  if (!schema || schema['x-kubernetes-list-type'] !== 'map') return undefined;
  const item = (value as readonly unknown[])[index];
  return { schema: schema.items, value: item, old: oldItem(schema, old, item) };
}

function memberOf({ schema, value, old }: Pair, key: string): Pair {
  const { properties, additionalProperties } = schema ?? {};
  const other = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  return { schema: properties?.[key] ?? other, value: field(value, key), old: field(old, key) };
}

/** The item that a list of type `map` had under the keys of this one. */
export function oldItem(schema: StructuralSchema, old: unknown, item: unknown): unknown {
  const keys = schema['x-kubernetes-list-type'] === 'map' ? schema['x-kubernetes-list-map-keys'] : undefined;
  if (!keys || !Array.isArray(old)) return undefined;
  return old.find((other: unknown) => keys.every((key) => field(other, key) === field(item, key))) as unknown;
}

function field(value: unknown, key: string): unknown {
  if (value === null || typeof value !== 'object' || !Object.hasOwn(value, key)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[key];
}

import type { StructuralSchema } from '../contract/crd.js';
import { schemaBelow } from './unchanged.js';

/**
 * Returns what the API server makes of an object before it validates it: a field that is missing, or null where null isn't
 * allowed, gets the default of its schema, and then the defaults inside of it apply; a null that isn't allowed and
 * has no default is dropped. Nothing else changes, unknown fields stay.
 *
 * The value that is given isn't changed; parts of it may be in the result.
 * @see https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting
 */
export function applyDefaults(value: unknown, schema: StructuralSchema | undefined): unknown {
  if (!schema || value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    return items.map((item) =>
      applyDefaults(isUnset(item, schema.items) ? (schema.items?.default ?? null) : item, schema.items),
    );
  }
  const properties = schema.properties ?? {};
  const entries: [string, unknown][] = [];
  for (const [key, given] of Object.entries(value)) {
    const property = schemaBelow(schema, key);
    const field: unknown = isUnset(given, property) ? property?.default : given;
    if (field !== undefined) entries.push([key, applyDefaults(field, property)]);
  }
  for (const [key, property] of Object.entries(properties)) {
    if (property.default === undefined || Object.hasOwn(value, key)) continue;
    entries.push([key, applyDefaults(property.default, property)]);
  }
  // Unlike assignment, this makes a plain member even of a key named __proto__.
  return Object.fromEntries(entries);
}

/** Reports whether the API server takes a value for missing: it is null where null isn't allowed. */
function isUnset(value: unknown, schema: StructuralSchema | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true;
}

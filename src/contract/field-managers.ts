import type { AnyObject } from './object.js';

interface ManagedFields {
  readonly manager?: string;
  readonly fieldsV1?: object;
}

/**
 * The field managers that own a field, in the order of the record; none, where the API server's default stands. An
 * autoscaler and `kubectl scale` write through `/scale`, which is an entry of its own, and none where nobody owned the
 * field before.
 * @param path as in `fieldsV1`: `f:spec`, `f:replicas`
 */
export function managersOf(object: AnyObject, ...path: readonly string[]): string[] {
  const { managedFields = [] } = object.metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields
    .filter(({ fieldsV1 }) => fieldAt(fieldsV1, path) !== undefined)
    .map(({ manager = '' }) => manager);
}

function fieldAt(fields: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, step) => (at as Readonly<Record<string, unknown>> | undefined)?.[step],
    fields,
  );
}

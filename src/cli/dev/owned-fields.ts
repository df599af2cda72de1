import { isDeepStrictEqual } from 'node:util';
import type { AnyObject } from '../../contract/object.js';
import { isAppliedBy, managedFieldsOf, union } from '../../engine/field-set.js';
import type { FieldsV1 } from '../../engine/field-set.js';

/** The fields of an object that a manager has applied; none where it has applied nothing. */
export function fieldsOf(object: AnyObject, manager: string): FieldsV1 {
  return managedFieldsOf(object)
    .filter((entry) => isAppliedBy(manager, entry))
    .reduce<FieldsV1>((fields, { fieldsV1 = {} }) => union(fields, fieldsV1), {});
}

/**
 * What an object has in these fields. Whatever somebody else has put beside them is left out, so that two states can be
 * compared by what is rendered alone.
 */
export function inFields(object: AnyObject, fields: FieldsV1): AnyObject {
  const { apiVersion, kind, metadata } = object;
  const { metadata: part, ...rest } = partOf(object, fields) as {
    readonly metadata?: Readonly<Record<string, unknown>>;
  };
  const { ownerReferences, ...own } = part ?? {};
  const { name, namespace } = metadata;
  return {
    ...rest,
    ...{ apiVersion, kind },
    metadata: { ...own, name, ...(namespace !== undefined && { namespace }) },
  };
}

type Members = Readonly<Record<string, unknown>>;

function partOf(value: unknown, fields: FieldsV1): unknown {
  const segments = Object.keys(fields).filter((segment) => segment !== '.');
  // A scalar, or a list or map that is owned as a whole; of one that only has to be there, what others put in isn't meant.
  if (segments.length === 0) return '.' in fields ? emptied(value) : value;
  if (Array.isArray(value)) return itemsOf(value, fields, segments);
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Members;
  return Object.fromEntries(
    segments
      .map((segment) => [segment, segment.slice(2)] as const)
      .filter(([, name]) => Object.hasOwn(members, name) && members[name] !== undefined)
      .map(([segment, name]) => [name, partOf(members[name], fields[segment] ?? {})]),
  );
}

function emptied(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return typeof value === 'object' && value !== null ? {} : value;
}

function itemsOf(items: readonly unknown[], fields: FieldsV1, segments: readonly string[]): unknown[] {
  return segments.flatMap((segment) => {
    const named: unknown = JSON.parse(segment.slice(2));
    if (segment.startsWith('v:')) return items.filter((item) => isDeepStrictEqual(item, named));
    const keys = named as Members;
    const item = items.find((each) => hasKeys(each, keys));
    // What names the item is part of it, whoever owns that.
    return item === undefined ? [] : [{ ...keys, ...(partOf(item, fields[segment] ?? {}) as Members) }];
  });
}

function hasKeys(item: unknown, keys: Members): boolean {
  return Object.entries(keys).every(([key, value]) => isDeepStrictEqual((item as Members)[key], value));
}

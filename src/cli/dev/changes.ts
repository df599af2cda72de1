import { isDeepStrictEqual } from 'node:util';
import { childrenFieldManager } from '../../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { isAppliedBy, managedFieldsOf, union } from '../../engine/field-set.js';
import type { FieldsV1 } from '../../engine/field-set.js';
import { showValue } from '../../synth/problem.js';
import { fieldChanges } from '../diff/fields.js';
import type { FieldChange } from '../diff/fields.js';
import { shown } from '../diff/redacted.js';

/** Something that has happened to an object between two looks. */
export interface Change {
  readonly what: 'made' | 'changed' | 'gone';
  /** As in `ConfigMap default/hello: .data.greeting "Hello" -> "Hi"`. */
  readonly text: string;
}

/** Custom resources and what is made of them, by what names them. */
export type Objects = ReadonlyMap<string, AnyObject>;

/** Objects by name; of Secrets the metadata alone, as they are watched. */
export function objectsById(objects: readonly AnyObject[]): Objects {
  return new Map(objects.map((object) => [objectId(object), object]));
}

/**
 * What has happened between two looks: of custom resources their spec, of what is made of them the fields that are rendered
 * or were rendered before, whoever has changed them. What the cluster and others add is left out.
 */
export function changesBetween(before: Objects, after: Objects): Change[] {
  const ids = [...new Set([...after.keys(), ...before.keys()])];
  return ids.flatMap((id) => changesOf(before.get(id), after.get(id)));
}

function changesOf(before: AnyObject | undefined, after: AnyObject | undefined): Change[] {
  if (before && after && before.metadata.uid !== after.metadata.uid)
    return [said('made', after, 'made anew')];
  if (before && after) return changedFields(before, after).map((text) => said('changed', after, text));
  if (after) return [said('made', after, 'made')];
  return before ? [said('gone', before, 'gone')] : [];
}

function said(what: Change['what'], object: AnyObject, text: string): Change {
  return { what, text: `${describeRef(refOf(object))}: ${text}` };
}

function changedFields(before: AnyObject, after: AnyObject): string[] {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return [];
  const owner = controllerOf(after) ?? controllerOf(before);
  if (!owner) return fieldChanges(before.spec, after.spec, '.spec').map(changeText);
  const manager = childrenFieldManager(owner.kind);
  // Also of what is dropped, and of what somebody else has taken.
  const fields = union(fieldsOf(before, manager), fieldsOf(after, manager));
  const pair = shown({ before: inFields(before, fields), after: inFields(after, fields) });
  return fieldChanges(pair.before, pair.after).map(changeText);
}

function changeText({ path, ...change }: FieldChange): string {
  if (!('before' in change)) return `${path} is now ${showValue(change.after)}`;
  if (!('after' in change)) return `${path} was ${showValue(change.before)}, and is gone`;
  return `${path} ${showValue(change.before)} -> ${showValue(change.after)}`;
}

/** The fields of an object that a manager has applied; none where it has applied nothing. */
function fieldsOf(object: AnyObject, manager: string): FieldsV1 {
  return managedFieldsOf(object)
    .filter((entry) => isAppliedBy(manager, entry))
    .reduce<FieldsV1>((fields, { fieldsV1 = {} }) => union(fields, fieldsV1), {});
}

/**
 * What an object has in these fields. Whatever somebody else has put beside them is left out, so that two states can be
 * compared by what is rendered alone.
 */
function inFields(object: AnyObject, fields: FieldsV1): AnyObject {
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

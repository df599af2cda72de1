import { childrenFieldManager } from '../../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { union } from '../../engine/field-set.js';
import { showValue } from '../../synth/problem.js';
import { fieldChanges } from '../diff/fields.js';
import type { FieldChange } from '../diff/fields.js';
import { shown } from '../diff/redacted.js';
import { fieldsOf, inFields } from './owned-fields.js';

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

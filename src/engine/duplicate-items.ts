import type { AnyObject } from '../contract/object.js';
import { managedFieldsOf } from './field-set.js';
import type { FieldPath, FieldsV1 } from './field-set.js';

interface Sought {
  /** The names of fields from here on, with `[]` for an item of a list; the last is the field with the value. */
  readonly path: readonly string[];
  readonly value: unknown;
}

/**
 * The items of a keyed list that keep an intent from being stored, because they have a value that one of its own items
 * has: those that the intent doesn't name itself. In lists of lists, only those below items that it does name.
 * @param field as the API server names it, e.g. `spec.ports[1].name`
 */
export function itemsInTheWay(
  live: AnyObject,
  intent: AnyObject,
  field: string,
  value: unknown,
): FieldPath[] {
  const path = field.replaceAll(/\[\d+\]/g, '.[]').split('.');
  const sets = managedFieldsOf(live).map(({ fieldsV1 = {} }) => fieldsV1);
  return search({ path, value }, live, intent, sets);
}

function search(sought: Sought, live: unknown, intent: unknown, sets: readonly FieldsV1[]): FieldPath[] {
  const [name, ...path] = sought.path;
  if (name === undefined) return [];
  if (name === '[]') return searchItems({ ...sought, path }, live, intent, sets);
  const segment = `f:${name}`;
  return below(sets, segment).length === 0
    ? []
    : search({ ...sought, path }, fieldOf(live, name), fieldOf(intent, name), below(sets, segment)).map(
        (found) => [segment, ...found],
      );
}

function searchItems(sought: Sought, live: unknown, intent: unknown, sets: readonly FieldsV1[]): FieldPath[] {
  const segments = new Set(sets.flatMap((set) => Object.keys(set)).filter((name) => name.startsWith('k:')));
  const [field = ''] = sought.path;
  return [...segments].flatMap((segment) => {
    const item = itemOf(live, segment);
    const wanted = itemOf(intent, segment);
    if (sought.path.length === 1)
      return wanted === undefined && fieldOf(item, field) === sought.value ? [[segment]] : [];
    if (wanted === undefined) return [];
    return search(sought, item, wanted, below(sets, segment)).map((found) => [segment, ...found]);
  });
}

function below(sets: readonly FieldsV1[], segment: string): FieldsV1[] {
  return sets.flatMap((set) => set[segment] ?? []);
}

/** The item that a segment such as `k:{"name":"web"}` names. */
function itemOf(list: unknown, segment: string): unknown {
  if (!Array.isArray(list)) return undefined;
  const keys = Object.entries(JSON.parse(segment.slice(2)) as Record<string, unknown>);
  return list.find((item: unknown) => keys.every(([name, key]) => fieldOf(item, name) === key));
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

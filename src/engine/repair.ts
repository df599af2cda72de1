import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Api } from './api.js';
import { ApiError } from './api-error.js';
import { isAppliedBy, managedFieldsOf } from './field-set.js';
import type { FieldPath, FieldsV1, ManagedFieldsEntry } from './field-set.js';
import { withApiVersion, withItemsTaken, withoutOwners } from './managed-fields.js';
import type { IsLeftOver } from './managed-fields.js';
import { refresh } from './refresh.js';
import type { StoreReader } from './cache.js';

/**
 * Puts the bookkeeping of owners right where it keeps an apply from doing what it says. Only for objects that are
 * ours: nothing but `metadata.managedFields` is written, and only as it was seen.
 */
export class Repair {
  constructor(private readonly api: Api) {}

  /**
   * Lets go of what leftovers own beside us, so that what we drop later vanishes. What they own beyond that stays theirs.
   * @param seen the whole object, as the API server returned it
   * @returns whether anything had to be done
   */
  async dropOwners(
    isLeftOver: IsLeftOver,
    step: ApplyStep,
    seen: AnyObject,
    reader: StoreReader,
  ): Promise<boolean> {
    const left = withoutOwners(isLeftOver, seen, step.fieldManager);
    return left !== undefined && this.write(step, seen, left, reader);
  }

  /**
   * After an apply has failed: whether the cause was a record of owners, which has been put right, so that another
   * try is of use.
   *
   * - An item that we no longer name is kept by somebody else's record, and clashes with the one that we name.
   *   https://github.com/kubernetes/kubernetes/issues/118725
   * - What we applied in an earlier version of the API has fields that the present version doesn't know.
   *   https://github.com/fluxcd/flux2/issues/5715
   */
  async afterFailure(step: ApplyStep, error: unknown, reader: StoreReader): Promise<boolean> {
    if (!(error instanceof ApiError)) return false;
    const { duplicateValue, fieldNotInSchema } = error;
    if (!duplicateValue && !fieldNotInSchema) return false;
    const live = await refresh(this.api, step.object, reader);
    if (!live) return false;
    const { fieldManager, object } = step;
    if (duplicateValue) {
      const items = itemsInTheWay(live, object, duplicateValue.field, duplicateValue.value);
      if (items.length === 0) return false;
      return this.write(step, live, withItemsTaken(live, fieldManager, items), reader);
    }
    const own = managedFieldsOf(live).find((entry) => isAppliedBy(fieldManager, entry));
    if (!own || own.apiVersion === object.apiVersion) return false;
    return this.write(step, live, withApiVersion(live, fieldManager, object.apiVersion), reader);
  }

  private async write(
    { object, fieldManager }: ApplyStep,
    { metadata }: AnyObject,
    managedFields: readonly ManagedFieldsEntry[],
    reader: StoreReader,
  ): Promise<true> {
    const key = objectKey(metadata.namespace, metadata.name);
    try {
      const patched = await this.api.patch(
        reader.resourceType(object),
        key,
        [
          { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
          { op: 'replace', path: '/metadata/managedFields', value: managedFields },
        ],
        fieldManager,
      );
      reader.store(object).written(patched, reader.writer);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || ![404, 409, 422].includes(error.code)) throw error;
      await refresh(this.api, object, reader);
      const message = `${describeRef(refOf(object))} changed while its owners were being recorded anew`;
      throw new OperatorError({ reason: 'Conflict', message, retry: 'now', cause: error });
    }
  }
}

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

import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { ApiError } from './api-error.js';
import type { Api } from './api.js';
import { itemsInTheWay } from './duplicate-items.js';
import { isAppliedBy, managedFieldsOf } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import { withApiVersion, withItemsTaken, withoutOwners } from './legacy-managers.js';
import type { IsLeftOver } from './legacy-managers.js';
import { refresh } from './refresh.js';
import type { StoreReader } from './stores.js';

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

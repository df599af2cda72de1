import type { Change } from '../../contract/change.js';
import { describeRef, objectKey, refOf } from '../../contract/object.js';
import type { CollectStep } from '../../contract/plan.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import { deleteObject } from './delete.js';

/**
 * Deletes an object whose owner is only recorded, once that is gone: no garbage collector does.
 *
 * **Guarantees.** The API server is asked for the owner first. The object is deleted only where it serves the type of the owner, and has no
 * object of that name, or one with another UID. A missing right, or a type that isn't served, fails the step and keeps the object.
 */
export const collect: StepHandler<CollectStep> = {
  do: 'collect',

  async carryOut(step, hand) {
    const ref = refOf(step.object);
    try {
      if (await isThere(step, hand)) return { ref, action: 'unchanged' };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Find the owner of ${describeRef(ref)}`) };
    }
    return deleteObject(step.object, hand);
  },

  async preview(step, hand): Promise<Change> {
    return { ref: refOf(step.object), action: (await isThere(step, hand)) ? 'unchanged' : 'deleted' };
  },
};

/** Reports whether the owner of an object is there. @throws ApiError where that can't be known */
async function isThere({ owner }: CollectStep, { api, reader }: Hand): Promise<boolean> {
  try {
    const live = await api.get(reader.resourceType(owner), objectKey(owner.namespace, owner.name));
    return live.metadata.uid === owner.uid;
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) return false;
    throw error;
  }
}

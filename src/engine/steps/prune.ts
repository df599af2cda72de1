import type { ChangeSet } from '../../contract/change.js';
import { describeRef, objectId, refOf } from '../../contract/object.js';
import type { PruneStep } from '../../contract/plan.js';
import { classify } from '../../client/api-error.js';
import type { StepHandler } from '../plan/hand.js';
import { ownerUidOf } from '../../values/projections.js';
import { fightId } from './apply.js';
import { deleteObject } from './delete.js';
import { finishGivingBack } from './owner.js';

/** Maximum number of objects that one pass prunes; then it is another key's turn. */
const MAX_DELETIONS = 100;

/** Deletes what a plan no longer renders. What was taken over from others unawares is given back instead. */
export const prune: StepHandler<PruneStep> = {
  do: 'prune',

  async carryOut({ object }, hand, before) {
    const ref = refOf(object);
    if (isPaced(before)) return { ref, action: 'skipped', skippedFor: 'paced' };
    const id = objectId(object);
    try {
      if (await finishGivingBack(id, hand)) return { ref, action: 'configured' };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Give back ${describeRef(ref)}`) };
    }
    const uid = ownerUidOf(object);
    hand.memory.fights.wasDeleted(fightId({ objectId: id, ...(uid !== undefined && { owner: { uid } }) }));
    return deleteObject(object, hand);
  },

  preview: ({ object }) => Promise.resolve({ ref: refOf(object), action: 'deleted' }),
};

function isPaced(before: ChangeSet): boolean {
  if (before.at(-1)?.skippedFor === 'paced') return true;
  return before.filter(({ action }) => action === 'deleted').length >= MAX_DELETIONS;
}

import { refOf } from '../../contract/object.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import type { RememberStep } from '../../contract/plan.js';
import type { StepHandler } from '../plan/hand.js';
import { writeStatus } from './apply.js';

/**
 * Writes the fields of a status that the rest of the plan was made of.
 *
 * **Guarantees.** Nothing follows from fields that aren't stored: with a barrier behind this step, the plan goes no further where
 * the custom resource has changed since, or has gone.
 */
export const remember: StepHandler<RememberStep> = {
  do: 'remember',

  async carryOut({ object, fieldManager, status }, hand) {
    const target = object as AnyObject & CustomResource;
    const change = await writeStatus({ target, fieldManager, status, isConditional: true }, hand);
    return change.action === 'skipped' ? { ...change, skippedFor: 'changed' } : change;
  },

  // A preview shows what follows from it.
  preview: ({ object }) => Promise.resolve({ ref: refOf(object), action: 'unchanged' }),
};

import { describeRef, keyOf, refOf } from '../../contract/object.js';
import type { HandOverStep } from '../../contract/plan.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { StepHandler } from '../plan/hand.js';
import { asStale, withUid } from './apply.js';
import { refresh } from './delete.js';

/**
 * Applies a field under the manager that it passes to, before its present one lets go of it.
 *
 * **Guarantees.** Nothing is created, and nothing is taken from others. What is remembered of other applies to the same
 * object stays as it is. Where the value has moved since it was read, the plan is made again at once.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 */
export const handOver: StepHandler<HandOverStep> = {
  do: 'handOver',

  async carryOut({ object, fieldManager }, hand) {
    const { api, reader, writer } = hand;
    const ref = refOf(object);
    reader.checkServed(object);
    const store = reader.store(object);
    const key = keyOf(object);
    const known = store.get(key)?.object;
    if (!known || known.metadata.deletionTimestamp) return { ref, action: 'skipped' };
    const options = { fieldManager, force: false };
    try {
      const body = withUid(object, known.metadata.uid);
      const type = reader.resourceType(object);
      const { object: answer } = await store.write(key, writer, async () => api.apply(type, body, options));
      const isSame = answer.metadata.resourceVersion === known.metadata.resourceVersion;
      return { ref, action: isSame ? 'unchanged' : 'configured' };
    } catch (error) {
      const failure = classify(error, `Hand over fields of ${describeRef(ref)}`);
      if (!(error instanceof ApiError) || (!error.conflict && !error.wrongUid)) throw failure;
      // Read, so that the next plan knows its value.
      await refresh(object, hand);
      throw asStale(failure);
    }
  },

  preview: ({ object }) => Promise.resolve({ ref: refOf(object), action: 'skipped' }),
};

import type { Change, ChangeSet } from '../contract/change.js';
import type { DeleteStep } from '../contract/controller.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import { ApiError, classify } from './api-error.js';
import type { Api } from './api.js';
import { refresh } from './refresh.js';
import type { StoreReader } from './cache.js';

/**
 * Reports whether what a plan deletes has to stay for now: an apply has failed that might be of what takes its place, or
 * stops using it. A contested object was applied as it is wanted, and differs by what another writer does to it since.
 */
export function holdsDeletionsBack(applied: ChangeSet): boolean {
  return applied.some(({ action, error }) => action === 'failed' && error?.reason !== 'FieldContested');
}

/**
 * Deletes one object as it was seen. Where it has changed since, nothing is deleted and the plan is made again.
 * A failure is part of the answer; this never rejects.
 */
export async function prune(api: Api, step: DeleteStep, reader: StoreReader): Promise<Change> {
  const { object, foreign, propagation } = step;
  const ref = refOf(object);
  const store = reader.store(object);
  const key = objectKey(object.metadata.namespace, object.metadata.name);
  try {
    const terminating = await api.delete(reader.resourceType(object), object, propagation);
    if (terminating) store.written(terminating);
    else store.gone(key, object.metadata.uid);
    return { ref, action: 'deleted' };
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) {
      store.gone(key, object.metadata.uid);
      // As far as anybody can tell, the first try has got through, and its answer was lost.
      return { ref, action: error.isSecondTry ? 'deleted' : 'unchanged' };
    }
    const failure = classify(error, `Delete ${describeRef(ref)}`);
    // Without it, the next plan would delete the same old version.
    if (failure.retry === 'now') await refresh(api, object, reader).catch(() => undefined);
    if (foreign && error instanceof ApiError && error.code === 409)
      return { ref, action: 'skipped', skippedFor: 'changed' };
    return { ref, action: 'failed', error: failure };
  }
}

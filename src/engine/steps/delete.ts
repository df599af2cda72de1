import type { Change } from '../../contract/change.js';
import { describeRef, keyOf, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Propagation } from '../../client/api.js';
import type { Hand } from '../plan/hand.js';

/**
 * Reads an object that isn't as it was known to be, so that the next try is well founded. Returns it, or nothing if it
 * is gone: then the store lets go of the one that it knew before, and not of a successor that has come meanwhile.
 * @throws when there is no answer
 */
export async function refresh(
  object: Pick<AnyObject, 'apiVersion' | 'kind' | 'metadata'>,
  { api, reader }: Pick<Hand, 'api' | 'reader'>,
): Promise<AnyObject | undefined> {
  const store = reader.store(object);
  const key = keyOf(object);
  const known = store.get(key)?.object.metadata.uid;
  try {
    return await store.read(key, async () => api.get(reader.resourceType(object), key));
  } catch (error) {
    if (!(error instanceof ApiError) || !error.objectIsGone) throw error;
    if (known !== undefined) store.gone(key, known);
    return undefined;
  }
}

/**
 * Deletes one object as it was seen. Where it has changed since, nothing is deleted and the plan is made again.
 * A failure is part of the answer; this never rejects.
 *
 * The API server takes the finalizers `foregroundDeletion` and `orphan` off before it compares the version, and so refuses a version
 * that is unchanged, each time: such an object is deleted by its UID.
 * @see https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
 */
export async function deleteObject(
  object: AnyObject,
  hand: Pick<Hand, 'api' | 'reader'>,
  propagation?: Propagation,
): Promise<Change> {
  const ref = refOf(object);
  const { api, reader } = hand;
  const store = reader.store(object);
  const key = keyOf(object);
  try {
    const terminating = await api.delete(reader.resourceType(object), object, propagation);
    if (terminating) store.written(terminating);
    else store.gone(key, object.metadata.uid);
    return { ref, action: 'deleted' };
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) {
      store.gone(key, object.metadata.uid);
      // As far as can be known, the first try has got through, and its answer was lost.
      return { ref, action: error.isSecondTry ? 'deleted' : 'unchanged' };
    }
    const failure = classify(error, `Delete ${describeRef(ref)}`);
    // Without it, the next plan would delete the same old version.
    const live = failure.retry === 'now' ? await refresh(object, hand).catch(() => undefined) : undefined;
    const { resourceVersion, ...metadata } = object.metadata;
    const isAsSeen =
      live?.metadata.uid === metadata.uid && live?.metadata.resourceVersion === resourceVersion;
    return live && isAsSeen && resourceVersion !== undefined
      ? deleteObject({ ...object, metadata }, hand, propagation)
      : { ref, action: 'failed', error: failure };
  }
}

import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { ApiError } from './api-error.js';
import type { Api } from './api.js';
import type { StoreReader } from './cache.js';

/**
 * Reads an object that isn't as it was known to be, so that the next try is well founded. Returns it, or nothing if
 * it is gone: then the store lets go of the one that it knew before, and not of a successor that has come meanwhile.
 * @throws when there is no answer
 */
export async function refresh(
  api: Api,
  object: Pick<AnyObject, 'apiVersion' | 'kind' | 'metadata'>,
  reader: StoreReader,
): Promise<AnyObject | undefined> {
  const store = reader.store(object);
  const key = objectKey(object.metadata.namespace, object.metadata.name);
  const known = store.get(key)?.object.metadata.uid;
  try {
    return await store.read(key, async () => api.get(reader.resourceType(object), key));
  } catch (error) {
    if (!(error instanceof ApiError) || !error.objectIsGone) throw error;
    if (known !== undefined) store.gone(key, known);
    return undefined;
  }
}

import type { Change } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { controllerOf, describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { ApiError, classify } from './api-error.js';
import type { Api } from './api.js';
import { withUid } from './apply-task.js';
import { refresh } from './refresh.js';
import type { StoreReader } from './stores.js';

/**
 * Applies a field under the manager that it passes to, before its present one lets go of it.
 *
 * **Guarantees.** Nothing is made, and nothing is taken from anybody unless the step says so and its owner
 * controls the object. What is remembered of other applies to the same
 * object stays as it is.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
 * @throws OperatorError with `retry: 'now'` where the value has moved since it was read
 */
export async function handOver(api: Api, step: ApplyStep, reader: StoreReader): Promise<Change['action']> {
  const { object, fieldManager, owner } = step;
  const store = reader.store(object);
  const key = objectKey(object.metadata.namespace, object.metadata.name);
  const known = store.get(key)?.object;
  if (!known || known.metadata.deletionTimestamp) return 'skipped';
  const intent = withUid(object, known.metadata.uid);
  const isOurs = owner !== undefined && controllerOf(known)?.uid === owner.uid;
  const options = { fieldManager, force: step.force === true && isOurs };
  try {
    const { object: answer } = await store.write(key, reader.writer, () =>
      api.apply(reader.resourceType(object), intent, options),
    );
    return answer.metadata.resourceVersion === known.metadata.resourceVersion ? 'unchanged' : 'configured';
  } catch (error) {
    throw await explained(api, object, reader, error);
  }
}

/** What was moved is read, so that the next plan knows its value. */
async function explained(
  api: Api,
  object: AnyObject,
  reader: StoreReader,
  error: unknown,
): Promise<OperatorError> {
  const what = `Hand over fields of ${describeRef(refOf(object))}`;
  const failure = classify(error, what);
  if (!(error instanceof ApiError) || (error.code !== 409 && !error.wrongUid)) return failure;
  try {
    await refresh(api, object, reader);
  } catch (unanswered) {
    return classify(unanswered, what);
  }
  return asStale(failure);
}

/** The view was stale: tried again at once. */
export function asStale({ reason, message, cause }: OperatorError): OperatorError {
  return new OperatorError({ reason, message, cause, retry: 'now' });
}

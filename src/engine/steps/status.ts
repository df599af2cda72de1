import { contentHash } from '../../values/json.js';
import { describeRef, objectId, objectKey, refOf } from '../../contract/object.js';
import type { Change } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import type { AnyObject } from '../../contract/object.js';
import type { StatusWrite } from '../../contract/plan.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Hand } from '../plan/hand.js';
import type { Entry, Store } from '../watch/cache.js';
import { refresh } from './delete.js';
import { holds, ownerKey, stands } from './managed-fields.js';
import type { LastApply } from './memory.js';

/** A wanted status, beside the one that is there. */
interface Comparison {
  readonly key: string;
  readonly store: Store;
  readonly known: Entry | undefined;
  readonly applied: LastApply;
  /** Whether nothing would change. */
  readonly isCurrent: boolean;
}

/**
 * Writes the status of a custom resource where it differs from what is there: by server-side apply, so that conditions of others
 * stay. A failure is part of the answer; this never rejects.
 */
export async function writeStatus(
  { target, fieldManager, status }: StatusWrite,
  hand: Hand,
): Promise<Change> {
  const ref = refOf(target);
  try {
    if (status instanceof OperatorError) throw status;
    return { ref, action: await ensure({ target, fieldManager, status }, hand) };
  } catch (error) {
    return { ref, action: 'failed', error: classify(error, `Write the status of ${describeRef(ref)}`) };
  }
}

/** Returns what writing a status would change, without a request. */
export function previewStatus(write: StatusWrite, hand: Hand): Promise<Change> {
  const action = isStatusCurrent(write, hand) ? 'unchanged' : 'configured';
  return Promise.resolve({ ref: refOf(write.target), action });
}

/** Reports whether a write would find nothing to change. */
export function isStatusCurrent(write: StatusWrite, hand: Hand): boolean {
  return !(write.status instanceof OperatorError) && compare(write, hand).isCurrent;
}

function compare({ target, fieldManager, status }: StatusWrite, { reader, memory }: Hand): Comparison {
  const store = reader.store(target);
  const { namespace, name, uid } = target.metadata;
  const key = objectKey(namespace, name);
  const known = store.get(key);
  const owner = ownerKey(fieldManager, 'status');
  const applied = { hash: contentHash(status), uid, owned: known?.owned.get(owner) };
  const isCurrent =
    known !== undefined &&
    memory.lastApplies.isCurrent(objectId(target), fieldManager, applied, () =>
      stands(known, owner, { status }),
    ) &&
    holds(known, owner, { status: known.object.status }, { status });
  return { key, store, known, applied, isCurrent };
}

async function ensure(write: StatusWrite, hand: Hand): Promise<Change['action']> {
  const { target, fieldManager, status } = write;
  const comparison = compare(write, hand);
  const { known, isCurrent } = comparison;
  // Its successor, if there is one, has a reconcile of its own.
  if (known?.object.metadata.uid !== target.metadata.uid) return 'skipped';
  if (isCurrent) return 'unchanged';
  const { apiVersion, kind, metadata } = target;
  const { namespace, name, uid } = metadata;
  const identity = { ...(namespace && { namespace }), name, ...(uid && { uid }) };
  const body = { apiVersion, kind, metadata: identity, status };
  try {
    await send(body, fieldManager, comparison, hand);
    return 'configured';
  } catch (error) {
    // Deleted meanwhile, or replaced by a namesake; or still the same, which is tried again.
    if (
      error instanceof ApiError &&
      (error.objectIsGone || error.wrongUid || (error.conflict && !error.fieldConflict))
    ) {
      // The watch may have missed it; another reconcile would create children without an owner.
      const live = await refresh(target, hand);
      if (live?.metadata.uid !== uid) return 'skipped';
    }
    throw error;
  }
}

async function send(
  body: AnyObject & { readonly status: object },
  fieldManager: string,
  { key, store, applied }: Comparison,
  { api, reader, writer, memory }: Hand,
): Promise<void> {
  const options = { fieldManager, force: true, subresource: 'status' } as const;
  const type = reader.resourceType(body);
  const { object } = await store.write(key, writer, async () => api.apply(type, body, options));
  const owned = store.ownedOf(object);
  const owner = ownerKey(fieldManager, 'status');
  const isException = !stands({ object, owned }, owner, { status: body.status });
  const last = { ...applied, owned: owned.get(owner) };
  memory.lastApplies.remember(objectId(body), fieldManager, last, isException);
}

import { contentHash } from '../../values/json.js';
import { describeRef, objectId, objectKey, refOf } from '../../contract/object.js';
import type { Action, Change, ChangeSet } from '../../contract/change.js';
import type { StatusStep } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import type { AnyObject } from '../../contract/object.js';
import { describeThrown } from '../../values/origin.js';
import { ApiError, classify } from '../../client/api-error.js';
import type { Api } from '../../client/api.js';
import type { LastApply, LastApplies } from './apply-state.js';
import { refresh } from './delete.js';
import { ownerKey } from './managed-fields.js';
import type { Entry, Store, StoreReader } from '../watch/cache.js';

/** A wanted status, beside the one that is there. */
interface Comparison {
  readonly key: string;
  readonly store: Store;
  readonly known: Entry | undefined;
  readonly applied: LastApply;
  /** Nothing would change. */
  readonly isCurrent: boolean;
}

/**
 * Writes the status of custom resources for one controller: by server-side apply, so that conditions of others stay, and
 * only where it differs from what is there.
 */
export class StatusWriter {
  constructor(
    private readonly api: Api,
    private readonly lastApplies: LastApplies,
  ) {}

  /** Writes one status where that is needed. A failure is part of the answer; this never rejects. */
  async write(step: StatusStep, changes: ChangeSet, reader: StoreReader): Promise<Change> {
    const ref = refOf(step.target);
    try {
      const status = computed(step, changes);
      return { ref, action: status ? await this.ensure(step, status, reader) : 'skipped' };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Write the status of ${describeRef(ref)}`) };
    }
  }

  /** Reports whether a write would find nothing to change. What the kind throws is reported when it is written. */
  isCurrent(step: StatusStep, changes: ChangeSet, reader: StoreReader): boolean {
    try {
      const status = step.status(changes);
      return !status || this.compare(step, status, reader).isCurrent;
    } catch {
      return false;
    }
  }

  private compare({ target, fieldManager }: StatusStep, status: object, reader: StoreReader): Comparison {
    const store = reader.store(target);
    const { namespace, name, uid } = target.metadata;
    const key = objectKey(namespace, name);
    const known = store.get(key);
    const applied = {
      hash: contentHash(status),
      uid,
      owned: known?.owned.get(ownerKey(fieldManager, 'status')),
    };
    const expected = (): string => store.paths.expected({ status }, applied.owned, 'status');
    const isCurrent =
      this.lastApplies.isCurrent(objectId(target), fieldManager, applied, expected) &&
      store.paths.holds({ status: known?.object.status }, { status });
    return { key, store, known, applied, isCurrent };
  }

  private async ensure(step: StatusStep, status: object, reader: StoreReader): Promise<Action> {
    const { target, fieldManager } = step;
    const comparison = this.compare(step, status, reader);
    const { known, isCurrent } = comparison;
    // Its successor, if there is one, has a reconcile of its own.
    if (known?.object.metadata.uid !== target.metadata.uid) return 'skipped';
    if (isCurrent) return 'unchanged';
    const { apiVersion, kind, metadata } = target;
    const { namespace, name, uid } = metadata;
    const identity = { ...(namespace && { namespace }), name, ...(uid && { uid }) };
    const body = { apiVersion, kind, metadata: identity, status };
    try {
      await this.send(body, fieldManager, comparison, reader);
      return 'configured';
    } catch (error) {
      // Deleted meanwhile, or replaced by a namesake; or still the same, which is tried again.
      if (
        error instanceof ApiError &&
        (error.objectIsGone || error.wrongUid || (error.conflict && !error.fieldConflict))
      ) {
        // The watch may have missed it; another reconcile would create children without an owner.
        const live = await refresh(this.api, target, reader);
        if (live?.metadata.uid !== uid) return 'skipped';
      }
      throw error;
    }
  }

  private async send(
    body: AnyObject & { readonly status: object },
    fieldManager: string,
    { key, store, applied }: Comparison,
    reader: StoreReader,
  ): Promise<void> {
    const options = { fieldManager, force: true, subresource: 'status' } as const;
    const type = reader.resourceType(body);
    const { object } = await store.write(key, reader.writer, async () => this.api.apply(type, body, options));
    const owned = store.ownedOf(object).get(ownerKey(fieldManager, 'status'));
    const { status } = body;
    const expected = store.paths.expectedAfter(object, fieldManager, { status }, owned, 'status');
    this.lastApplies.remember(objectId(body), fieldManager, { ...applied, owned }, expected);
  }
}

/** Reports what a kind throws as its bug. */
function computed(step: StatusStep, changes: ChangeSet): object | undefined {
  try {
    return step.status(changes);
  } catch (cause) {
    const message = `The status of ${describeRef(refOf(step.target))} can't be computed: ${describeThrown(cause)}`;
    throw new OperatorError({ reason: 'StatusFailed', message, retry: 'backoff', isBug: true, cause });
  }
}

import type { Action, Change, ChangeSet } from '../contract/change.js';
import type { StatusStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { describeRef, objectId, objectKey, refOf } from '../contract/object.js';
import { describeThrown } from '../contract/origin.js';
import { ApiError, classify } from './api-error.js';
import type { Api, Applied } from './api.js';
import { canonicalJson, ownerKey } from './managed-fields.js';
import { refresh } from './refresh.js';
import type { Settlement, Settlements } from './settlements.js';
import type { Entry, Store, StoreReader } from './cache.js';

/** A status that is wanted, beside the one that is there. */
interface Comparison {
  readonly key: string;
  readonly store: Store;
  readonly known: Entry | undefined;
  readonly settlement: Settlement;
  /** Nothing would change. */
  readonly stands: boolean;
}

/**
 * Writes the status of custom resources: by server-side apply, so that conditions of others stay, and only where it
 * differs from what is there.
 */
export class StatusWriter {
  constructor(
    private readonly api: Api,
    private readonly settlements: Settlements,
  ) {}

  /** Writes one status where that is needed. A failure is part of the answer; this never rejects. */
  async write(step: StatusStep, changes: ChangeSet, reader: StoreReader): Promise<Change> {
    const ref = refOf(step.target);
    try {
      return { ref, action: await this.ensure(step, computed(step, changes), reader) };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Write the status of ${describeRef(ref)}`) };
    }
  }

  /** Whether a write would find nothing to change. What the kind throws is told when it is written. */
  stands(step: StatusStep, changes: ChangeSet, reader: StoreReader): boolean {
    try {
      return this.compare(step, step.status(changes), reader).stands;
    } catch {
      return false;
    }
  }

  private compare({ target, fieldManager }: StatusStep, status: object, reader: StoreReader): Comparison {
    const store = reader.store(target);
    const { namespace, name, uid } = target.metadata;
    const key = objectKey(namespace, name);
    const known = store.get(key);
    const settlement = {
      hash: canonicalJson(status),
      uid,
      owned: known?.owned.get(ownerKey(fieldManager, 'status')),
    };
    const expected = (): string => store.paths.expected({ status }, settlement.owned, 'status');
    const stands =
      this.settlements.stands(objectId(target), fieldManager, settlement, expected) &&
      store.paths.holds({ status: known?.object.status }, { status });
    return { key, store, known, settlement, stands };
  }

  private async ensure(step: StatusStep, status: object, reader: StoreReader): Promise<Action> {
    const { target, fieldManager } = step;
    const { key, store, known, settlement, stands } = this.compare(step, status, reader);
    const { namespace, name, uid } = target.metadata;
    // Its successor, if there is one, has a reconcile of its own.
    if (known?.object.metadata.uid !== uid) return 'skipped';
    if (stands) return 'unchanged';

    const { apiVersion, kind } = target;
    const body = {
      apiVersion,
      kind,
      metadata: { ...(namespace && { namespace }), name, ...(uid && { uid }) },
      status,
    };
    try {
      const options = { fieldManager, force: true, subresource: 'status' } as const;
      const send = async (): Promise<Applied> => this.api.apply(reader.resourceType(target), body, options);
      const applied = await store.write(key, reader.writer, send, 'status');
      const owned = store.ownedOf(applied.object).get(ownerKey(fieldManager, 'status'));
      const expected = store.paths.expected({ status }, owned, 'status');
      this.settlements.remember(objectId(target), fieldManager, { ...settlement, owned }, expected);
      return 'configured';
    } catch (error) {
      // Deleted meanwhile, or replaced by a namesake: there is nobody left to tell.
      if (
        error instanceof ApiError &&
        (error.objectIsGone || error.wrongUid || (error.code === 409 && !error.fieldConflict))
      ) {
        // The watch may have missed it; another reconcile would make children for nobody.
        await refresh(this.api, target, reader);
        return 'skipped';
      }
      throw error;
    }
  }
}

/** What a kind throws is its bug, not an answer of the API server. */
function computed(step: StatusStep, changes: ChangeSet): object {
  try {
    return step.status(changes);
  } catch (cause) {
    const message = `The status of ${describeRef(refOf(step.target))} can't be computed: ${describeThrown(cause)}`;
    throw new OperatorError({ reason: 'StatusFailed', message, retry: 'backoff', isBug: true, cause });
  }
}

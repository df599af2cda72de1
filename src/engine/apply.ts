import { hash } from 'node:crypto';
import type { Action, Change } from '../contract/change.js';
import type { ApplyStep } from '../contract/controller.js';
import { OperatorError } from '../contract/error.js';
import { APPLIED_HASH_ANNOTATION } from '../contract/names.js';
import { describeRef, objectId, objectKey, refOf } from '../contract/object.js';
import type { AnyObject, OwnerReference } from '../contract/object.js';
import { ApiError, classify } from './api-error.js';
import type { Api } from './api.js';
import { canonicalJson, ownerKey } from './managed-fields.js';
import { checkNotTerminating, checkOwnership, isLeftover } from './ownership.js';
import { prune } from './prune.js';
import { refresh } from './refresh.js';
import type { Refusals, Refused } from './refusals.js';
import type { Settlements } from './settlements.js';
import type { Entry } from './store.js';
import type { StoreReader } from './stores.js';

export interface ApplierProps {
  readonly api: Api;
  readonly settlements: Settlements;
  readonly refusals: Refusals;
}

/** One step, and what it needs over and over. */
interface Task {
  readonly step: ApplyStep;
  readonly reader: StoreReader;
  readonly key: string;
  /** Names the object in what is remembered. */
  readonly objectId: string;
  /** What is sent. */
  readonly intent: AnyObject;
  readonly hash: string;
}

/**
 * Brings single objects to what is wanted of them.
 *
 * **Guarantees.** No request is sent for an object whose last apply still stands, also after a restart. A body that
 * the API server has refused for good isn't sent again until it, or the object in the way, changes. What has been
 * deleted isn't brought back by an apply that was under way. An object that belongs to somebody else isn't touched.
 *
 * **Assumptions.** Nobody else applies with our field manager. The type of an owner is among the reader's.
 *
 * **Caveats.** What a deleted namesake of the owner has left behind is deleted and made anew. An object that somebody
 * makes between the last event and our first apply, and whose fields don't contradict ours, is shared with us.
 */
export class Applier {
  constructor(private readonly props: ApplierProps) {}

  /** Applies one object where that is needed. A failure is part of the answer; this never rejects. */
  async apply(step: ApplyStep, reader: StoreReader): Promise<Change> {
    const ref = refOf(step.object);
    try {
      return { ref, action: await this.ensure(taskOf(step, reader)) };
    } catch (error) {
      return { ref, action: 'failed', error: classify(error, `Apply ${describeRef(ref)}`) };
    }
  }

  private async ensure(task: Task): Promise<Action> {
    let known = storeOf(task).get(task.key) ?? (await this.look(task));
    if (known && task.step.owner && isLeftover(known.object, task.step.owner)) {
      known = await this.collect(task, known, task.step.owner);
    }
    if (known) {
      if (task.step.owner) checkOwnership(known.object, task.step.owner);
      checkNotTerminating(known.object);
      if (this.stands(task, known)) return 'unchanged';
    }
    const refusal = this.props.refusals.find(refusalId(task), refused(task, known));
    if (refusal) throw refusal;
    try {
      return await this.send(task, known);
    } catch (error) {
      throw await this.explain(task, error);
    }
  }

  /** While changes aren't delivered, an object that isn't known may have been made by somebody: it is looked up. */
  private async look({ step, reader, key }: Task): Promise<Entry | undefined> {
    const store = reader.store(step.object);
    if (!step.owner || store.followed(step.object.metadata.namespace)) return undefined;
    await refresh(this.props.api, step.object, reader);
    return store.get(key);
  }

  /**
   * Removes what a deleted namesake of the owner has left behind, where the API server confirms that the owner is the
   * one that exists now. The garbage collector would do the same, but never learns of an owner that was replaced
   * while its watch was down. Returns what is still there.
   */
  private async collect(
    { reader, key }: Task,
    { object }: Entry,
    owner: OwnerReference,
  ): Promise<Entry | undefined> {
    const type = reader.resourceType(owner);
    const namespace = type.namespaced ? object.metadata.namespace : undefined;
    const live = await this.props.api.get(type, objectKey(namespace, owner.name));
    if (live.metadata.uid === owner.uid && !object.metadata.deletionTimestamp) {
      const { error } = await prune(this.props.api, { object }, reader);
      if (error) throw error;
    }
    return reader.store(object).get(key);
  }

  /** Whether our last apply was of the same intent, and nobody has touched a field of ours since. */
  private stands(task: Task, { object, owned }: Entry): boolean {
    if (object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] !== task.hash) return false;
    const settlement = {
      hash: task.hash,
      uid: object.metadata.uid,
      owned: owned.get(ownerKey(task.step.fieldManager)),
    };
    return this.props.settlements.stands(
      task.objectId,
      task.step.fieldManager,
      settlement,
      storeOf(task).paths.expected(task.intent),
    );
  }

  private async send(task: Task, known: Entry | undefined): Promise<Action> {
    const { step, reader, intent } = task;
    const store = storeOf(task);
    const { object, created } = await this.props.api.apply(
      reader.resourceType(intent),
      known ? withUid(intent, known.object.metadata.uid) : intent,
      // What isn't known to be ours is never taken by force: somebody may have made it a moment ago.
      { fieldManager: step.fieldManager, force: step.owner !== undefined && known !== undefined },
    );
    store.written(object, reader);
    const owned = store.paths.owned(object).get(ownerKey(step.fieldManager));
    const settlement = { hash: task.hash, uid: object.metadata.uid, owned };
    this.props.settlements.remember(
      task.objectId,
      step.fieldManager,
      settlement,
      store.paths.expected(intent),
    );
    this.props.refusals.forget(refusalId(task));
    if (created) return 'created';
    return object.metadata.resourceVersion === versionOf(known) ? 'unchanged' : 'configured';
  }

  /** What a failure means. One that is for good is remembered, with the object as it is known then. */
  private async explain(task: Task, error: unknown): Promise<Error> {
    const what = `Apply ${describeRef(refOf(task.intent))}`;
    const failure = classify(error, what);
    if (error instanceof ApiError && (error.code === 409 || error.wrongUid)) {
      try {
        const live = await refresh(this.props.api, task.step.object, task.reader);
        if (live && task.step.owner) checkOwnership(live, task.step.owner);
      } catch (conflict) {
        return classify(conflict, what);
      }
      // It is ours after all, so next time it is known, and applied with force.
      if (error.fieldConflict && task.step.owner) return asStale(failure);
    }
    if (failure.retry === 'onChange') {
      const known = storeOf(task).get(task.key);
      this.props.refusals.remember(refusalId(task), refused(task, known), failure);
    }
    return failure;
  }
}

function asStale({ reason, message, cause }: OperatorError): OperatorError {
  return new OperatorError({ reason, message, cause, retry: 'now' });
}

function taskOf(step: ApplyStep, reader: StoreReader): Task {
  const { object } = step;
  const key = objectKey(object.metadata.namespace, object.metadata.name);
  const hashed = hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
  return {
    step,
    reader,
    key,
    objectId: objectId(object),
    intent: withBookkeeping(step, hashed),
    hash: hashed,
  };
}

function refusalId({ step, objectId }: Task): string {
  return `${step.fieldManager} ${objectId}`;
}

function refused({ hash, step }: Task, known: Entry | undefined): Refused {
  const { generation, resourceVersion } = known?.object.metadata ?? {};
  return {
    hash,
    owner: step.owner?.uid,
    version: generation === undefined ? resourceVersion : String(generation),
  };
}

function storeOf({ step, reader }: Task): ReturnType<StoreReader['store']> {
  return reader.store(step.object);
}

function versionOf(entry: Entry | undefined): string | undefined {
  return entry?.object.metadata.resourceVersion;
}

/** The two things that are added to what was rendered: to whom it belongs, and the hash by which it is known again. */
function withBookkeeping({ object, owner }: ApplyStep, hashed: string): AnyObject {
  return {
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { ...object.metadata.annotations, [APPLIED_HASH_ANNOTATION]: hashed },
      ...(owner && { ownerReferences: [...(object.metadata.ownerReferences ?? []), owner] }),
    },
  };
}

/** With its UID in the body, an apply fails where it would otherwise bring a deleted object back. */
function withUid(intent: AnyObject, uid: string | undefined): AnyObject {
  return uid === undefined ? intent : { ...intent, metadata: { ...intent.metadata, uid } };
}

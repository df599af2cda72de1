import { OperatorError } from '../contract/error.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject, OwnerReference } from '../contract/object.js';
import type { Api } from './api.js';
import type { Task } from './apply-task.js';
import { prune } from './prune.js';
import { refresh } from './refresh.js';
import type { Entry } from './store.js';
import type { Vanished } from './vanished.js';

/** Asks whether an owner is still there, in the few cases where a watch may have missed that he isn't. */
export class Owners {
  constructor(
    private readonly api: Api,
    private readonly vanished: Vanished,
  ) {}

  /**
   * Removes what a deleted namesake of the owner has left behind, where the API server confirms that the owner is the
   * one that exists now. The garbage collector would do the same, but never learns of an owner that was replaced
   * while its watch was down. Returns what is still there.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async collect(task: Task, { object }: Entry, owner: OwnerReference): Promise<Entry | undefined> {
    const { reader, store, key } = task;
    const live = await this.read(task, owner);
    if (!live) throw ownerGone(owner);
    if (live.metadata.uid === owner.uid && !object.metadata.deletionTimestamp) {
      const { error } = await prune(this.api, { object }, reader);
      if (error) throw error;
    }
    return store.get(key);
  }

  /**
   * Before an object is made: if it had been there and has gone, that its owner hasn't gone too.
   * @throws OperatorError `OwnerGone`; the store then knows, so that there is nothing left to reconcile
   */
  async check(task: Task, owner: OwnerReference): Promise<void> {
    const { objectId } = task;
    if (!this.vanished.from(objectId, owner)) return;
    const live = await this.read(task, owner);
    this.vanished.forget(objectId);
    if (live?.metadata.uid !== owner.uid) throw ownerGone(owner);
  }

  /** Reads the owner into its store. @throws OperatorError `Conflict` where the plan was made from another generation */
  private async read({ reader, step }: Task, owner: OwnerReference): Promise<AnyObject | undefined> {
    const { apiVersion, kind, name } = owner;
    const { namespace } = step.object.metadata;
    const metadata = reader.resourceType(owner).namespaced && namespace ? { name, namespace } : { name };
    const known = reader.get(owner, objectKey(metadata.namespace, name))?.metadata.generation;
    const live = await refresh(this.api, { apiVersion, kind, metadata }, reader);
    const { uid, generation = known } = live?.metadata ?? {};
    if (uid !== owner.uid || generation === (known ?? generation)) return live;
    const message = `${kind} ${name} is not as it was when the plan was made`;
    throw new OperatorError({ reason: 'Conflict', message, retry: 'now' });
  }
}

function ownerGone({ kind, name }: OwnerReference): OperatorError {
  const message = `${kind} ${name} is gone; its children are left to the garbage collector`;
  return new OperatorError({ reason: 'OwnerGone', message, retry: 'now' });
}

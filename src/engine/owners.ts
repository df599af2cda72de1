import { OperatorError } from '../contract/error.js';
import { objectKey } from '../contract/object.js';
import type { OwnerReference } from '../contract/object.js';
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
   */
  async collect(
    { reader, store, key }: Task,
    { object }: Entry,
    owner: OwnerReference,
  ): Promise<Entry | undefined> {
    const type = reader.resourceType(owner);
    const namespace = type.namespaced ? object.metadata.namespace : undefined;
    const live = await this.api.get(type, objectKey(namespace, owner.name));
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
  async check({ reader, step, objectId }: Task, owner: OwnerReference): Promise<void> {
    if (!this.vanished.from(objectId, owner)) return;
    const { apiVersion, kind, name } = owner;
    const { namespace } = step.object.metadata;
    const metadata = reader.resourceType(owner).namespaced && namespace ? { name, namespace } : { name };
    const live = await refresh(this.api, { apiVersion, kind, metadata }, reader);
    this.vanished.forget(objectId);
    if (live?.metadata.uid === owner.uid) return;
    const message = `${kind} ${name} is gone; its children are left to the garbage collector`;
    throw new OperatorError({ reason: 'OwnerGone', message, retry: 'now' });
  }
}

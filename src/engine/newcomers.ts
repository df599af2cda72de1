import type { AnyObject, OwnerReference } from '../contract/object.js';
import type { Api } from './api.js';
import { withUid } from './apply-task.js';
import type { Task } from './apply-task.js';
import { isAppliedBy, managedFieldsOf, without } from './field-set.js';
import type { ManagedFieldsEntry } from './field-set.js';
import { checkOwnership } from './ownership.js';
import { refresh } from './refresh.js';

/**
 * Gives back what a first apply has taken over: an object that somebody made, and no watch has told of yet, when
 * nothing in it contradicted what was applied.
 *
 * **Guarantees.** What others had set stays as they had set it, and the custom resource isn't among the owners any
 * more. An object that we made ourselves, and whose first answer was lost, stays ours.
 *
 * **Caveats.** An object in which nothing is set, such as a bare ServiceAccount, doesn't tell who has made it. One that
 * has nothing in common with ours isn't told apart from ours in the second in which it was made. A process that ends
 * between the two requests leaves the object as its own.
 */
export class Newcomers {
  /** By object, the UID of what has yet to be given back. */
  private readonly owed = new Map<string, string | undefined>();

  constructor(private readonly api: Api) {}

  /**
   * @param answer to the apply of an object that wasn't known, and was there
   * @throws OperatorError `OwnershipConflict` once it is given back
   */
  async check(task: Task, answer: AnyObject, owner: OwnerReference): Promise<void> {
    if (!isOthers(answer, task.step.fieldManager)) return;
    try {
      // Who hands it over doesn't mind.
      checkOwnership(withoutOwner(answer, owner), owner);
    } catch (conflict) {
      this.owed.set(task.objectId, answer.metadata.uid);
      await this.giveBack(task, answer.metadata.uid);
      throw conflict;
    }
  }

  /** Does what couldn't be done at once, if the object is still there. */
  async settleUp(task: Task): Promise<void> {
    const { step, reader, objectId } = task;
    if (!this.owed.has(objectId)) return;
    const live = await refresh(this.api, step.object, reader);
    if (live && live.metadata.uid === this.owed.get(objectId)) await this.giveBack(task, live.metadata.uid);
    else this.owed.delete(objectId);
  }

  /** An apply that names nothing lets go of all that was applied, and of nothing else. */
  private async giveBack(
    { step, reader, store, key, objectId }: Task,
    uid: string | undefined,
  ): Promise<void> {
    const { apiVersion, kind, metadata } = step.object;
    const { namespace, name } = metadata;
    const nothing = withUid({ apiVersion, kind, metadata: { name, ...(namespace && { namespace }) } }, uid);
    const options = { fieldManager: step.fieldManager, force: false };
    await store.write(key, reader.writer, () =>
      this.api.apply(reader.resourceType(step.object), nothing, options),
    );
    this.owed.delete(objectId);
  }
}

/** Whether somebody else has made an object, going by who has set what in it. */
function isOthers(object: AnyObject, manager: string): boolean {
  const entries = managedFieldsOf(object);
  const own = entries.find((entry) => isAppliedBy(manager, entry));
  return entries.some(
    (entry) =>
      !entry.subresource &&
      entry.manager !== manager &&
      (shares(entry, own) || (isOlderThan(object, own) && setsMoreThanMetadata(entry))),
  );
}

/** Who comes later has to differ to own a field; so he who owns the same one was there before. */
function shares({ fieldsV1 = {} }: ManagedFieldsEntry, own: ManagedFieldsEntry | undefined): boolean {
  return without(fieldsV1, own?.fieldsV1 ?? {}) !== fieldsV1;
}

/** An apply that changes nothing leaves its time as it is. Both are by the API server's clock, in whole seconds. */
function isOlderThan({ metadata }: AnyObject, own: ManagedFieldsEntry | undefined): boolean {
  const { creationTimestamp } = metadata as { readonly creationTimestamp?: string };
  return creationTimestamp !== undefined && own?.time !== undefined && creationTimestamp < own.time;
}

/** Controllers annotate what they come upon. */
function setsMoreThanMetadata({ fieldsV1 = {} }: ManagedFieldsEntry): boolean {
  return Object.keys(fieldsV1).some((segment) => segment !== 'f:metadata');
}

function withoutOwner(object: AnyObject, { uid }: OwnerReference): AnyObject {
  const ownerReferences = object.metadata.ownerReferences?.filter((each) => each.uid !== uid) ?? [];
  return { ...object, metadata: { ...object.metadata, ownerReferences } };
}

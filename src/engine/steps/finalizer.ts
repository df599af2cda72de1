import type { Change, ChangeSet } from '../../contract/change.js';
import { keyOf, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { FinalizerStep } from '../../contract/plan.js';
import { resourceType } from '../../contract/resource.js';
import { classify } from '../../client/api-error.js';
import type { Hand, StepHandler } from '../plan/hand.js';
import { writeMetadata } from './apply.js';

const EVENT = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
const NAMESPACE_GOES = 'NamespaceTerminating';

/**
 * Puts a finalizer on a custom resource, or takes it off.
 *
 * **Guarantees.** The other finalizers stay. Nothing is written where the custom resource has changed since it was read. A finalizer goes
 * only behind steps that had nothing to do, or where its namespace is being deleted, in which nothing can be created any more.
 */
export const finalizer: StepHandler<FinalizerStep> = {
  do: 'finalizer',

  async carryOut(step, hand, before) {
    const { object, name, isPresent } = step;
    const latest = latestOf(object, hand);
    const ref = refOf(object);
    const unchanged: Change = { ref, action: 'unchanged' };
    const { finalizers: present = [] } = latest.metadata;
    if (present.includes(name) === isPresent) return unchanged;
    if (!isPresent && !(await mayGo(step, before, hand))) return unchanged;
    const finalizers = isPresent ? [...present, name] : present.filter((one) => one !== name);
    try {
      await writeMetadata(latest, { finalizers }, step.fieldManager, hand);
      return { ref, action: 'configured' };
    } catch (error) {
      // It has gone meanwhile.
      if (!isPresent && !hand.reader.get(object, keyOf(object))) return unchanged;
      throw error;
    }
  },

  // A preview shows what follows from it.
  preview: ({ object }) => Promise.resolve({ ref: refOf(object), action: 'unchanged' }),
};

/** Returns a custom resource as the steps before have left it: a plan stands while that is of the same generation. */
function latestOf(object: AnyObject, { reader }: Hand): AnyObject {
  const latest = reader.get(object, keyOf(object));
  const { uid, generation } = object.metadata;
  return latest && latest.metadata.uid === uid && latest.metadata.generation === generation ? latest : object;
}

/** Reports whether a finalizer may go, by what came of the steps before it. */
async function mayGo({ object, left }: FinalizerStep, before: ChangeSet, hand: Hand): Promise<boolean> {
  const { namespace, name } = object.metadata;
  const refused = before.filter(({ error }) => error?.reason === NAMESPACE_GOES);
  if (namespace !== undefined && refused.some(({ ref }) => ref.namespace === namespace)) return true;
  if (left === undefined) return before.every(({ action }) => action === 'unchanged' || action === 'drifted');
  return left === 'asked' && namespace !== undefined && isNamespaceGoing(namespace, name, hand);
}

/** Asks the API server whether it would take an object in a namespace: every operator may create events. */
async function isNamespaceGoing(namespace: string, name: string, { api }: Hand): Promise<boolean> {
  const { apiVersion, kind } = EVENT;
  try {
    await api.tryCreate(EVENT, { apiVersion, kind, metadata: { namespace, name } }, 'reconstruct');
    return false;
  } catch (error) {
    return classify(error, `Try ${kind} ${namespace}/${name}`).reason === NAMESPACE_GOES;
  }
}

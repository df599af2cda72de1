import type { ChangeSet } from '../contract/change.js';
import type { Readiness } from '../contract/conditions.js';
import { GIVE_UP_ANNOTATION } from '../contract/names.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { EventStep } from '../contract/plan.js';
import { worstReadiness } from '../values/readiness.js';
import { readinessIn } from './order.js';
import type { LiveResource } from './status.js';

/** Reason of a custom resource whose deletion has work left. */
const DELETING = 'Deleting';

/**
 * Returns what the deletion of a custom resource waits for: what is rendered and isn't ready, by the rules of order, or else what isn't
 * rendered and still there; undefined once nothing is left.
 * @param own objects that were made for it
 * @param isKept reports whether an object stays
 */
export function leftToDelete(
  rendered: readonly AnyObject[],
  own: readonly AnyObject[],
  isKept: (object: AnyObject) => boolean,
): Readiness | undefined {
  const readinessOf = readinessIn(own);
  const progressing = (object: AnyObject, text: string): Readiness => ({
    ...{ phase: 'progressing', reason: DELETING, message: `${describeRef(refOf(object))} ${text}` },
  });
  const all = rendered.map((object) => readinessOf(object) ?? progressing(object, 'has yet to be applied'));
  const worst = worstReadiness(all);
  if (worst.phase !== 'ready') return worst;
  const wanted = new Set(rendered.map(objectId));
  const rest = own.find((object) => !wanted.has(objectId(object)) && !isKept(object));
  return rest && progressing(rest, 'is still there');
}

/** Readiness of a custom resource that goes with the next plan, or after a pause. */
export const NOTHING_LEFT: Readiness = {
  ...{
    phase: 'progressing',
    reason: DELETING,
    message: 'nothing is left to do but to take the finalizer off',
  },
};

/** Returns the readiness of a custom resource that is being deleted. @param readiness of what that waits for */
export function deletingReadiness(cr: LiveResource, { phase, reason, message }: Readiness): Readiness {
  const waits = `Deletion waits: ${message}`;
  if (phase !== 'stalled' && phase !== 'failing')
    return { phase: 'failing', reason: DELETING, message: waits };
  const giveUp = `annotate ${describeRef(refOf(cr))} with ${GIVE_UP_ANNOTATION}=true to delete it without what is left to do`;
  return phase === 'stalled'
    ? { phase, reason, message: `${waits}. Correct that, or ${giveUp}` }
    : { phase, reason: DELETING, message: `${waits}. It is tried again; if that can't succeed, ${giveUp}` };
}

/** Returns the event of work that a namespace which is being deleted doesn't allow; about the namespace, since none can be created in it. */
export function undoneEvent(cr: LiveResource, changes: ChangeSet): EventStep[] {
  const { namespace: name = '' } = cr.metadata;
  const undone = changes.filter(
    ({ ref, error }) => error?.reason === 'NamespaceTerminating' && ref.namespace === name,
  );
  if (undone.length === 0) return [];
  const what = undone.map(({ ref }) => describeRef(ref)).join(', ');
  const note = `${describeRef(refOf(cr))} has gone without ${what}, since nothing can be created in a namespace that is being deleted`;
  const event = { type: 'Warning', reason: 'DeletionIncomplete', action: 'Delete', note } as const;
  return [{ regarding: { apiVersion: 'v1', kind: 'Namespace', name, uid: name }, event }];
}

import type { ConditionProps, Readiness } from '../contract/conditions.js';
import type { Explanation } from '../contract/plan.js';
import { PAUSED_ANNOTATION } from '../contract/names.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, KubernetesObject } from '../contract/object.js';

/** Returns the readiness of a paused custom resource of which an object is missing; undefined where all are there. */
export function pausedReadiness(
  rendered: readonly AnyObject[],
  children: readonly AnyObject[],
): Readiness | undefined {
  const present = new Set(children.map(objectId));
  const missing = rendered.find((object) => !present.has(objectId(object)));
  if (!missing) return undefined;
  const message = `${describeRef(refOf(missing))} is missing, and is not created during a pause`;
  return { phase: 'progressing', reason: 'Paused', message };
}

/** Returns a readiness with the pause as its reason, which `kubectl get` shows. */
export function asPaused({ phase, reason, message }: Readiness): Readiness {
  return { phase, reason: 'Paused', message: reason === 'Paused' ? message : `Paused; ${message}` };
}

type Observed = CustomResource<unknown, { readonly observedGeneration?: number }>;

/** Returns the condition of a pause, with the generation that waits for its end. */
export function pausedCondition(cr: Observed): ConditionProps {
  const { generation } = cr.metadata;
  const waiting = generation === observedGenerationOf(cr) ? '' : `; generation ${generation} waits`;
  const message = `Nothing but this status is written${waiting}; remove the annotation ${PAUSED_ANNOTATION} to go on`;
  return { type: 'Paused', status: 'True', reason: 'Paused', message };
}

/** Returns what `apply` and `diff` print of a paused custom resource. */
export function pausedExplanation(cr: KubernetesObject): Explanation {
  const summary = `is paused: its objects stay as they are; remove the annotation ${PAUSED_ANNOTATION} to go on`;
  return { of: refOf(cr), summary, differs: false };
}

/** Returns a custom resource as it would be after its pause; undefined where it isn't paused. */
export function unpaused<T extends AnyObject>(cr: T): T | undefined {
  const { [PAUSED_ANNOTATION]: paused, ...annotations } = cr.metadata.annotations ?? {};
  return paused === 'true' ? { ...cr, metadata: { ...cr.metadata, annotations } } : undefined;
}

/** Returns the generation that was carried out last; the schema's default of -1 means none. */
export function observedGenerationOf({ status }: Observed): number | undefined {
  const { observedGeneration = -1 } = status ?? {};
  return observedGeneration < 0 ? undefined : observedGeneration;
}

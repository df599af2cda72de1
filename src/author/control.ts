import type { ConditionProps, Readiness } from '../contract/conditions.js';
import { DRIFT_MODES } from '../contract/controller.js';
import type { DriftMode, Explanation } from '../contract/controller.js';
import { oneOf } from './definition.js';
import { OperatorError } from '../contract/error.js';
import { ANNOTATIONS, DRIFT_ANNOTATION, PAUSED_ANNOTATION, ROTATE_ANNOTATION } from '../contract/names.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, KubernetesObject } from '../contract/object.js';

/** Requests that the annotations of a custom resource make. */
export interface Control {
  /** @default false */
  readonly isPaused?: boolean;
  /** @default - as for all custom resources */
  readonly drift?: DriftMode;
}

/** Maximum number of characters of a text that asks for a rotation: it is kept in the Secret and in a condition. */
const MAX_ROTATE = 256;

type Annotations = NonNullable<AnyObject['metadata']['annotations']>;

/** @throws OperatorError `InvalidAnnotation` */
export function controlOf(annotations: Annotations): Control {
  const isOurs = (name: string): boolean => name.startsWith('reconstruct.kosmos.io/');
  const unknown = Object.keys(annotations).find((name) => isOurs(name) && !ANNOTATIONS.includes(name));
  // Ignored, a misspelt `paused` would let an operator write during a pause.
  if (unknown !== undefined)
    throw invalid(unknown, `there is no such annotation; ${oneOf(unknown, ANNOTATIONS)} Rename it`);
  const { length } = annotations[ROTATE_ANNOTATION] ?? '';
  if (length > MAX_ROTATE)
    throw invalid(ROTATE_ANNOTATION, `it has ${length} characters; write at most ${MAX_ROTATE}`);
  const drift = annotated(annotations, DRIFT_ANNOTATION, DRIFT_MODES);
  const isPaused = annotated(annotations, PAUSED_ANNOTATION, ['true', 'false']) === 'true';
  return { isPaused, ...(drift && { drift }) };
}

function annotated<T extends string>(
  annotations: Annotations,
  name: string,
  known: readonly T[],
): T | undefined {
  const value = annotations[name];
  if (value === undefined) return undefined;
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  throw invalid(name, `${JSON.stringify(value)} is none of ${known.join(', ')}; write one of them`);
}

function invalid(name: string, what: string): OperatorError {
  const path = ['metadata', 'annotations', name];
  const message = `metadata.annotations[${JSON.stringify(name)}]: ${what}, or remove the annotation. Nothing is written until then`;
  return new OperatorError({ reason: 'InvalidAnnotation', path, message });
}

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

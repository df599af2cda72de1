import { DRIFT_MODES } from '../contract/plan.js';
import type { DriftMode } from '../contract/plan.js';
import { OperatorError } from '../contract/error.js';
import {
  ADOPT_BY_ANNOTATION,
  APPLIED_HASH_ANNOTATION,
  COMPOSED_ANNOTATION,
  CREATED_ANNOTATION,
  DRIFT_ANNOTATION,
  GENERATED_ANNOTATION,
  GIVE_UP_ANNOTATION,
  isHashAnnotation,
  isOwnAnnotation,
  PAUSED_ANNOTATION,
  RELEASE_ANNOTATION,
  ROTATE_ANNOTATION,
} from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import { oneOf } from './suggest.js';

/** Requests that the annotations of a custom resource make. */
export interface Control {
  /** @default false */
  readonly isPaused?: boolean;
  /** @default - as for all custom resources */
  readonly drift?: DriftMode;
  /** Build whose update it takes, or `always`. @default - none */
  readonly release?: string;
}

/** Maximum number of characters of a text that asks for a rotation: it is kept in the Secret and in a condition. */
const MAX_ROTATE = 256;

/** The annotations of this project that have a fixed name. */
const ANNOTATIONS: readonly string[] = [
  ...[APPLIED_HASH_ANNOTATION, ADOPT_BY_ANNOTATION, GENERATED_ANNOTATION, COMPOSED_ANNOTATION],
  CREATED_ANNOTATION,
  ...[PAUSED_ANNOTATION, DRIFT_ANNOTATION, ROTATE_ANNOTATION, GIVE_UP_ANNOTATION, RELEASE_ANNOTATION],
];

type Annotations = NonNullable<AnyObject['metadata']['annotations']>;

/** @throws OperatorError `InvalidAnnotation` */
export function controlOf(annotations: Annotations): Control {
  const unknown = Object.keys(annotations).find(
    (name) => isOwnAnnotation(name) && !isHashAnnotation(name) && !ANNOTATIONS.includes(name),
  );
  // Ignored, a misspelt `paused` would let an operator write during a pause.
  if (unknown !== undefined)
    throw invalid(unknown, `there is no such annotation; ${oneOf(unknown, ANNOTATIONS)} Rename it`);
  const { length } = annotations[ROTATE_ANNOTATION] ?? '';
  if (length > MAX_ROTATE)
    throw invalid(ROTATE_ANNOTATION, `it has ${length} characters; write at most ${MAX_ROTATE}`);
  const drift = annotated(annotations, DRIFT_ANNOTATION, DRIFT_MODES);
  const isPaused = annotated(annotations, PAUSED_ANNOTATION, ['true', 'false']) === 'true';
  annotated(annotations, GIVE_UP_ANNOTATION, ['true', 'false']);
  const release = annotations[RELEASE_ANNOTATION];
  if (release !== undefined && !/^(always|[0-9a-f]{8})$/.test(release))
    throw invalid(
      RELEASE_ANNOTATION,
      `${JSON.stringify(release)} is no build; write the one that the condition UpdatePending names, or always`,
    );
  return { isPaused, ...(drift && { drift }), ...(release !== undefined && { release }) };
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

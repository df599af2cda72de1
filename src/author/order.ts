import type { Wait } from '../contract/change.js';
import type { Condition, ConditionProps, Readiness } from '../contract/conditions.js';
import type { Rendered } from '../contract/kind.js';
import { recordOf } from '../contract/names.js';
import { contentHash } from '../values/json.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, ObjectRef } from '../contract/object.js';
import { dependencyReadiness } from './readiness.js';

type Dependencies = NonNullable<Rendered['dependencies']>;

/**
 * Returns what a rendered object waits for: the first of its dependencies that isn't ready in its present rendering. One that
 * has been applied in its present rendering waits for nothing, so that its drift is corrected whatever becomes of the others.
 */
export function waitOf(
  object: AnyObject,
  dependencies: Dependencies,
  readinessOf: ReadinessOf,
): Wait | undefined {
  const before = dependencies.get(object);
  if (!before || readinessOf(object)) return undefined;
  for (const dependency of before) {
    const readiness = readinessOf(dependency);
    if (readiness?.phase === 'ready') continue;
    const ref = refOf(dependency);
    const message = `${describeRef(ref)} has yet to be applied`;
    return { ref, readiness: readiness ?? { phase: 'progressing', reason: 'NotApplied', message } };
  }
  return undefined;
}

/** Returns the readiness of a rendered object; undefined where it isn't live as it is rendered, or doesn't stay. */
export type ReadinessOf = (rendered: AnyObject) => Readiness | undefined;

/** Returns the readiness of what is rendered, worked out once for each object. @param live the children as they are */
export function readinessIn(live: readonly AnyObject[]): ReadinessOf {
  const children = new Map(live.map((child) => [objectId(child), child]));
  const known = new Map<AnyObject, Readiness | undefined>();
  return (rendered) => {
    if (known.has(rendered)) return known.get(rendered);
    const found = children.get(objectId(rendered));
    const isPresent = found && recordOf(found)?.hash === contentHash(rendered);
    const stays = isPresent && found.metadata.deletionTimestamp === undefined;
    const readiness = stays ? dependencyReadiness(found) : undefined;
    known.set(rendered, readiness);
    return readiness;
  };
}

/** Says what of a rendering waits for what. */
export function waitText(ref: ObjectRef, { readiness }: Wait): string {
  return `${describeRef(ref)} waits: ${readiness.message}`;
}

/** Waiting that takes longer needs a person. */
const TIMEOUT_MILLISECONDS = 600_000;

const WAITING = 'Waiting';

/** Waiting of a custom resource, as its status reports it. */
export interface Waiting {
  readonly readiness: Readiness;
  /** Since when it waits, by its transition. */
  readonly condition: ConditionProps;
  /** When the readiness becomes another. */
  readonly requeueAt?: Date;
}

type WithConditions = CustomResource<unknown, { readonly conditions?: readonly Partial<Condition>[] }>;

/** Returns the waiting of a custom resource of which something waits; of none, nothing. */
export function waitingOf(
  cr: WithConditions,
  dependencies: Dependencies,
  live: readonly AnyObject[],
  now: Date,
): Waiting | undefined {
  const readinessOf = readinessIn(live);
  const waits = [...dependencies.keys()].flatMap((object) => {
    const wait = waitOf(object, dependencies, readinessOf);
    return wait ? [{ ref: refOf(object), wait }] : [];
  });
  const [first] = waits;
  if (!first) return undefined;
  const message = waitText(first.ref, first.wait);
  const reason = 'WaitingForDependency';
  const condition = { type: WAITING, status: 'True', reason, message } as const;
  const isIn = (phase: Readiness['phase']) => waits.find(({ wait }) => wait.readiness.phase === phase);
  const failed = isIn('stalled') ?? isIn('failing');
  if (failed) {
    const { readiness } = failed.wait;
    const why = `${readiness.message}; ${describeRef(failed.ref)} waits for it`;
    return { readiness: { ...readiness, message: why }, condition };
  }
  const before = cr.status?.conditions?.find(({ type }) => type === WAITING);
  // Who may write the status may write any time.
  const written = Date.parse(before?.lastTransitionTime ?? '');
  const since = written <= now.getTime() ? written : now.getTime();
  const until = since + TIMEOUT_MILLISECONDS;
  if (now.getTime() >= until) {
    const late = `${describeRef(first.ref)} waits for more than ten minutes: ${first.wait.readiness.message}`;
    return { readiness: { phase: 'failing', reason: 'DependencyTimeout', message: late }, condition };
  }
  return { readiness: { phase: 'progressing', reason, message }, condition, requeueAt: new Date(until) };
}

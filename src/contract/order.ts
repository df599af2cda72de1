import type { Wait } from './change.js';
import type { Condition, ConditionProps, Readiness } from './conditions.js';
import type { Rendered } from './kind.js';
import { recordOf } from './names.js';
import { contentHash, describeRef, objectId, refOf } from './object.js';
import type { AnyObject, CustomResource, ObjectRef } from './object.js';
import { dependencyReadiness } from './readiness.js';

type Dependencies = NonNullable<Rendered['dependencies']>;

/**
 * Returns what a rendered object waits for: the first of its dependencies that isn't ready in its present rendering. One that
 * has been applied in its present rendering waits for nothing, so that its drift is corrected whatever becomes of the others.
 * @param live the children as they are
 */
export function waitOf(
  object: AnyObject,
  dependencies: Dependencies,
  live: readonly AnyObject[],
): Wait | undefined {
  const before = dependencies.get(object);
  if (!before || presentOf(object, live)) return undefined;
  for (const dependency of before) {
    const ref = refOf(dependency);
    const present = presentOf(dependency, live);
    const message = `${describeRef(ref)} has yet to be applied`;
    const readiness: Readiness = present
      ? dependencyReadiness(present)
      : { phase: 'progressing', reason: 'NotApplied', message };
    if (readiness.phase !== 'ready') return { ref, readiness };
  }
  return undefined;
}

/** Returns the live object where it is the rendered one, and stays. */
function presentOf(rendered: AnyObject, live: readonly AnyObject[]): AnyObject | undefined {
  const found = live.find((child) => objectId(child) === objectId(rendered));
  const isPresent = found && recordOf(found)?.hash === contentHash(rendered);
  return isPresent && found.metadata.deletionTimestamp === undefined ? found : undefined;
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
  const waits = [...dependencies.keys()].flatMap((object) => {
    const wait = waitOf(object, dependencies, live);
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
  const since =
    before?.lastTransitionTime === undefined ? now.getTime() : Date.parse(before.lastTransitionTime);
  const until = since + TIMEOUT_MILLISECONDS;
  if (now.getTime() >= until) {
    const late = `${describeRef(first.ref)} waits for more than ten minutes: ${first.wait.readiness.message}`;
    return { readiness: { phase: 'failing', reason: 'DependencyTimeout', message: late }, condition };
  }
  return { readiness: { phase: 'progressing', reason, message }, condition, requeueAt: new Date(until) };
}

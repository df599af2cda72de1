import type { Wait } from '../contract/change.js';
import type { ConditionProps, Readiness } from '../contract/conditions.js';
import type { Rendered } from '../contract/kind.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, ObjectRef } from '../contract/object.js';
import { presentReadiness, waitOf } from '../values/readiness.js';
import type { ReadinessOf } from '../values/readiness.js';
import type { LiveResource } from './status.js';

type Dependencies = NonNullable<Rendered['dependencies']>;

/** Returns the readiness of what is rendered, worked out once for each object. @param live the children as they are */
export function readinessIn(live: readonly AnyObject[]): ReadinessOf {
  const children = new Map(live.map((child) => [objectId(child), child]));
  const known = new Map<AnyObject, Readiness | undefined>();
  return (rendered) => {
    if (known.has(rendered)) return known.get(rendered);
    const found = children.get(objectId(rendered));
    const readiness = found && presentReadiness(rendered, found);
    known.set(rendered, readiness);
    return readiness;
  };
}

/** Says what of a rendering waits for what. */
export function waitText(ref: ObjectRef, { readiness }: Wait): string {
  return `${describeRef(ref)} waits: ${readiness.message}`;
}

/** Time after which waiting needs a person. */
const TIMEOUT_MILLISECONDS = 600_000;

const WAITING = 'Waiting';

/** Waiting of a custom resource, as its status reports it. */
export interface Waiting {
  readonly readiness: Readiness;
  /** Since when it waits, by its transition. */
  readonly condition: ConditionProps;
  /** Time at which the readiness becomes another. */
  readonly requeueAt?: Date;
}

/** Returns the waiting of a custom resource of which something waits; of none, nothing. */
export function waitingOf(
  cr: LiveResource,
  dependencies: Dependencies,
  live: readonly AnyObject[],
  now: Date,
): Waiting | undefined {
  const readinessOf = readinessIn(live);
  const waits = [...dependencies].flatMap(([object, before]) => {
    const wait = waitOf(object, before, readinessOf);
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

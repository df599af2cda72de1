import { UPDATE_PENDING } from '../contract/change.js';
import type { Condition, ConditionProps, Readiness } from '../contract/conditions.js';
import type { Rollout } from '../contract/kind.js';
import { describeRef, keyOf, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { EventProps } from '../contract/plan.js';
import type { LiveResource } from './status.js';

/** Reason of `UpdatePending` while a custom resource that was ready before isn't yet, as the present build renders it. */
const UPDATING = 'Updating';

/** Time beyond which one that should have been judged by a plan is waited for no longer, as where its namespace isn't looked after any more. */
const GRACE_MILLISECONDS = 10_000;

/** Returns custom resources, with the objects that were applied for them. */
export type ListFunction = () => Iterable<readonly [LiveResource, readonly AnyObject[]]>;

/** A custom resource of the present build that isn't ready. */
interface Underway {
  readonly uid: string;
  readonly wasReady: boolean;
  readonly since: number;
  /** Whether it is known to be by this rollout that it changed. @default false */
  readonly isTaken?: boolean;
  /** Whether its time was over with its last plan: others wait for it no longer. @default false */
  readonly isLate?: boolean;
}

/** Outcome of a plan that wasn't held. */
interface Outcome {
  /** Whether the present build has applied any of it. */
  readonly isOfBuild: boolean;
  readonly isReady: boolean;
  readonly readiness: Readiness;
  readonly now: Date;
}

/** Parts of a conclusion. */
interface Paced {
  readonly condition?: ConditionProps;
  readonly event?: EventProps;
  readonly requeueAt?: Date;
  /** Whether others may be updated in its place. */
  readonly isOver?: boolean;
}

/** Rollout of a build from custom resource to custom resource: how many are under way, and whether it goes on. */
export class PacedRollout {
  /** Custom resources of the present build that are not ready, by key. */
  private readonly underway = new Map<string, Underway>();
  /** Custom resources that have been ready with it, as they were under way: one that is not ready later has no more time than it had. */
  private readonly settled = new Map<string, Underway>();
  private isCounted = false;

  constructor(
    private readonly kind: string,
    private readonly rollout: Rollout,
  ) {}

  /**
   * Reports whether a custom resource is updated now, since few enough are under way.
   * @param unsettled returns those that may be under way when a process begins
   */
  admits(cr: LiveResource, build: string, now: Date, unsettled: () => Iterable<LiveResource>): boolean {
    if (this.rollout.stateOf(this.kind, build)?.isStopped) return false;
    if (!this.isCounted)
      for (const other of unsettled())
        if (!this.underway.has(keyOf(other)))
          this.underway.set(keyOf(other), startedUpdate(other, build, now));
    this.isCounted = true;
    const key = keyOf(cr);
    if (this.underway.has(key)) return true;
    if (this.free(now) <= 0) return false;
    this.underway.set(key, { ...startedUpdate(cr, build, now), isTaken: true });
    return true;
  }

  /** @param isAnyHeld whether there is anything left to stop */
  conclude(cr: LiveResource, build: string, outcome: Outcome, isAnyHeld: boolean): Paced {
    const { isOfBuild, isReady, readiness, now } = outcome;
    const key = keyOf(cr);
    const before = this.underway.get(key);
    if (!(isOfBuild || before)) return { isOver: false };
    const started = startedUpdate(cr, build, now);
    const [under, settled] = [before, this.settled.get(key)].map((one) =>
      one?.uid === started.uid ? one : undefined,
    );
    if (isReady) {
      this.settled.set(key, under ?? settled ?? started);
      return { isOver: this.underway.delete(key) };
    }
    const wasReady = started.wasReady && settled?.wasReady !== false;
    const one = under ?? { ...started, wasReady, ...(settled && { since: settled.since }) };
    const { readyMilliseconds } = this.rollout;
    const state = this.rollout.stateOf(this.kind, build);
    const isOfRollout = one.isTaken === true || isAnyHeld;
    // Not where a person has let it go on all the same.
    const counts = one.wasReady && isOfRollout && one.since > (state?.resumedAt ?? -Infinity);
    const until = one.since + readyMilliseconds;
    const isLate = now.getTime() >= until;
    // It was ready in time: what has become of it since isn't by its update.
    if (isLate && settled && !under) return { isOver: false };
    this.underway.set(key, { ...one, isLate });
    const note = `${describeRef(refOf(cr))} was ready before, and isn't ${readyMilliseconds / 1_000} s after its update: ${readiness.reason}: ${readiness.message}`;
    const stops = isLate && counts && !state?.isStopped;
    if (stops) this.rollout.stop(this.kind, build, note);
    return {
      ...(counts && { condition: updating(build, one.since) }),
      ...(stops && { event: { type: 'Warning', reason: 'RolloutStopped', action: 'Apply', note } }),
      ...(isLate ? { isOver: !stops } : { requeueAt: new Date(until) }),
    };
  }

  /** Reports whether a custom resource was under way, which ends. */
  end(key: string): boolean {
    this.settled.delete(key);
    return this.underway.delete(key);
  }

  /** Returns how many more may be updated. One that takes longer is waited for no more, as it has stopped the rollout, or wasn't ready before; nor one that is new. */
  free(now: Date): number {
    const { atOnce, readyMilliseconds } = this.rollout;
    const from = now.getTime() - readyMilliseconds - GRACE_MILLISECONDS;
    let free = atOnce;
    for (const { since, isLate, isTaken, wasReady } of this.underway.values())
      if ((isTaken || wasReady) && !isLate && since > from && --free <= 0) return 0;
    return free;
  }

  forget(): void {
    this.underway.clear();
    this.settled.clear();
    this.isCounted = false;
  }
}

/** Returns the update of a custom resource as it begins, or as it has begun before this process. */
function startedUpdate(cr: LiveResource, build: string, now: Date): Underway {
  const { uid = '' } = cr.metadata;
  const said = cr.status?.conditions?.find(
    ({ reason, message }) => reason === UPDATING && message?.startsWith(openingOf(build)),
  );
  const since = Date.parse(said?.message?.slice(openingOf(build).length).split(',')[0] ?? '');
  const isTaken = said !== undefined;
  return { uid, wasReady: isTaken || isReady(cr), since: isNaN(since) ? now.getTime() : since, isTaken };
}

function openingOf(build: string): string {
  return `Build ${build} since `;
}

function updating(build: string, since: number): ConditionProps {
  const message = `${openingOf(build)}${new Date(since).toISOString()}, and not ready again yet`;
  return { type: UPDATE_PENDING, status: 'False', reason: UPDATING, message };
}

function isReady({ metadata, status }: LiveResource): boolean {
  const ready: Partial<Condition> | undefined = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' && status?.observedGeneration === metadata.generation;
}

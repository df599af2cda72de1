import { UPDATE_PENDING } from '../contract/change.js';
import type { Condition, ConditionProps, Readiness } from '../contract/conditions.js';
import type { Rollout } from '../contract/kind.js';
import { describeRef, keyOf, refOf } from '../contract/object.js';
import type { EventProps } from '../contract/plan.js';
import type { LiveResource } from './status.js';

/** Reason of `UpdatePending` while a custom resource that was ready before isn't yet, as the present build renders it. */
const UPDATING = 'Updating';
/** Message of the same: the build, and when the update began. */
const SINCE = /^Build (\S+) since (\d{4}-[\d-]+T[\d:.]+Z),/;

/** Time beyond which one that should have been judged by a plan is waited for no longer, as where what it refers to stays unknown. */
const GRACE_MILLISECONDS = 10_000;

/** Consequences of a plan for an update. */
export interface Concluded {
  readonly condition?: ConditionProps | undefined;
  readonly event?: EventProps | undefined;
  readonly requeueAt?: Date | undefined;
  /** Keys of others that may be updated now. */
  readonly wakes?: readonly string[];
}

/** A custom resource of the present build that isn't ready. */
interface Underway {
  readonly wasReady: boolean;
  readonly since: number;
  /** Whether it is known to be by this rollout that it changed. */
  readonly isTaken: boolean;
  /** Whether this process has made its first child. @default false */
  readonly isNew?: boolean;
  /** Whether others wait for it: not for a new one, nor for one that was edited after the process began and wasn't ready before. */
  readonly isWaitedFor: boolean;
  /** Whether its time was over with its last plan: others wait for it no longer. @default false */
  readonly isLate?: boolean;
}

/** State of a custom resource after a plan that wasn't held. */
interface Applied {
  /** Whether the present build has applied any of it. */
  readonly isOfBuild: boolean;
  /** Whether it had no child before. */
  readonly isNew: boolean;
  /** Whether nothing of the plan failed or waits. */
  readonly isWhole: boolean;
  /** Whether the plan has changed anything, beside corrections of drift. */
  readonly isChanged: boolean;
  readonly isReady: boolean;
  readonly readiness: Readiness;
  /** Whether others are held, so that there is anything left to stop. */
  readonly isAnyHeld: boolean;
  readonly now: Date;
}

/** Rollout of a build from custom resource to custom resource: how many are under way, and whether it goes on. */
export class PacedRollout {
  /** Custom resources of the present build that are not ready, by key. */
  private readonly underway = new Map<string, Underway>();
  /** Updates that have become ready, by key, so that a later failure isn't given a new deadline. */
  private readonly settled = new Map<string, Underway>();
  /** Time at which those were counted that may be under way when a process begins. */
  private countedAt: number | undefined;

  constructor(
    private readonly kind: string,
    private readonly build: string,
    private readonly rollout: Rollout,
  ) {}

  /**
   * Reports whether a custom resource is updated now, since few enough are under way.
   * @param begun returns those that may be under way when a process begins: until their own plans say so, they aren't ready
   */
  admits(cr: LiveResource, now: Date, begun: () => readonly LiveResource[]): boolean {
    if (this.state()?.isStopped) return false;
    if (this.countedAt === undefined) this.count(now, begun());
    const key = keyOf(cr);
    if (this.underway.has(key)) return true;
    if (this.free(now) === 0) return false;
    this.underway.set(key, { ...this.underwayOf(cr, now), isTaken: true, isWaitedFor: true });
    return true;
  }

  conclude(cr: LiveResource, applied: Applied): Concluded {
    const { isOfBuild, isNew, isWhole, isChanged, isReady, readiness, isAnyHeld, now } = applied;
    const key = keyOf(cr);
    const under = this.underway.get(key);
    // Nothing of it was to be changed.
    if (!isOfBuild && isWhole) this.underway.delete(key);
    if (!isOfBuild && (isWhole || !under)) return {};
    const started = this.underwayOf(cr, now);
    const settled = this.settled.get(key);
    if (isReady) {
      this.settled.set(key, under ?? settled ?? started);
      this.underway.delete(key);
      return {};
    }
    const wasReady = started.wasReady && settled?.wasReady !== false;
    const isWaitedFor = started.isTaken || wasReady;
    const known = under ?? {
      ...started,
      isNew,
      wasReady,
      isWaitedFor,
      ...(settled && { since: settled.since }),
    };
    // Before others were counted, this may be the rest of what an earlier process has begun.
    const isTaken = known.isTaken || (isChanged && this.countedAt === undefined);
    const one = { ...known, isTaken };
    const { readyMilliseconds } = this.rollout;
    const until = one.since + readyMilliseconds;
    const isLate = now.getTime() >= until;
    // It was ready in time: what has become of it since isn't by its update.
    if (isLate && settled && !under) return {};
    this.underway.set(key, { ...one, isLate });
    const { isStopped = false, resumedAt = -Infinity } = this.state() ?? {};
    // Not where a person has let it go on all the same.
    const counts = one.wasReady && (one.isTaken || isAnyHeld) && one.since > resumedAt;
    const said = counts ? { condition: this.updating(one.since) } : {};
    if (!isLate) return { ...said, requeueAt: new Date(until) };
    if (!counts || isStopped) return said;
    const note = `${describeRef(refOf(cr))} was ready before, and isn't ${readyMilliseconds / 1_000} s after its update: ${readiness.reason}: ${readiness.message}`;
    this.rollout.stop(this.kind, this.build, note);
    return { ...said, event: { type: 'Warning', reason: 'RolloutStopped', action: 'Apply', note } };
  }

  end(key: string): void {
    this.settled.delete(key);
    this.underway.delete(key);
  }

  /** Returns how many more may be updated. Those whose time is over, and new ones, aren't waited for. */
  free(now: Date): number {
    if (this.state()?.isStopped) return 0;
    return Math.max(0, this.rollout.atOnce - this.endsOfWaits(now).length);
  }

  /** Returns the time at which the next may be updated at the latest, if nothing else ends a wait before; nothing where none is waited for. */
  freeAt(now: Date): number | undefined {
    const ends = this.state()?.isStopped ? [] : this.endsOfWaits(now);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }

  /** Returns the times at which those that others wait for are waited for no more. */
  private endsOfWaits(now: Date): number[] {
    const { countedAt = 0, rollout } = this;
    const { readyMilliseconds } = rollout;
    return [...this.underway.values()].flatMap(({ since, isLate, isWaitedFor }) => {
      // Its own plan says that its time is over, also where an earlier process has noted no stop.
      const end = Math.max(since + readyMilliseconds, countedAt) + GRACE_MILLISECONDS;
      return isWaitedFor && !isLate && end > now.getTime() ? [end] : [];
    });
  }

  /** Has others wait for all that may be under way when a process begins: what an earlier one has updated may not have been said. */
  private count(now: Date, begun: readonly LiveResource[]): void {
    this.countedAt = now.getTime();
    for (const cr of begun)
      if (!this.underway.has(keyOf(cr))) this.underway.set(keyOf(cr), this.underwayOf(cr, now));
    for (const [key, one] of this.underway) this.underway.set(key, { ...one, isWaitedFor: !one.isNew });
  }

  private state(): ReturnType<Rollout['stateOf']> {
    return this.rollout.stateOf(this.kind, this.build);
  }

  /** Returns the update of a custom resource as it begins, or as it has begun before this process. */
  private underwayOf({ metadata, status }: LiveResource, now: Date): Underway {
    const conditions: readonly Partial<Condition>[] = status?.conditions ?? [];
    const said = conditions.find(({ reason }) => reason === UPDATING);
    const [, build, since = ''] = SINCE.exec(said?.message ?? '') ?? [];
    if (build === this.build)
      return { wasReady: true, since: Date.parse(since), isTaken: true, isWaitedFor: true };
    const ready = conditions.find(({ type }) => type === 'Ready');
    const wasReady = ready?.status === 'True' && status?.observedGeneration === metadata.generation;
    return { wasReady, since: now.getTime(), isTaken: false, isWaitedFor: wasReady };
  }

  private updating(since: number): ConditionProps {
    const message = `Build ${this.build} since ${new Date(since).toISOString()}, and not ready again yet`;
    return { type: UPDATE_PENDING, status: 'False', reason: UPDATING, message };
  }
}

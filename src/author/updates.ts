import { UPDATE_PENDING } from '../contract/change.js';
import type { Action, ChangeSet, PendingChange } from '../contract/change.js';
import type { ConditionProps, Readiness } from '../contract/conditions.js';
import type { Upgrades } from '../contract/kind.js';
import { RELEASE_ANNOTATION } from '../contract/names.js';
import { describeRef, keyOf, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { AppliedBuild } from '../contract/plan.js';
import { recordOf } from '../values/projections.js';
import { PacedRollout } from './rollout.js';
import type { Concluded } from './rollout.js';
import { observedGenerationOf } from './status.js';
import type { LiveResource } from './status.js';

/** Reason while an edit has yet to be carried out whole: it isn't held. */
const UNFINISHED = 'Unfinished';

/** Build that is recorded where one was recorded before, and updates aren't held any more. */
export const NO_BUILD = '-';

/** Number of changes that the condition names. */
const MAX_NAMED = 10;

/** Maximum number of children of one custom resource that are remembered: its user may make up more. */
const MAX_SEEN = 1_000;

/** Time between two looks at what would change: a build that changes everything isn't to burden the API server. */
const LOOK_MILLISECONDS = 20;
/** Time after which a look is repeated in which something couldn't be found out. */
const LOOK_AGAIN_MILLISECONDS = 300_000;

/** A custom resource, and what a plan would make of it. */
export interface Judged {
  readonly cr: LiveResource;
  /** Build that it takes, or `always`. @default - none */
  readonly release?: string | undefined;
  /** Objects that were applied for it, also of former types. */
  readonly own: readonly AnyObject[];
  /** Hash of what would be changed. @default - nothing would */
  readonly rendering?: string | undefined;
  readonly now: Date;
  /** Returns all custom resources of the kind, with their objects. */
  readonly list: () => readonly (readonly [LiveResource, readonly AnyObject[]])[];
}

/** Treatment of one custom resource by one plan. */
export interface Update {
  /** Whether what would change stays as it is. */
  readonly isHeld: boolean;
  /** Whether what would change has to be found out. */
  readonly isNews: boolean;
  /** Returns what follows from the plan. */
  readonly conclude: (changes: ChangeSet, readiness: Readiness) => Concluded;
}

/** Custom resource whose update is held. */
interface Held {
  readonly rendering: string;
  /** Ids of children that were there: one that goes is made again. */
  readonly seen: ReadonlySet<string>;
  condition: ConditionProps | undefined;
  /** Time at which what would change is found out. */
  lookAt: number | undefined;
}

/**
 * Updates of the custom resources of one kind by another build of it; see docs/decisions/0050-held-updates.md.
 *
 * **Guarantees.** What is held is worked out from what is there, so another process holds the same: an edit was carried out, and the child
 * that was applied last isn't of the present build. What this process has found to be as the present build renders it isn't held.
 */
export class Updates {
  private build: string | undefined;
  private term = -1;
  private readonly uids = new Map<string, string>();
  /** Keys of those that are as the present build renders them. */
  private readonly current = new Set<string>();
  private readonly held = new Map<string, Held>();
  private rollout: PacedRollout | undefined;
  private nextLook = 0;

  constructor(
    private readonly kind: string,
    private readonly upgrades: Upgrades,
  ) {}

  /** Returns the present build. What was known in another term, or of another build, is forgotten. */
  present(): string | undefined {
    const { kind, upgrades } = this;
    const [build, term] = [upgrades.build(kind), upgrades.term()];
    if (build === this.build && term === this.term) return build;
    this.build = build;
    this.term = term;
    this.current.clear();
    this.held.clear();
    const { rollout } = upgrades;
    this.rollout = rollout && build !== undefined ? new PacedRollout(kind, build, rollout) : undefined;
    return build;
  }

  /** Returns how an update is treated; nothing where none is held. */
  judge(judged: Judged): Update | undefined {
    const build = this.present();
    if (build === undefined) return undefined;
    const { cr, release, own, rendering, now, list } = judged;
    const key = keyOf(cr);
    const { uid = '' } = cr.metadata;
    // Another custom resource had this name before.
    if ((this.uids.get(key) ?? uid) !== uid) this.forget(key, now);
    this.uids.set(key, uid);
    if (rendering === undefined) this.current.add(key);
    const isNew = !this.held.has(key) && !isAnyApplied(own);
    const isBegun = (one: LiveResource, objects: readonly AnyObject[]): boolean =>
      isOpen(one) || carries(objects, build);
    const begun = (): LiveResource[] =>
      list().flatMap(([one, objects]) =>
        !this.current.has(keyOf(one)) && isAnyApplied(objects) && isBegun(one, objects) ? [one] : [],
      );
    const isApplied =
      rendering === undefined ||
      [build, 'always'].includes(release ?? '') ||
      isNew ||
      this.current.has(key) ||
      isBegun(cr, own) ||
      this.rollout?.admits(cr, now, begun) === true;
    if (isApplied) {
      this.held.delete(key);
      const conclude: Update['conclude'] = (...outcome) => this.concludeApplied(judged, build, ...outcome);
      return { isHeld: false, isNews: false, conclude };
    }
    const held = this.look(judged, build, rendering);
    return {
      isHeld: true,
      isNews: held.lookAt !== undefined && held.lookAt <= now.getTime(),
      conclude: (changes) => this.concludeHeld(judged, build, held, changes),
    };
  }

  /** Reports whether an object that is missing was there while its custom resource was held. */
  wasThere(key: string, object: AnyObject): boolean {
    return this.held.get(key)?.seen.has(objectId(object)) === true;
  }

  /** Forgets a custom resource that has gone, or is going. Returns the keys that may be updated in its place. */
  forget(key: string, now: Date): readonly string[] {
    this.uids.delete(key);
    this.current.delete(key);
    return this.leave(key, now);
  }

  /**
   * Returns what follows where nothing is applied at all: no other waits for it.
   * @param isLeft whether that is as it should be, as in a pause or on deletion
   */
  notApplied(cr: LiveResource, isLeft: boolean, now: Date): Concluded {
    const build = this.present();
    if (build === undefined) return {};
    const condition = !isLeft && isOpen(cr) ? unfinished(cr, build) : standing(cr);
    return { condition, wakes: this.leave(keyOf(cr), now) };
  }

  private leave(key: string, now: Date): readonly string[] {
    this.held.delete(key);
    this.rollout?.end(key);
    return this.next(now);
  }

  private look({ cr, own, now }: Judged, build: string, rendering: string): Held {
    const key = keyOf(cr);
    const before = this.held.get(key);
    const seen = new Set([...own.map(objectId), ...(before?.seen ?? [])]);
    let { condition, lookAt } = before ?? {};
    if (before?.rendering !== rendering) {
      condition = standing(cr);
      // After a start, what was said of the same rendering stands.
      const isSaid = condition?.status === 'True' && isOf(condition.message, build, rendering);
      const next = Math.max(this.nextLook, now.getTime());
      // One whose rendering changes keeps its turn, or it would have others wait for many.
      const turn = Math.min(lookAt ?? next, next);
      if (!isSaid && turn === next) this.nextLook = turn + LOOK_MILLISECONDS;
      lookAt = isSaid ? undefined : turn;
    }
    const held = { rendering, seen: new Set([...seen].slice(0, MAX_SEEN)), condition, lookAt };
    this.held.set(key, held);
    return held;
  }

  private concludeHeld({ cr, now }: Judged, build: string, held: Held, changes: ChangeSet): Concluded {
    const key = keyOf(cr);
    const created = changes.filter(({ action }) => action === 'created').map(({ ref }) => describeRef(ref));
    const note = `${created.join(', ')} was missing, and is made again as build ${build} renders it; all else stays as it is until the update is released`;
    const event = { type: 'Normal', reason: 'CreatedByNewBuild', action: 'Apply', note } as const;
    const pending = changes.find((change) => change.pending)?.pending;
    if (pending) {
      const isUnsure = pending.some(({ isUnsure }) => isUnsure);
      held.condition = pendingCondition(build, held.rendering, pending);
      held.lookAt = isUnsure ? now.getTime() + LOOK_AGAIN_MILLISECONDS : undefined;
      // Nothing would change, which a hash doesn't say where defaults are written out.
      if (pending.length === 0 && this.held.delete(key)) this.current.add(key);
    }
    const { condition, lookAt } = held;
    // A place may fall free without a plan that would say so.
    const times = [lookAt, this.rollout?.freeAt(now)].filter((at) => at !== undefined && at > now.getTime());
    return {
      condition,
      event: created.length > 0 ? event : undefined,
      requeueAt: times.length > 0 ? new Date(Math.min(...(times as number[]))) : undefined,
    };
  }

  private concludeApplied(
    { cr, own, now }: Judged,
    build: string,
    changes: ChangeSet,
    readiness: Readiness,
  ): Concluded {
    const key = keyOf(cr);
    const isWhole = !changes.some(({ action }) => action === 'failed' || action === 'skipped');
    const isWritten = changes.some(({ action }) => !UNWRITTEN.includes(action));
    // What was found to be of the present build stays that: what fails now follows from something else.
    if (isWhole) this.current.add(key);
    const edit = !isWhole && isOpen(cr) && { condition: unfinished(cr, build) };
    const paced = this.rollout?.conclude(cr, {
      isOfBuild: isWritten || carries(own, build),
      isNew: !isAnyApplied(own),
      ...{ isWhole, isChanged: changes.some(({ action }) => CHANGED.includes(action)) },
      isReady: isWhole && !isWritten && readiness.phase === 'ready' && own.every(isObserved),
      ...{ readiness, now, isAnyHeld: this.held.size > 0 },
    });
    return { ...paced, ...edit, ...(paced && { wakes: this.next(now) }) };
  }

  /** Returns the keys that are held and may be updated now. */
  private next(now: Date): readonly string[] {
    return [...this.held.keys()].slice(0, this.rollout?.free(now) ?? 0);
  }
}

/** Message of what is held: the build, and what it would change. */
export const HELD = /^Build ([0-9a-f]{8}): (.*?)(?:\. Held until .*)?$/s;

/** Returns the condition of what would change; nothing where nothing would. */
function pendingCondition(
  build: string,
  rendering: string,
  pending: readonly PendingChange[],
): ConditionProps | undefined {
  const [worst] = pending;
  if (!worst) return undefined;
  const texts = pending.slice(0, MAX_NAMED).map(({ text }) => text);
  const others = pending.length - texts.length;
  const message = `${openingOf(build)}${texts.join('; ')}${others > 0 ? `; and ${others} more` : ''}. Held until the custom resource is edited or annotated with ${RELEASE_ANNOTATION}: ${build}; what is deleted meanwhile is made again by this build${endingOf(rendering)}`;
  return { type: UPDATE_PENDING, status: 'True', reason: worst.reason, message };
}

/** Actions that make of an object what is rendered, and not what it was. */
const CHANGED: readonly Action[] = ['created', 'configured', 'recreated', 'deleted'];
/** Actions after which an object is as it was. */
const UNWRITTEN: readonly Action[] = ['unchanged', 'drifted', 'failed', 'skipped'];

function pendingOf({ status }: LiveResource) {
  return status?.conditions?.find(({ type }) => type === UPDATE_PENDING);
}

/** Returns the condition as it stands, until more is known. */
export function standing(cr: LiveResource): ConditionProps | undefined {
  const { status, reason = '', message = '' } = pendingOf(cr) ?? {};
  return status && { type: UPDATE_PENDING, status, reason, message };
}

/** Reports whether an edit has yet to be carried out whole. */
function isOpen(cr: LiveResource): boolean {
  const { generation } = cr.metadata;
  if (generation === undefined || observedGenerationOf(cr) !== generation) return true;
  const said = pendingOf(cr);
  return said?.status === 'False' && said.reason === UNFINISHED && said.observedGeneration === generation;
}

function unfinished({ metadata: { generation } }: LiveResource, build: string): ConditionProps {
  const message = `Build ${build} has yet to carry out generation ${String(generation)} whole`;
  return { type: UPDATE_PENDING, status: 'False', reason: UNFINISHED, message };
}

/** Reports whether what is said is of a build, and of what it renders. */
function isOf(message: string, build: string, rendering: string): boolean {
  return message.startsWith(openingOf(build)) && message.endsWith(endingOf(rendering));
}

function openingOf(build: string): string {
  return `Build ${build}: `;
}

function endingOf(rendering: string): string {
  return ` (rendering ${rendering.slice(0, 8)})`;
}

/** Reports whether the child that was applied last was by a build: then the custom resource has that, if not yet whole. */
function carries(own: readonly AnyObject[], build: string): boolean {
  let latest: AppliedBuild | undefined;
  for (const object of own) {
    const applied = recordOf(object)?.build;
    if (applied && applied.at > (latest?.at ?? 0)) latest = applied;
  }
  return latest?.name === build;
}

/** Reports whether the operator has applied anything for a custom resource. */
function isAnyApplied(own: readonly AnyObject[]): boolean {
  return own.some((object) => recordOf(object) !== undefined);
}

/** Reports whether the status of a child is of its present generation, as far as it says of which. */
function isObserved({ metadata, status }: AnyObject): boolean {
  const { observedGeneration } = (status ?? {}) as { readonly observedGeneration?: number };
  return observedGeneration === undefined || observedGeneration === metadata.generation;
}

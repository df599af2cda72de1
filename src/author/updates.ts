import { UPDATE_PENDING } from '../contract/change.js';
import type { Action, ChangeSet, PendingChange } from '../contract/change.js';
import type { ConditionProps, Readiness } from '../contract/conditions.js';
import type { Upgrades } from '../contract/kind.js';
import { RELEASE_ANNOTATION } from '../contract/names.js';
import { describeRef, keyOf, objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { AppliedBuild, EventProps } from '../contract/plan.js';
import type { Control } from '../values/control.js';
import { recordOf } from '../values/projections.js';
import { PacedRollout } from './rollout.js';
import type { ListFunction } from './rollout.js';
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

/** Treatment of one custom resource by one plan. */
export interface Update {
  readonly build: string;
  /** Whether its children stay as they are. */
  readonly isHeld: boolean;
  /** Time at which what would change is found out. @default - now, if at all */
  readonly lookAt?: Date;
  /** Whether what would change has to be found out. */
  readonly isNews: boolean;
}

/** A custom resource, and what a plan would make of it. */
export interface Judged {
  readonly cr: LiveResource;
  readonly control: Control;
  /** Objects that were applied for it, also of former types. */
  readonly own: readonly AnyObject[];
  /** Hash of what would be applied and deleted. */
  readonly rendering: string;
  /** Whether nothing would change. */
  readonly isSame: boolean;
  readonly now: Date;
  /** Returns all custom resources of the kind, with their objects. */
  readonly list: ListFunction;
}

/** A custom resource whose update is held. */
interface Held {
  readonly uid: string;
  readonly rendering: string;
  readonly condition?: ConditionProps;
  readonly lookAt?: Date;
  /** Ids of children that were there: one that goes is made again. */
  readonly seen: ReadonlySet<string>;
}

/** Parts of a conclusion. */
interface Concluded {
  readonly condition?: ConditionProps;
  readonly event?: EventProps | undefined;
  readonly requeueAt?: Date;
  /** Keys that may be updated now. */
  readonly wakes?: readonly string[];
}

/** Outcome of a plan. */
interface Outcome {
  readonly own: readonly AnyObject[];
  readonly changes: ChangeSet;
  readonly readiness: Readiness;
  readonly now: Date;
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
  /** UIDs of those that are as the present build renders them, by key. */
  private readonly current = new Map<string, string>();
  private readonly held = new Map<string, Held>();
  private readonly rollout?: PacedRollout;
  private nextLook = 0;

  constructor(
    private readonly kind: string,
    private readonly upgrades: Upgrades,
  ) {
    if (upgrades.rollout) this.rollout = new PacedRollout(kind, upgrades.rollout);
  }

  /** Returns how an update is treated; nothing where none is held. */
  judge(judged: Judged): Update | undefined {
    const build = this.present();
    if (build === undefined) return undefined;
    const { cr, control, own, isSame, now, list } = judged;
    const key = keyOf(cr);
    if (isSame) this.current.set(key, cr.metadata.uid ?? '');
    const isNew = !this.held.has(key) && own.every((object) => recordOf(object) === undefined);
    const isReleased = control.release === 'always' || control.release === build;
    const isApplied =
      isReleased ||
      isNew ||
      !this.isUnedited(cr, build, own) ||
      this.rollout?.admits(cr, build, now, () => this.unsettled(build, list)) === true;
    if (!isApplied) return { build, isHeld: true, ...this.look(judged, build) };
    this.held.delete(key);
    return { build, isHeld: false, isNews: false };
  }

  /** Reports whether an object that is missing was there while its custom resource was held. */
  wasThere(key: string, object: AnyObject): boolean {
    return this.held.get(key)?.seen.has(objectId(object)) === true;
  }

  /** Forgets a custom resource that has gone, or is going. Returns the keys that may be updated in its place. */
  forget(key: string, now: Date): readonly string[] {
    this.current.delete(key);
    const wasHeld = this.held.delete(key);
    return this.rollout?.end(key) === true || wasHeld ? this.next(now) : [];
  }

  /**
   * Returns what follows where nothing is applied at all: no other waits for it.
   * @param isLeft whether that is as it should be, as in a pause or on deletion
   */
  notApplied(cr: LiveResource, isLeft: boolean, now: Date): Concluded {
    const build = this.present();
    if (build === undefined) return {};
    const wakes = this.forget(keyOf(cr), now);
    return { ...(!isLeft && isOpen(cr) ? unfinished(cr, build) : this.standing(cr)), wakes };
  }

  /** Returns the condition as it stands, until more is known. */
  standing(cr: LiveResource): Concluded {
    const { type, status, reason = '', message = '' } = pendingOf(cr) ?? {};
    return type && status ? { condition: { type, status, reason, message } } : {};
  }

  /** Returns what follows from a plan. */
  conclude(cr: LiveResource, update: Update, came: Outcome): Concluded {
    return update.isHeld ? this.concludeHeld(cr, update, came) : this.concludeApplied(cr, update, came);
  }

  /** Reports whether nothing shows that a custom resource is to be changed: no edit, and nothing that the present build has applied. */
  private isUnedited(cr: LiveResource, build: string, own: readonly AnyObject[]): boolean {
    return !isOpen(cr) && this.current.get(keyOf(cr)) !== cr.metadata.uid && !carries(own, build);
  }

  /** Yields those that may be applied in part: until their own plans say so, they aren't ready. */
  private *unsettled(build: string, list: ListFunction): Generator<LiveResource> {
    for (const [cr, own] of list())
      if (!this.current.has(keyOf(cr)) && !this.isUnedited(cr, build, own)) yield cr;
  }

  private look({ cr, own, rendering, now }: Judged, build: string): Pick<Update, 'isNews' | 'lookAt'> {
    const key = keyOf(cr);
    const { uid = '' } = cr.metadata;
    const at = now.getTime();
    const before = this.held.get(key);
    const known = before?.uid === uid && before.rendering === rendering ? before : undefined;
    const seen = new Set([...own.map(objectId), ...(before?.uid === uid ? before.seen : [])]);
    const { condition } = known ?? this.standing(cr);
    const isDue = known?.lookAt !== undefined && known.lookAt.getTime() <= at;
    // After a start, what was said of the same rendering stands.
    const isSaid = condition?.status === 'True' && isOf(condition.message, build, rendering);
    const next = Math.max(this.nextLook, at);
    // One whose rendering changes keeps its turn, or it would have others wait for many.
    const due = before?.uid === uid ? before.lookAt?.getTime() : undefined;
    const turn = isDue || isSaid ? at : (known?.lookAt?.getTime() ?? Math.min(due ?? next, next));
    if (!known && !isSaid && turn === next) this.nextLook = turn + LOOK_MILLISECONDS;
    const lookAt = new Date(turn);
    this.held.set(key, {
      ...{ uid, rendering, seen: new Set([...seen].slice(0, MAX_SEEN)) },
      ...(isSaid && { condition }),
      ...(isSaid ? known?.lookAt && { lookAt: known.lookAt } : { lookAt }),
    });
    if (isSaid && !isDue) return { isNews: false, ...(known?.lookAt && { lookAt: known.lookAt }) };
    return turn <= at ? { isNews: true } : { isNews: false, lookAt };
  }

  private concludeHeld(cr: LiveResource, { build, lookAt }: Update, { changes, now }: Outcome): Concluded {
    const key = keyOf(cr);
    const known = this.held.get(key);
    const came = changes.filter(({ action }) => action === 'created').map(({ ref }) => describeRef(ref));
    const note = `${came.join(', ')} was missing, and is made again as build ${build} renders it; all else stays as it is until the update is released`;
    const event =
      came.length > 0 && ({ type: 'Normal', reason: 'CreatedByNewBuild', action: 'Apply', note } as const);
    const more = { ...(event && { event }), ...(lookAt && { requeueAt: lookAt }) };
    const pending = changes.find((change) => change.pending)?.pending;
    if (!known || !pending) {
      // Less is left to change.
      if (known && came.length > 0) this.held.set(key, { ...known, lookAt: now });
      return { ...this.standing(cr), ...(known?.condition && { condition: known.condition }), ...more };
    }
    if (pending.length === 0) {
      this.held.delete(key);
      this.current.set(key, known.uid);
      return more;
    }
    const texts = pending.slice(0, MAX_NAMED).map(({ text }) => text);
    const others = pending.length - texts.length;
    const isUnsure = pending.some(({ isUnsure }) => isUnsure);
    const [{ reason }] = pending as [PendingChange];
    const message = `${openingOf(build)}${texts.join('; ')}${others > 0 ? `; and ${others} more` : ''}. Held until the custom resource is edited or annotated with ${RELEASE_ANNOTATION}: ${build}; what is deleted meanwhile is made again by this build${endingOf(known.rendering)}`;
    const condition = { type: UPDATE_PENDING, status: 'True', reason, message } as const;
    const again = isUnsure && new Date(now.getTime() + LOOK_AGAIN_MILLISECONDS);
    const { lookAt: _, ...rest } = known;
    this.held.set(key, { ...rest, condition, ...(again && { lookAt: again }) });
    return { ...more, ...(again && { requeueAt: again }), condition };
  }

  private concludeApplied(cr: LiveResource, { build }: Update, came: Outcome): Concluded {
    const { own, changes, readiness, now } = came;
    const key = keyOf(cr);
    const isWhole = !changes.some(({ action }) => action === 'failed' || action === 'skipped');
    const isWritten = changes.some(({ action }) => !UNWRITTEN.includes(action));
    if (isWhole) this.current.set(key, cr.metadata.uid ?? '');
    else this.current.delete(key);
    const edit = !isWhole && isOpen(cr) ? unfinished(cr, build) : {};
    const isReady = isWhole && !isWritten && readiness.phase === 'ready' && own.every(isObserved);
    const isOfBuild = isWritten || carries(own, build);
    const paced = this.rollout?.conclude(
      cr,
      build,
      { isOfBuild, isReady, readiness, now },
      this.held.size > 0,
    );
    if (!paced) return edit;
    const { isOver, ...said } = paced;
    return { ...said, ...edit, ...(isOver && { wakes: this.next(now) }) };
  }

  /** Returns the keys that are held and may be updated now. */
  private next(now: Date): readonly string[] {
    return [...this.held.keys()].slice(0, this.rollout?.free(now) ?? 0);
  }

  /** Returns the present build. What was known in another term, or of another build, is forgotten. */
  private present(): string | undefined {
    const build = this.upgrades.build(this.kind);
    const term = this.upgrades.term();
    if (build === this.build && term === this.term) return build;
    this.build = build;
    this.term = term;
    this.current.clear();
    this.held.clear();
    this.rollout?.forget();
    return build;
  }
}

/** Message of what is held: the build, and what it would change. */
export const HELD = /^Build ([0-9a-f]{8}): (.*?)(?:\. Held until .*)?$/s;

/** Actions after which an object is as it was. */
const UNWRITTEN: readonly Action[] = ['unchanged', 'drifted', 'failed', 'skipped'];

function pendingOf({ status }: LiveResource) {
  return status?.conditions?.find(({ type }) => type === UPDATE_PENDING);
}

/** Reports whether an edit has yet to be carried out whole. */
function isOpen(cr: LiveResource): boolean {
  const { generation } = cr.metadata;
  if (generation === undefined || observedGenerationOf(cr) !== generation) return true;
  const said = pendingOf(cr);
  return said?.status === 'False' && said.reason === UNFINISHED && said.observedGeneration === generation;
}

function unfinished({ metadata: { generation } }: LiveResource, build: string): Concluded {
  const message = `Build ${build} has yet to carry out generation ${String(generation)} whole`;
  return { condition: { type: UPDATE_PENDING, status: 'False', reason: UNFINISHED, message } };
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

/** Reports whether the status of a child is of its present generation, as far as it says of which. */
function isObserved({ metadata, status }: AnyObject): boolean {
  const { observedGeneration } = (status ?? {}) as { readonly observedGeneration?: number };
  return observedGeneration === undefined || observedGeneration === metadata.generation;
}

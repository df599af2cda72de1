import { OperatorError } from '../contract/error.js';
import type { Rendered, RenderedType } from '../contract/kind.js';
import { describeRef, objectId } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { wasCreatedAs } from '../values/created.js';
import { contentHash } from '../values/json.js';
import type { IsCurrent } from '../values/projections.js';

/** Maximum numbers of renderings without an edit in between, after which a custom resource counts as not settling. */
interface Limits {
  /** Renderings that had been there before: it swings. */
  readonly returns: number;
  /** Renderings of any sort: each is another one, as where it counts. A large rollout makes some dozens. */
  readonly changes: number;
}

const MAX_RENDERINGS: Limits = { returns: 20, changes: 300 };
/** Maximum numbers while one rendering is held: nothing is written then, so others change what it reads. */
const MAX_WHILE_HELD: Limits = { returns: 3, changes: 50 };
/** Maximum numbers after others have ended the first hold: it is held once more, since by now it may follow its own effects. */
const MAX_BY_OTHERS: Limits = { returns: Infinity, changes: 4_000 };
/** Time without a change after which counting begins again. */
const CALM_MILLISECONDS = 600_000;
/** Time without a change while a rendering is held, at least, that shows that its own effects changed what it reads. */
const MIN_SURE_MILLISECONDS = 10_000;
/** Number of mean times between the changes before that such a pause takes: what others change rarely goes on in it. */
const SURE_CHANGES = 3;
/** Time without a change after which a rendering is held no longer; twice as long each time, up to an hour. */
const HELD_MILLISECONDS = 60_000;
const HELD_AGAIN_MILLISECONDS = 2 * HELD_MILLISECONDS;
const MAX_HELD_MILLISECONDS = 3_600_000;

/** Rendering to be applied. */
export interface SteadyRendering {
  readonly rendered: Rendered;
  /** Error to report, once it is sure, and the time to look again. @default - the rendering is the latest */
  readonly held?: { readonly error?: OperatorError; readonly until: Date };
}

/** A rendering that is applied in place of later ones. */
interface Held {
  readonly rendered: Rendered;
  readonly error: OperatorError;
  readonly sureMilliseconds: number;
  /** Whether it was reported: then it is, until the hold ends. */
  isSure: boolean;
}

/**
 * Renderings of a custom resource that differ by what its children and its references say alone. Where they don't settle, what the
 * construct reads follows from what it renders, or others keep changing it. So one rendering is held: nothing is written then, and
 * what changes all the same is changed by others.
 */
export class Course {
  private changes = 0;
  private returns = 0;
  private changedAt: number;
  private readonly seen: Set<string>;

  /**
   * @param last hashes of the objects of the latest rendering
   * @param calmMilliseconds pause in the changes that ends it
   * @param holdMilliseconds pause that ends the next hold
   */
  constructor(
    private last: readonly string[],
    private readonly since: number,
    private readonly limits = MAX_RENDERINGS,
    private readonly calmMilliseconds = CALM_MILLISECONDS,
    private readonly holdMilliseconds = HELD_MILLISECONDS,
    private readonly held?: Held,
  ) {
    this.changedAt = since;
    this.seen = new Set([last.join()]);
  }

  /** Whether one rendering is applied in place of later ones. */
  get isHeld(): boolean {
    return this.held !== undefined;
  }

  /** Returns the course after another rendering. */
  next(cr: CustomResource, rendered: Rendered, at: number): Course {
    const { held, holdMilliseconds } = this;
    const hashes = rendered.map(contentHash);
    const restarted = (limits: Limits, hold?: number): Course =>
      new Course(hashes, at, limits, CALM_MILLISECONDS, hold);
    if (at - this.changedAt >= this.calmMilliseconds)
      return restarted(MAX_RENDERINGS, held && holdMilliseconds);
    const changed = rendered[this.add(hashes, at)];
    if (this.returns < this.limits.returns && this.changes < this.limits.changes) return this;
    // A few edits of what it reads end a hold, so that is worth many writes only once.
    const isFirstHold = holdMilliseconds === HELD_AGAIN_MILLISECONDS;
    if (held) return restarted(isFirstHold ? MAX_BY_OTHERS : MAX_RENDERINGS, HELD_AGAIN_MILLISECONDS);
    const meanMilliseconds = (this.changedAt - this.since) / this.changes;
    const sureMilliseconds = Math.max(MIN_SURE_MILLISECONDS, SURE_CHANGES * meanMilliseconds);
    const calmMilliseconds = Math.max(holdMilliseconds, 2 * sureMilliseconds);
    const nextHold = Math.min(2 * holdMilliseconds, MAX_HELD_MILLISECONDS);
    const error = neverSettles(cr, this.changes, changed);
    const hold = { rendered, error, sureMilliseconds, isSure: false };
    return new Course(hashes, at, MAX_WHILE_HELD, calmMilliseconds, nextHold, hold);
  }

  /** Returns what is applied. @param latest the latest rendering */
  applied(latest: Rendered, at: number): SteadyRendering {
    const { held, changedAt } = this;
    if (!held) return { rendered: latest };
    const { rendered, error, sureMilliseconds } = held;
    const isSure = (held.isSure ||= at - changedAt >= sureMilliseconds);
    const until = new Date(changedAt + (isSure ? this.calmMilliseconds : sureMilliseconds));
    return { rendered, held: { ...(isSure && { error }), until } };
  }

  /** Counts a rendering that differs. Returns the place of the first object that does, or -1. */
  private add(hashes: readonly string[], at: number): number {
    const rendering = hashes.join();
    if (rendering === this.last.join()) return -1;
    const changed = hashes.findIndex((hash, index) => hash !== this.last[index]);
    this.changes++;
    if (this.seen.has(rendering)) this.returns++;
    if (this.limits !== MAX_BY_OTHERS) this.seen.add(rendering);
    this.last = hashes;
    this.changedAt = at;
    return changed;
  }
}

function neverSettles(cr: CustomResource, changes: number, changed: AnyObject | undefined): OperatorError {
  return new OperatorError({
    reason: 'NeverSettles',
    message: `${describeRef(cr)} was rendered ${changes + 1} times without an edit${changed ? `, the last time with another ${describeRef(changed)}` : ''}: what it renders changes what it reads of its children, or of objects that it refers to. Let it read nothing that follows from what it renders; until that is so, the last rendering is kept for a while each time`,
  });
}

/** Maximum number of renderings until what a construct observes is what it renders; one that goes on never settles. */
const MAX_PASSES = 10;

/** Objects that a construct may observe. */
interface Observable {
  /** Objects with the owner reference, whatever wrote them. */
  readonly controlled: readonly AnyObject[];
  /** Controlled objects that were applied. */
  readonly own: readonly AnyObject[];
  /** Ids of the last rendering. @default - unknown, after a start */
  readonly last?: ReadonlySet<string>;
  /** Types of the children. */
  readonly types: readonly RenderedType[];
}

/**
 * Renders until what the construct observes is what it renders: an object counts if this rendering or the last one names it, and
 * not for its owner reference; one that is being deleted counts until it is gone. After a start, it begins with what was applied. An
 * object is outdated by the rendering in which none is: so what the construct makes of that doesn't change it, and one rendering more
 * is enough.
 * @throws OperatorError `NeverSettles`
 */
export function renderObserving(
  cr: CustomResource,
  { controlled, own, last, types }: Observable,
  render: (observed: readonly AnyObject[], isCurrent: IsCurrent) => Rendered,
): { readonly rendered: Rendered; readonly observed: readonly AnyObject[]; readonly isCurrent: IsCurrent } {
  const ids = (objects: readonly AnyObject[]): string => objects.map(objectId).join();
  const createOnly = new Map(types.map((type) => [groupKind(type), type.createOnly]));
  const isCurrentBut =
    (outdated: ReadonlySet<string>): IsCurrent =>
    (object) =>
      createOnly.get(groupKind(object)) && !outdated.has(objectId(object));
  // What was applied counts at first, also if it is seen late: it would be pruned unseen.
  const applied = new Set([...own.map(objectId), ...(last ?? [])]);
  const ending = own.filter(({ metadata }) => metadata.deletionTimestamp).map(objectId);
  let observed = controlled.filter((object) => applied.has(objectId(object)));
  for (let count = 0; count < MAX_PASSES; count++) {
    const rendered = render(observed, isCurrentBut(new Set()));
    const named = new Set([...rendered.map(objectId), ...(last ?? []), ...ending]);
    const next = controlled.filter((object) => named.has(objectId(object)));
    if (ids(next) === ids(observed)) {
      const wanted = new Map(rendered.map((object) => [objectId(object), object]));
      const isOutdated = (object: AnyObject): boolean => {
        const [one, paths] = [wanted.get(objectId(object)), createOnly.get(groupKind(object))];
        return one !== undefined && paths !== undefined && !wasCreatedAs(object, one, paths);
      };
      const outdated = new Set(observed.filter(isOutdated).map(objectId));
      const isCurrent = isCurrentBut(outdated);
      return { rendered: outdated.size > 0 ? render(observed, isCurrent) : rendered, observed, isCurrent };
    }
    observed = next;
  }
  throw new OperatorError({
    reason: 'NeverSettles',
    message: `${describeRef(cr)} renders other objects each time for those that it observes; let it render the same objects whether or not they are there`,
  });
}

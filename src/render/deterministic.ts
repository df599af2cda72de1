import { messageOf, OperatorError } from '../contract/error.js';
import type {
  KindConstruct,
  Render,
  Rendered,
  RenderedKind,
  RenderInputs,
  ReferencedByName,
} from '../contract/kind.js';
import { recordOf } from '../contract/names.js';
import { contentHash, isContainer } from '../values/json.js';
import { describeRef, keyOf, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { readsSecrets } from '../values/origin.js';
import { groupKind } from '../contract/resource.js';

/** Number of custom resources that are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** Numbers of renderings without an edit in between, after which a custom resource is taken not to settle. */
const MAX_RENDERINGS = {
  /** Ones that had been there before: it swings. */
  returns: 20,
  /** Any: each is another one, as where it counts. A large rollout makes some dozens. */
  changes: 300,
};
/** The same while one rendering is held: nothing is written then, so others change what it reads. */
const MAX_WHILE_HELD = { returns: 3, changes: 50 };
/** The same after others have ended the first hold: then it is held once more, since by now it may follow its own effects. */
const BY_OTHERS = { returns: Infinity, changes: 4_000 };
/** Pause in the changes after which counting begins again. */
const CALM_MILLISECONDS = 600_000;
/** Least pause in the changes while a rendering is held that shows that its own effects changed what it reads. */
const SURE_MILLISECONDS = 10_000;
/** Such a pause, in mean times between the changes before: what others change rarely goes on in it. */
const SURE_CHANGES = 3;
/** Pause after which a rendering is held no longer; twice as long each time, up to an hour. */
const HELD_MILLISECONDS = 60_000;
const HELD_AGAIN_MILLISECONDS = 2 * HELD_MILLISECONDS;
const MAX_HELD_MILLISECONDS = 3_600_000;

/** Inputs that renderings of a custom resource have in common. */
interface Basis {
  /** Hash of the custom resource, and of what it was rendered from. */
  readonly inputs: string;
  readonly policy: unknown;
}

interface Accepted extends Basis {
  readonly hashes: string;
}

/** Counts renderings that follow one another. */
class Tally {
  changes = 0;
  changedAt: number;
  private returns = 0;
  private readonly seen = new Set<string>();

  /** @param last hashes of the objects of the latest rendering */
  constructor(
    private readonly limits: typeof MAX_RENDERINGS,
    private last: readonly string[],
    private readonly since: number,
  ) {
    this.changedAt = since;
    this.seen.add(last.join());
  }

  /** Returns the place of the first object that has changed, or -1. */
  add(hashes: readonly string[], at: number): number {
    const rendering = hashes.join();
    if (rendering === this.last.join()) return -1;
    const changed = hashes.findIndex((hash, index) => hash !== this.last[index]);
    this.changes++;
    if (this.seen.has(rendering)) this.returns++;
    if (this.limits !== BY_OTHERS) this.seen.add(rendering);
    this.last = hashes;
    this.changedAt = at;
    return changed;
  }

  get isExceeded(): boolean {
    return this.returns >= this.limits.returns || this.changes >= this.limits.changes;
  }

  /** Mean time between changes. */
  get meanMilliseconds(): number {
    return (this.changedAt - this.since) / this.changes;
  }
}

/** A rendering that is applied in place of later ones. */
interface Held {
  readonly rendered: Rendered;
  readonly error: OperatorError;
  readonly sureMilliseconds: number;
  /** Whether it was reported: then it is, until the hold ends. */
  isSure: boolean;
}

/** Renderings that differ by what the children and the references say alone. */
interface Course extends Basis {
  readonly tally: Tally;
  /** Pause in the changes that ends it. */
  readonly calmMilliseconds: number;
  /** Pause that ends the next hold. */
  readonly holdMilliseconds: number;
  readonly held?: Held;
}

/** Rendering to be applied. */
export interface SteadyRendering {
  readonly rendered: Rendered;
  /** Error to report, once it is sure, and the time to look again. @default - the rendering is the latest */
  readonly held?: { readonly error?: OperatorError; readonly until: Date };
}

/** Renders the custom resources of a kind, and keeps what would be applied over and over from being applied. */
export class SteadyRenderer {
  /** Rendering that was accepted last, by key. */
  private readonly accepted = new Map<string, Accepted>();
  /** Courses by key, of kinds that observe their children, or have references. */
  private readonly courses = new Map<string, Course>();

  constructor(
    private readonly kind: RenderedKind,
    private readonly renderOnce: Render,
  ) {}

  /**
   * @param children as they are
   * @param before rendering of the same inputs that was made already
   * @returns the latest rendering; where they don't settle, an earlier one, with `NeverSettles`, until they have been the same for
   * a while, others are seen to change what is read, or the custom resource or the policy changes
   * @throws OperatorError what the renderer throws, `NotDeterministic`
   */
  render(
    cr: CustomResource,
    inputs: RenderInputs | undefined,
    children: readonly AnyObject[],
    now: Date,
    before?: Rendered,
  ): SteadyRendering {
    const policy = this.renderOnce.policyInForce?.();
    // Not the generation, which stays where another schema of the CRD changes the spec.
    const edit = `${cr.metadata.uid} ${contentHash(cr.spec ?? {})}`;
    const { observed, references, ...others } = inputs ?? {};
    const read = { ...(observed && { observed }), ...(references && { references: digestOf(references) }) };
    const again = (): Rendered => this.renderOnce(this.kind, cr, inputs);
    const rendered = before ?? again();
    const all = inputs ? `${edit} ${contentHash({ ...others, ...read })}` : edit;
    this.requireSteady(cr, { inputs: all, policy }, rendered, children, again, readOf(inputs));
    if (!observed && !references) return { rendered };
    return this.settling(cr, { inputs: `${edit} ${contentHash(others)}`, policy }, rendered, now.getTime());
  }

  /** Forgets a custom resource that has gone. */
  forget(key: string): void {
    this.accepted.delete(key);
    this.courses.delete(key);
  }

  /**
   * Refuses what the same custom resource doesn't render to again. One that is edited, or under another policy, is
   * rendered twice, unless its children have been made of the same rendering; so is one that is new, but in a burst only
   * before its second write. One whose inputs are those of the accepted rendering has to render to the same again, which also
   * finds what changes with the time of day. Nothing is known after a restart, so a rendering that was refused is checked again.
   */
  private requireSteady(
    cr: CustomResource,
    basis: Basis,
    rendered: readonly AnyObject[],
    children: readonly AnyObject[],
    again: () => Rendered,
    read: readonly unknown[],
  ): void {
    const key = keyOf(cr);
    const hashes = rendered.map(contentHash).join();
    const last = this.accepted.get(key);
    const isKnown = last?.inputs === basis.inputs && last.policy === basis.policy;
    if (isKnown && last.hashes === hashes) return;
    const applied = new Set(children.map((child) => recordOf(child)?.hash));
    const isApplied =
      rendered.length === children.length && rendered.every((object) => applied.has(contentHash(object)));
    const isNew = children.length === 0 && this.accepted.size >= CHECKED_BEFORE_CREATION;
    const owner = describeRef(refOf(cr));
    const isTrusted = !isKnown && (isApplied || isNew);
    const error = isTrusted ? undefined : unsteadiness(owner, rendered, again, read);
    if (error) throw error;
    if (isKnown)
      throw notDeterministic(
        `${owner} renders to something else than last time, though neither it nor the policy has changed since`,
      );
    this.accepted.set(key, { ...basis, hashes });
  }

  /**
   * Holds one rendering where they don't settle, since what the construct reads follows from what it renders. Nothing is written
   * then: what changes all the same is changed by others.
   */
  private settling(cr: CustomResource, basis: Basis, rendered: Rendered, at: number): SteadyRendering {
    const key = keyOf(cr);
    const hashes = rendered.map(contentHash);
    const go = (limits: typeof MAX_RENDERINGS, holdMilliseconds = HELD_MILLISECONDS): SteadyRendering => {
      const tally = new Tally(limits, hashes, at);
      this.courses.set(key, { ...basis, tally, calmMilliseconds: CALM_MILLISECONDS, holdMilliseconds });
      return { rendered };
    };
    const course = this.courses.get(key);
    if (!course || !isSame(course, basis)) return go(MAX_RENDERINGS);
    const { tally, calmMilliseconds, holdMilliseconds, held } = course;
    if (at - tally.changedAt >= calmMilliseconds) return go(MAX_RENDERINGS, held && holdMilliseconds);
    const changed = rendered[tally.add(hashes, at)];
    if (held && !tally.isExceeded) return stillHeld(course, held, at);
    const isFirstHold = holdMilliseconds === HELD_AGAIN_MILLISECONDS;
    // A few edits of what it reads end a hold, so that is worth many writes only once.
    if (held) return go(isFirstHold ? BY_OTHERS : MAX_RENDERINGS, HELD_AGAIN_MILLISECONDS);
    if (!tally.isExceeded) return { rendered };
    const sureMilliseconds = Math.max(SURE_MILLISECONDS, SURE_CHANGES * tally.meanMilliseconds);
    const hold: Held = { rendered, error: neverSettles(cr, tally, changed), sureMilliseconds, isSure: false };
    const next: Course = {
      ...{ ...basis, tally: new Tally(MAX_WHILE_HELD, hashes, at), held: hold },
      calmMilliseconds: Math.max(holdMilliseconds, 2 * sureMilliseconds),
      holdMilliseconds: Math.min(2 * holdMilliseconds, MAX_HELD_MILLISECONDS),
    };
    this.courses.set(key, next);
    return stillHeld(next, hold, at);
  }
}

function stillHeld({ tally, calmMilliseconds }: Course, held: Held, at: number): SteadyRendering {
  const { rendered, error, sureMilliseconds } = held;
  const isSure = (held.isSure ||= at - tally.changedAt >= sureMilliseconds);
  const until = new Date(tally.changedAt + (isSure ? calmMilliseconds : sureMilliseconds));
  return { rendered, held: { ...(isSure && { error }), until } };
}

function neverSettles(cr: CustomResource, { changes }: Tally, changed: AnyObject | undefined): OperatorError {
  return new OperatorError({
    reason: 'NeverSettles',
    message: `${describeRef(refOf(cr))} was rendered ${changes + 1} times without an edit${changed ? `, the last time with another ${describeRef(refOf(changed))}` : ''}: what it renders changes what it reads of its children, or of objects that it refers to. Let it read nothing that follows from what it renders; until that is so, the last rendering is kept for a while each time`,
  });
}

/** Returns a digest of references. Each object is hashed once, since it is the same one until it changes. */
function digestOf(references: ReferencedByName): string {
  const all = Object.entries(references).map(([name, found]) => [
    name,
    [found].flat().map((object) => object && contentHash(object)),
  ]);
  return JSON.stringify(all);
}

function isSame(a: Basis, b: Basis): boolean {
  return a.inputs === b.inputs && a.policy === b.policy;
}

/** Returns the objects that a construct was given, or lists of them. */
export function readOf({ references = {}, observed }: RenderInputs = {}): readonly unknown[] {
  return [...Object.values(references), observed];
}

const REMEDY =
  'A construct has to depend on its props alone: take clocks, chance and counters out of it (new Date(), Math.random(), randomUUID(), variables outside of it)';
const SECRET_REMEDY =
  'let the spec name a Secret that others make, in place of a password that is generated with each rendering';

/**
 * Renders once more and compares: what differs each time would be applied each time.
 * @param owner names the custom resource, for the message
 * @param read where a Secret is among it, no values are shown
 * @returns `NotDeterministic` where something differs
 */
export function unsteadiness(
  owner: string,
  rendered: readonly AnyObject[],
  again: () => readonly AnyObject[],
  read: readonly unknown[] = [],
): OperatorError | undefined {
  let others: Map<string, AnyObject>;
  try {
    others = new Map(again().map((object) => [objectId(object), object]));
  } catch (error) {
    return notDeterministic(`${owner} can be rendered once, and the next time can't: ${messageOf(error)}`);
  }
  for (const object of rendered) {
    const name = describeRef(refOf(object));
    const other = others.get(objectId(object));
    if (!other) return notDeterministic(`${owner} renders ${name}, and the next time doesn't`);
    const [difference] = differences(object, other);
    if (difference) return differing(owner, object, difference, readsSecrets(read));
    others.delete(objectId(object));
  }
  const [more] = others.values();
  return more && notDeterministic(`${owner} renders ${describeRef(refOf(more))} only the second time`);
}

function differing(
  owner: string,
  object: AnyObject,
  { path, values }: Difference,
  readsSecret: boolean,
): OperatorError {
  const isSecret = groupKind(object) === 'Secret';
  const [first, later] = values.map((value) => shown(value, isSecret || readsSecret));
  return notDeterministic(
    `${owner} renders ${describeRef(refOf(object))} with ${first} at ${shownPath(path)}, and the next time with ${later}`,
    isSecret ? `; ${SECRET_REMEDY}` : '',
  );
}

/** A place where two values differ. */
export interface Difference {
  readonly path: readonly string[];
  readonly values: readonly [first: unknown, second: unknown];
}

/** Returns where two values differ, at the deepest places, in the order of the first. */
export function differences(first: unknown, second: unknown, path: readonly string[] = []): Difference[] {
  if (Object.is(first, second)) return [];
  if (!isContainer(first) || !isContainer(second) || Array.isArray(first) !== Array.isArray(second))
    return [{ path, values: [first, second] }];
  const member = (of: Readonly<Record<string, unknown>>, key: string): unknown =>
    Object.hasOwn(of, key) ? of[key] : undefined;
  const keys = new Set([...Object.keys(first), ...Object.keys(second)]);
  return [...keys].flatMap((key) => differences(member(first, key), member(second, key), [...path, key]));
}

function shownPath(path: readonly string[]): string {
  const step = (key: string): string => {
    if (/^\d+$/.test(key)) return `[${key}]`;
    return /^[\w-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  };
  return path.map(step).join('');
}

function shown(value: unknown, isSecret: boolean): string {
  if (value === undefined) return 'nothing';
  if (isSecret) return 'a value that is not shown here';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function notDeterministic(what: string, more = ''): OperatorError {
  return new OperatorError({ reason: 'NotDeterministic', message: `${what}. ${REMEDY}${more}` });
}

/**
 * Constructs that are rendered without a limit of time: those of this project. The limit costs a quarter of a millisecond each
 * time.
 */
export const ENDING = new WeakSet<KindConstruct<never>>();

const YEAR_MILLISECONDS = 365.25 * 24 * 60 * 60 * 1_000;

/**
 * Runs something on another day and with other random numbers; synchronous, so nothing else notices. For tests and for
 * commands of an author: never in the controller.
 *
 * **Guarantees.** Dates that were there before, or are made of a given time, are what they are in this world too.
 *
 * **Caveats.** Who kept `Date` or the time from before, or asks `Intl` for it, sees this world's.
 */
export function inAnotherWorld<T>(body: () => T): T {
  const { Date: RealDate } = globalThis;
  const { random } = Math;
  const LaterDate = laterThan(RealDate);
  globalThis.Date = LaterDate;
  RealDate.prototype.constructor = LaterDate;
  Math.random = () => 1 - random();
  try {
    return body();
  } finally {
    globalThis.Date = RealDate;
    RealDate.prototype.constructor = RealDate;
    Math.random = random;
  }
}

/** The class itself, a year later: a subclass would be another one than that of the dates that are there. */
function laterThan(RealDate: DateConstructor): DateConstructor {
  const now = (): number => RealDate.now() + YEAR_MILLISECONDS;
  return new Proxy(RealDate, {
    construct: (target, given: readonly unknown[], caller): object =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, caller) as Date,
    apply: () => new RealDate(now()).toString(),
    get: (target, name): unknown => (name === 'now' ? now : Reflect.get(target, name)),
  });
}

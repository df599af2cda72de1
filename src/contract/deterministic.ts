import { messageOf, OperatorError } from './error.js';
import type { KindConstruct, Render, Rendered, RenderedKind, RenderInputs } from './kind.js';
import { APPLIED_HASH_ANNOTATION } from './names.js';
import { contentHash, describeRef, keyOf, objectId, refOf } from './object.js';
import type { AnyObject, CustomResource } from './object.js';
import { groupKind } from './resource.js';

/** So many custom resources are rendered twice before anything is created: an author sees at once what isn't deterministic. */
const CHECKED_BEFORE_CREATION = 100;

/** Renderings without an edit in between, within a minute, after which a custom resource is taken not to settle. */
const MOST = {
  /** Ones that had been there before in that minute: it swings. */
  returns: 20,
  /** Any: each is another one, as where it counts. A large rollout makes some dozens. */
  renderings: 300,
};
const WITHIN_MILLISECONDS = 60_000;

/** What renderings of a custom resource have in common. */
interface Basis {
  /** Hash of the custom resource, and of what it was rendered from. */
  readonly inputs: string;
  readonly policy: unknown;
}

interface Accepted extends Basis {
  readonly hashes: string;
}

/** Renderings that differ by what the children and the references say alone. */
interface Course extends Basis {
  /** Hash of the references of the last rendering: the others may change until it settles. */
  readonly references: string;
  readonly renderings: readonly { readonly hashes: readonly string[]; readonly at: number }[];
  readonly error?: OperatorError;
}

/** Renders the custom resources of a kind, and refuses what would be applied over and over. */
export class SteadyRenderer {
  /** By key, the last rendering that was accepted. */
  private readonly accepted = new Map<string, Accepted>();
  /** By key, of kinds that observe their children, or have references. */
  private readonly courses = new Map<string, Course>();

  constructor(
    private readonly kind: RenderedKind,
    private readonly renderOnce: Render,
  ) {}

  /**
   * @param children as they are
   * @throws OperatorError what the renderer throws, `NotDeterministic`, and `NeverSettles` as long as one that doesn't settle is
   * neither edited nor under another policy
   */
  render(
    cr: CustomResource,
    inputs: RenderInputs | undefined,
    children: readonly AnyObject[],
    now: Date,
  ): Rendered {
    const policy = this.renderOnce.policyInForce?.();
    // Not the generation, which stays where another schema of the CRD changes the spec.
    const edit = `${cr.metadata.uid} ${contentHash(cr.spec ?? {})}`;
    const { observed, references, ...others } = inputs ?? {};
    const read = observed ?? references;
    const course = read && {
      inputs: `${edit} ${contentHash(others)}`,
      policy,
      references: contentHash(references ?? {}),
    };
    const last = this.courses.get(keyOf(cr));
    if (course && last?.error && isSame(last, course) && last.references === course.references)
      throw last.error;
    const again = (): Rendered => this.renderOnce(this.kind, cr, inputs);
    const rendered = again();
    this.requireSteady(
      cr,
      { inputs: inputs ? `${edit} ${contentHash(inputs)}` : edit, policy },
      rendered,
      children,
      again,
    );
    if (course) this.requireSettling(cr, course, rendered, now);
    return rendered;
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
  ): void {
    const key = keyOf(cr);
    const hashes = rendered.map(contentHash).join();
    const last = this.accepted.get(key);
    const isKnown = last?.inputs === basis.inputs && last.policy === basis.policy;
    if (isKnown && last.hashes === hashes) return;
    const applied = new Set(children.map(({ metadata }) => metadata.annotations?.[APPLIED_HASH_ANNOTATION]));
    const isApplied =
      rendered.length === children.length && rendered.every((object) => applied.has(contentHash(object)));
    const isNew = children.length === 0 && this.accepted.size >= CHECKED_BEFORE_CREATION;
    const owner = describeRef(refOf(cr));
    const isTrusted = !isKnown && (isApplied || isNew);
    const error = isTrusted ? undefined : unsteadiness(owner, rendered, again);
    if (error ?? isKnown) throw error ?? driftingRender(owner);
    this.accepted.set(key, { ...basis, hashes });
  }

  /** Refuses what renders to something else each time, since its children or references follow from the last rendering. */
  private requireSettling(
    cr: CustomResource,
    basis: Omit<Course, 'renderings'>,
    rendered: Rendered,
    now: Date,
  ): void {
    const [key, at] = [keyOf(cr), now.getTime()];
    const known = this.courses.get(key);
    const earlier = known && isSame(known, basis) ? known.renderings : [];
    const before = earlier.filter((one) => at - one.at < WITHIN_MILLISECONDS);
    const hashes = rendered.map(contentHash);
    const last = before.at(-1);
    if (last?.hashes.join() === hashes.join()) return;
    const renderings = [...before, { hashes, at }];
    const different = new Set(renderings.map((one) => one.hashes.join())).size;
    const isSettling = renderings.length - different < MOST.returns && renderings.length < MOST.renderings;
    const changed = rendered.find((_, index) => hashes[index] !== last?.hashes[index]);
    const error = isSettling
      ? undefined
      : new OperatorError({
          reason: 'NeverSettles',
          message: `${describeRef(refOf(cr))} was rendered ${renderings.length} times within a minute without an edit${changed ? `, the last time with another ${describeRef(refOf(changed))}` : ''}: what it renders changes what it reads of its children, or of objects that it refers to. Let it read nothing that follows from what it renders`,
        });
    this.courses.set(key, { ...basis, renderings, ...(error && { error }) });
    if (error) throw error;
  }
}

function isSame(a: Basis, b: Basis): boolean {
  return a.inputs === b.inputs && a.policy === b.policy;
}

const REMEDY =
  'A construct has to depend on its props alone: take clocks, chance and counters out of it (new Date(), Math.random(), randomUUID(), variables outside of it)';
const SECRET_REMEDY =
  'let the spec name a Secret that others make, in place of a password that is generated with each rendering';

/**
 * Renders once more and compares: what differs each time would be applied each time.
 * @param owner names the custom resource, for the message
 * @returns `NotDeterministic` where something differs
 */
export function unsteadiness(
  owner: string,
  rendered: readonly AnyObject[],
  again: () => readonly AnyObject[],
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
    if (difference) return differing(owner, object, difference);
    others.delete(objectId(object));
  }
  const [more] = others.values();
  return more && notDeterministic(`${owner} renders ${describeRef(refOf(more))} only the second time`);
}

/** Returns `NotDeterministic` for a rendering that differs from an earlier one of the same inputs, though not from the next. */
export function driftingRender(owner: string): OperatorError {
  return notDeterministic(
    `${owner} renders to something else than last time, though neither it nor the policy has changed since`,
  );
}

function differing(owner: string, object: AnyObject, { path, values }: Difference): OperatorError {
  const isSecret = groupKind(object) === 'Secret';
  const [first, later] = values.map((value) => shown(value, isSecret));
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

/** Reports whether a value is a map or a list. */
export function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
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

import { messageOf, OperatorError } from './error.js';
import type { KindConstruct } from './kind.js';
import { describeRef, objectId, refOf } from './object.js';
import type { AnyObject } from './object.js';
import { groupKind } from './resource.js';

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

import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../contract/error.js';
import type { RenderInputs } from '../contract/kind.js';
import { describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { readsSecrets } from '../values/origin.js';
import { differences, formatFieldPath, showValue } from '../values/path.js';
import type { Difference } from '../values/path.js';

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
  let second: readonly AnyObject[];
  try {
    second = again();
  } catch (error) {
    return notDeterministic(`${owner} can be rendered once, and the next time can't: ${messageOf(error)}`);
  }
  if (isDeepStrictEqual(rendered, second)) return undefined;
  const others = new Map(second.map((object) => [objectId(object), object]));
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
  const shown = (value: unknown): string => {
    if (value === undefined) return 'nothing';
    return isSecret || readsSecret ? 'a value that is not shown here' : showValue(value, 80);
  };
  const [first, later] = values.map(shown);
  return notDeterministic(
    `${owner} renders ${describeRef(refOf(object))} with ${first} at ${formatFieldPath(path)}, and the next time with ${later}`,
    isSecret ? `; ${SECRET_REMEDY}` : '',
  );
}

function notDeterministic(what: string, more = ''): OperatorError {
  return new OperatorError({ reason: 'NotDeterministic', message: `${what}. ${REMEDY}${more}` });
}

/** Returns the error of what renders to something else with the same inputs. */
export function changesByItself(owner: string): OperatorError {
  return notDeterministic(
    `${owner} renders to something else than last time, though neither it nor the policy has changed since`,
  );
}

const YEAR_MILLISECONDS = 365.25 * 24 * 60 * 60 * 1_000;

/**
 * Calls a function with the clock a year later and with other random numbers; synchronous, so nothing else notices. For tests and for
 * commands of an author: never in the controller.
 *
 * **Guarantees.** Dates that were there before, or are made of a given time, stay what they are.
 *
 * **Caveats.** A reference to `Date` that was kept from before, and `Intl`, have the true time.
 */
export function withShiftedDateAndRandom<T>(body: () => T): T {
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

/** Returns the class itself, a year later: a subclass would be another one than that of the dates that are there. */
function laterThan(RealDate: DateConstructor): DateConstructor {
  const now = (): number => RealDate.now() + YEAR_MILLISECONDS;
  return new Proxy(RealDate, {
    construct: (target, given: readonly unknown[], caller): object =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, caller) as Date,
    apply: () => new RealDate(now()).toString(),
    get: (target, name): unknown => (name === 'now' ? now : Reflect.get(target, name)),
  });
}

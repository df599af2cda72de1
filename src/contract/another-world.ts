const YEAR_MILLISECONDS = 365.25 * 24 * 60 * 60 * 1_000;

/**
 * Runs something on another day and with other random numbers; synchronous, so nothing else notices.
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

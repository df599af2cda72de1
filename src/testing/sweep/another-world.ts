const YEAR_MILLISECONDS = 365.25 * 24 * 60 * 60 * 1_000;

/** Runs something on another day and with other random numbers; synchronous, so nothing else notices. */
export function inAnotherWorld<T>(body: () => T): T {
  const { Date: RealDate } = globalThis;
  const { random } = Math;
  class LaterDate extends RealDate {
    constructor(...given: readonly unknown[]) {
      super(...((given.length === 0 ? [LaterDate.now()] : given) as [number]));
    }

    static override now(): number {
      return RealDate.now() + YEAR_MILLISECONDS;
    }
  }
  globalThis.Date = LaterDate as DateConstructor;
  Math.random = () => 1 - random();
  try {
    return body();
  } finally {
    globalThis.Date = RealDate;
    Math.random = random;
  }
}

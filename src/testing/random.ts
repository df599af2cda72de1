/** Numbers from 0 to 1 that a seed repeats. @see https://prng.di.unimi.it/splitmix64.c */
export class Random {
  private state: bigint;

  constructor(readonly seed: number) {
    this.state = BigInt(seed);
  }

  next(): number {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let mixed = this.state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
  }

  /** A whole number from 0 up to, and without, the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** One of them; each as often as its weight says. */
  choose<T>(weighted: readonly (readonly [weight: number, what: T])[]): T {
    let left = this.next() * weighted.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, what] of weighted) {
      left -= weight;
      if (left < 0) return what;
    }
    const last = weighted.at(-1);
    if (!last) throw new Error('There is nothing to choose from');
    return last[1];
  }
}

/** Everything that is left to chance; the same seed leads to the same draws. */
export interface Chance {
  /** @throws where there is nothing to choose from */
  one<T>(choices: readonly T[]): T;
  /** A whole number from 0 to this, both included. */
  upTo(most: number): number;
  /** True so many times of a hundred. */
  yes(percent: number): boolean;
}

export function chanceOf(random: Random): Chance {
  const upTo = (most: number): number => random.below(most + 1);
  return {
    upTo,
    yes: (percent) => upTo(99) < percent,
    one: <T>(choices: readonly T[]): T => {
      if (choices.length === 0) throw new Error('There is nothing to choose from');
      return choices[upTo(choices.length - 1)] as T;
    },
  };
}

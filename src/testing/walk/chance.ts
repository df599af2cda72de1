import type { Random } from '../random.js';

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

import fc from 'fast-check';
import type { GeneratorValue } from 'fast-check';
import type { Chance } from '../../../../src/testing/walk.js';

/** Drawn from one generator: the same seed leads to the same draws. */
export function chanceOf(generator: GeneratorValue): Chance {
  const upTo = (most: number): number => generator(fc.nat, most);
  return {
    upTo,
    yes: (percent) => upTo(99) < percent,
    one: <T>(choices: readonly T[]): T => {
      if (choices.length === 0) throw new Error('There is nothing to choose from');
      return choices[upTo(choices.length - 1)]!;
    },
  };
}

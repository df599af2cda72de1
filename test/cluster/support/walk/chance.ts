import fc from 'fast-check';
import type { GeneratorValue } from 'fast-check';

/** Everything that is left to chance, drawn from one generator: the same seed leads to the same draws. */
export class Chance {
  constructor(private readonly generator: GeneratorValue) {}

  /** @throws where there is nothing to choose from */
  one<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error('There is nothing to choose from');
    return choices[this.upTo(choices.length - 1)]!;
  }

  upTo(most: number): number {
    return this.generator(fc.nat, most);
  }

  yes(percent: number): boolean {
    return this.upTo(99) < percent;
  }
}

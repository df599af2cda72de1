import type { Walk } from '../walk/plan.js';
import { shorten } from '../walk/shorten.js';
import type { ShortenProps } from '../walk/shorten.js';
import { withoutMoment } from './outcome.js';
import type { Failure } from './outcome.js';

/** A walk that went wrong. */
export interface WentWrong {
  readonly failures: readonly Failure[];
  /** The specs up to where it did. */
  readonly until: Walk;
}

export interface Retrying extends Pick<ShortenProps, 'isValid' | 'hasTime'> {
  /**
   * Walks from the start on, and returns what goes wrong. In haste, something may be told that only takes a moment; that is
   * told apart in the end.
   */
  readonly walk: (specs: Walk, pace: 'hasty' | 'patient') => Promise<readonly Failure[]>;
}

const NOT_AGAIN = 'it did not come again when the same edits were made once more';

/**
 * The shortest sequence that goes wrong and was found in time, or else the one that it was found with: whichever it is, it has
 * gone wrong once more. What doesn't come again may hang on an order or a moment, so it remains a failure, and that is said.
 */
export async function shortened(
  { failures, until }: WentWrong,
  { walk, ...props }: Retrying,
): Promise<readonly Failure[]> {
  const isTheSame = (found: readonly Failure[]): boolean => placeOf(found) === placeOf(failures);
  const goesWrong = async (specs: Walk): Promise<boolean> => isTheSame(await walk(specs, 'hasty'));
  const shortest = await shorten(until, { ...props, goesWrong });
  let again: readonly Failure[] = [];
  for (const specs of new Set([shortest, until])) {
    again = await walk(specs, 'patient');
    if (isTheSame(again)) return again;
  }
  return [...failures.map(({ what, sequence }) => ({ what: `${what}; ${NOT_AGAIN}`, sequence })), ...again];
}

/** What is other than it should be, without values: a shorter walk has to go wrong there, and not elsewhere. */
function placeOf([failure]: readonly Failure[]): string | undefined {
  return failure && withoutMoment(failure.what).split(/ is |; /)[0];
}

import type { Settle } from '../../../src/contract/controller.js';

/**
 * How many passes at most a burst leads to, of a controller that lets things settle: one whenever the longest time is
 * over, one that was about to begin, and one in the end. A pause may look like quiet, and adds one; from half the quiet
 * time on, since what comes evenly may be seen less evenly.
 *
 * @param times when each thing came, in milliseconds
 */
export function mostPasses(
  times: readonly number[],
  { quietMilliseconds, longestMilliseconds }: Settle,
): number {
  const pauses = times.slice(1).map((time, index) => time - times[index]!);
  const took = pauses.reduce((sum, pause) => sum + pause, 0);
  const quiet = pauses.filter((pause) => pause > quietMilliseconds / 2);
  return Math.floor(took / longestMilliseconds) + 2 + quiet.length;
}

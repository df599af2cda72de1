import { messageOf } from '../../contract/error.js';
import type { Stand } from './stand.js';
import { Trial } from './trial.js';

/** Something that doesn't hold. */
export interface Failure {
  readonly what: string;
  /** What to do to see it, from an empty namespace on; the shortest that was found. */
  readonly sequence: readonly string[];
}

/** What became of one check. */
export interface Outcome {
  /** What was tried, in numbers. */
  readonly tried: string;
  readonly failures: readonly Failure[];
  /** Why it says nothing of this kind. @default - it does */
  readonly notApplicable?: string;
}

export type Check = (stand: Stand) => Promise<Outcome> | Outcome;

/** Runs a trial; what it throws is a failure, shown by what was done until then. */
export async function attempt(
  stand: Stand,
  body: (trial: Trial) => Promise<void>,
): Promise<readonly Failure[]> {
  await using trial = await Trial.begin(stand);
  try {
    await body(trial);
    return [];
  } catch (error) {
    return [{ what: messageOf(error), sequence: trial.steps }];
  }
}

/** When so many have failed, no further trial is begun: each takes its time, and says little more. */
const ENOUGH = 3;

/** A trial for each item, some at a time. */
export async function trials<T>(
  stand: Stand,
  items: readonly T[],
  body: (trial: Trial, item: T) => Promise<void>,
): Promise<readonly Failure[]> {
  const failures: Failure[] = [];
  await several(items, async (item) => {
    if (failures.length < ENOUGH) failures.push(...(await attempt(stand, (trial) => body(trial, item))));
  });
  return failures;
}

/** Of failures that say the same, the one with the shortest sequence; the shortest of all first. */
export function shortest(failures: readonly Failure[]): Failure[] {
  const ordered = [...failures].sort((a, b) => lengthOf(a) - lengthOf(b));
  return [...new Map(ordered.toReversed().map((failure) => [failure.what, failure])).values()].toReversed();
}

function lengthOf({ sequence }: Failure): number {
  return sequence.length * 10_000 + sequence.join('').length;
}

/** Does all of it, some at a time, and returns the results in order. */
export async function several<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  atOnce = 4,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await act(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}

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
  /** Of a walk: what of the things to do to fields wasn't done, as in `change: image`. @default - it is no walk */
  readonly notDone?: readonly string[];
  /** Of a walk: the fields that no sample has, and of which the schema says too little. @default - it is no walk */
  readonly notWalked?: readonly string[];
}

export type Check = (stand: Stand) => Promise<Outcome> | Outcome;

/** Runs a trial; what it throws is a failure, shown by what was done until then. */
export async function attempt(
  stand: Stand,
  body: (trial: Trial) => Promise<void>,
): Promise<readonly Failure[]> {
  let steps: readonly string[] = ['make the namespaces of a trial, and in them what it finds there'];
  try {
    await using trial = await Trial.begin(stand);
    steps = trial.steps;
    await body(trial);
    return [];
  } catch (error) {
    return [{ what: messageOf(error), sequence: steps }];
  }
}

/** When so many have failed, nothing further is tried: each takes its time, and says little more. */
export const ENOUGH = 3;

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
  const byWhat = new Map(ordered.toReversed().map((failure) => [withoutMoment(failure.what), failure]));
  return [...byWhat.values()].toReversed();
}

/** What failed, without what another trial would tell in other words: how long was waited, and its name. */
export function withoutMoment(what: string): string {
  return what.replaceAll(/\bafter [\d.]+ s\b/g, 'after a while').replaceAll(/\bswept-\d+/g, '<name>');
}

function lengthOf({ sequence }: Failure): number {
  return sequence.length * 10_000 + sequence.join('').length;
}

/**
 * Does all of it, some at a time, and returns the results in order.
 * @throws what the first to fail has thrown, once all that had begun is over; nothing further is begun
 */
export async function several<T, R>(
  items: readonly T[],
  act: (item: T) => Promise<R>,
  atOnce = 4,
): Promise<R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const errors: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) {
      try {
        results[index] = await act(item);
      } catch (error) {
        errors.push(error);
      }
      if (errors.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}

/** The names of the checks, in the order in which they are told. */
export type CheckName =
  | 'list keys'
  | 'rendering'
  | 'settling'
  | 'ownership'
  | 'collisions'
  | 'status'
  | 'drift'
  | 'kills'
  | 'events'
  | 'walk';

/** What one check has found. */
export interface CheckResult extends Outcome {
  readonly check: CheckName;
  readonly held: boolean;
  readonly seconds: number;
}

/** What held, as plain JSON. */
export interface SweepReport {
  /** Of this form. What is added to it later leaves it as it is; what is taken away or means something else doesn't. */
  readonly version: 1;
  readonly kind: string;
  /** Gives the same walk again. */
  readonly seed: number;
  readonly held: boolean;
  readonly seconds: number;
  readonly checks: readonly CheckResult[];
}

/** The report for people: a table of the checks, and below it what doesn't hold. */
export function formatReport({ kind, seed, seconds, checks }: SweepReport): string {
  const rows = checks.map(({ check, held, tried, notApplicable, seconds: took }) => [
    check,
    notApplicable === undefined ? (held ? 'held' : 'FAILED') : 'not applicable',
    `${took.toFixed(1)} s`,
    notApplicable ?? tried,
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  const failures = checks.flatMap(({ check, failures: all }) =>
    all.flatMap(({ what, sequence }) => [
      '',
      `${check}: ${what}`,
      ...sequence.map((step, index) => `  ${index + 1}. ${step}`),
    ]),
  );
  return [`${kind}, seed ${seed}, ${seconds.toFixed(0)} s`, ...lines, ...failures]
    .map((line) => line.trimEnd())
    .join('\n');
}

/**
 * Makes a test fail where something doesn't hold.
 * @throws with the whole report
 */
export function requireHeld(report: SweepReport): void {
  if (!report.held) throw new Error(formatReport(report));
}

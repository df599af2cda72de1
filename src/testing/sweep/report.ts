import type { Outcome } from './outcome.js';

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

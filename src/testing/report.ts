/** Failure of a check: something that doesn't hold. */
export interface Failure {
  readonly what: string;
  /** Steps to see it, from an empty namespace on; the shortest that were found. */
  readonly sequence: readonly string[];
}

/** Outcome of one check. */
export interface Outcome {
  /** Trials in numbers. */
  readonly tried: string;
  readonly failures: readonly Failure[];
  /** Reason why the check does not apply to this kind. @default - none: the check applies */
  readonly notApplicable?: string;
  /** Edits of fields that a walk didn't do, such as `change: image`. @default - none, or no walk */
  readonly notDone?: readonly string[];
  /** Fields that a walk left out: no sample has them, and the schema says too little of them. @default - none, or no walk */
  readonly notWalked?: readonly string[];
}

/** Outcome of a check that says nothing of a kind. */
export const notApplicable = (why: string): Outcome => ({ tried: '', failures: [], notApplicable: why });
export const NO_OBJECTS = notApplicable('it makes no objects');

/** Names of the checks, in the order in which they run. */
export const CHECK_NAMES = [
  ...(['list keys', 'rendering', 'settling', 'ownership', 'collisions', 'status', 'drift', 'kills'] as const),
  ...(['references', 'observed', 'memory', 'order', 'values', 'control', 'adoption'] as const),
  ...(['deletion', 'choice', 'fields', 'upgrade', 'events', 'walk'] as const),
];

/** Name of a check. */
export type CheckName = (typeof CHECK_NAMES)[number];

/** Result of one check. */
export interface CheckResult extends Outcome {
  readonly check: CheckName;
  readonly held: boolean;
  readonly seconds: number;
}

/** Results of a conformance run, as plain JSON. */
export interface ConformanceReport {
  /** Version of the format: fields may be added to it, none is removed or changes its meaning. */
  readonly version: 1;
  readonly kind: string;
  /** Seed that repeats the walk. */
  readonly seed: number;
  readonly held: boolean;
  readonly seconds: number;
  readonly checks: readonly CheckResult[];
}

/** Returns the shortest of failures with the same text, in order of length. */
export function shortest(failures: readonly Failure[]): Failure[] {
  const lengthOf = ({ sequence }: Failure): number => sequence.length * 10_000 + sequence.join('').length;
  const byWhat = new Map<string, Failure>();
  for (const failure of [...failures].sort((a, b) => lengthOf(a) - lengthOf(b))) {
    const what = withoutMoment(failure.what);
    if (!byWhat.has(what)) byWhat.set(what, failure);
  }
  return [...byWhat.values()];
}

/** Returns what failed without what differs from trial to trial: how long was waited, and the name. */
export function withoutMoment(what: string): string {
  return what.replaceAll(/\bafter [\d.]+ s\b/g, 'after a while').replaceAll(/\btrial-\d+/g, '<name>');
}

function verdictOf({ held, notApplicable }: CheckResult): string {
  return notApplicable === undefined ? (held ? 'held' : 'FAILED') : 'not applicable';
}

/** Formats the progress of a run: a line for a check that has ended, in the words of the report. */
export function formatProgress(result: CheckResult): string {
  return `${result.check}: ${verdictOf(result)}, after ${result.seconds.toFixed(0)} s`;
}

/** Formats a report for people: a table of the checks, and below it what doesn't hold. */
export function formatReport({ kind, seed, seconds, checks }: ConformanceReport): string {
  const rows = checks.map((result) => [
    result.check,
    verdictOf(result),
    `${result.seconds.toFixed(1)} s`,
    result.notApplicable ?? result.tried,
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
export function requireHeld(report: ConformanceReport): void {
  if (!report.held) throw new Error(formatReport(report));
}

import type { SweepReport } from '../../../src/testing/sweep.js';

/** What became of each check: `held`, `failed`, or why it doesn't apply. */
export function verdictsOf({ checks }: SweepReport): Readonly<Record<string, string>> {
  return Object.fromEntries(
    checks.map(({ check, held, notApplicable }) => [check, notApplicable ?? (held ? 'held' : 'failed')]),
  );
}

/** What was tried for a check, in numbers. */
export function triedFor({ checks }: SweepReport, name: string): string | undefined {
  return checks.find(({ check }) => check === name)?.tried;
}

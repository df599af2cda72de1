/** 1: there are differences, which `diff` alone tells; 2: bad input or usage; 3: the cluster is unreachable or refused. */
export type ExitCode = 1 | 2 | 3;

/** Exit code of a bug: `EX_SOFTWARE` of sysexits.h. */
export const BUG = 70;

/** Ends a command: its lines are for stderr, its code is for whoever called. */
export class CliError extends Error {
  readonly lines: readonly string[];
  readonly exitCode: ExitCode;

  constructor(lines: string | readonly string[], exitCode: ExitCode) {
    const all = typeof lines === 'string' ? [lines] : lines;
    super(all.join('\n'));
    this.name = 'CliError';
    this.lines = all;
    this.exitCode = exitCode;
  }
}

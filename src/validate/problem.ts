import { OperatorError } from '../contract/error.js';
import { formatPath } from '../values/path.js';

/** Place in a document: keys of maps and indexes of lists. */
export type Path = readonly (string | number)[];

/** Mistake in a document. */
export interface Problem {
  readonly path: Path;
  /** Mistake, with the value that was given: `99999 is more than 65535`. */
  readonly message: string;
  /** Remedy: `give a number between 1 and 65535`. @default - the message says so itself */
  readonly remedy?: string;
}

/** The message of a field that the schema doesn't name: the API server drops it. */
export const UNKNOWN_FIELD = 'unknown field';

/** The message of a field that is required. */
export const MISSING = 'is missing';

/** Maximum number of problems that are shown; those beyond are counted. */
const MAX_SHOWN = 20;

/**
 * Input that can't be rendered. Its reason is `InvalidInput`; `lines` has one line per problem, ready for a
 * terminal, and at most 20 of them plus a count of the rest.
 */
export class InputError extends OperatorError {
  readonly lines: readonly string[];

  constructor(problems: readonly string[]) {
    const rest = problems.length - MAX_SHOWN;
    const lines = problems.slice(0, MAX_SHOWN);
    if (rest > 0) lines.push(`... and ${rest} more ${rest === 1 ? 'problem' : 'problems'}`);
    super({ reason: 'InvalidInput', message: lines.join('\n') });
    this.name = 'InputError';
    this.lines = lines;
  }
}

/** A problem without its place in a file: `spec.size: "2" is a string, not an integer; write it without quotes`. */
export function formatProblem({ path, message, remedy }: Problem): string {
  const place = path.length > 0 ? `${formatPath(path)}: ` : '';
  return `${place}${message}${remedy === undefined ? '' : `; ${remedy}`}`;
}

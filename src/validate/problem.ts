import { OperatorError } from '../contract/error.js';

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

/** `spec.ports[0].port`, and `metadata.labels["a/b"]` for keys that aren't plain words. */
export function formatPath(path: Path): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      if (!/^[\w$-]+$/.test(step)) return `[${JSON.stringify(step)}]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
}

/** A problem without its place in a file: `spec.size: "2" is a string, not an integer; write it without quotes`. */
export function formatProblem({ path, message, remedy }: Problem): string {
  const place = path.length > 0 ? `${formatPath(path)}: ` : '';
  return `${place}${message}${remedy === undefined ? '' : `; ${remedy}`}`;
}

/** A value as messages show it: JSON, cut after 60 characters. */
export function showValue(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) as string | undefined);
  if (text === undefined) return String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

import { objectKey } from '../../contract/object.js';

/** What a line of the controller's output says. */
export type LogLine =
  /** It works on the custom resources of a kind. */
  | { readonly what: 'started'; readonly controller: string }
  /** Something that somebody should know. */
  | { readonly what: 'warn' | 'error'; readonly text: string; readonly failure?: Failure }
  /** What the author's code prints. */
  | { readonly what: 'printed'; readonly text: string }
  /** Everything else that the controller logs. */
  | { readonly what: 'quiet' };

/** What has failed for a custom resource. */
export interface Failure {
  /** As in `Note default/hello`. */
  readonly of: string;
  /** One line of why. */
  readonly cause: string;
}

interface Entry {
  readonly level?: string;
  readonly msg?: string;
  readonly controller?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly err?: { readonly message?: string; readonly stack?: string };
  readonly error?: unknown;
  readonly reason?: unknown;
}

/** Reads a line of standard error, or of standard output. */
export function readLogLine(line: string): LogLine {
  const entry = parsed(line);
  if (!entry) return { what: 'printed', text: line };
  const { level, msg = '', controller } = entry;
  if (msg === 'Controller started' && controller !== undefined) return { what: 'started', controller };
  if (level !== 'warn' && level !== 'error' && level !== 'fatal') return { what: 'quiet' };
  const [subject, cause] = [subjectOf(entry), causeOf(entry)];
  const isOfObject = entry.kind !== undefined && entry.name !== undefined;
  return {
    what: level === 'warn' ? 'warn' : 'error',
    text: `${subject && `${subject}: `}${msg}${cause === '' || msg.includes(cause) ? '' : `: ${cause}`}`,
    ...(isOfObject && cause !== '' && { failure: { of: subject, cause } }),
  };
}

function parsed(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'level' in value && 'msg' in value
      ? (value as Entry)
      : undefined;
  } catch {
    return undefined;
  }
}

function subjectOf({ kind, controller, namespace, name }: Entry): string {
  const what = kind ?? controller ?? '';
  const key = name === undefined ? '' : objectKey(namespace, name);
  return [what, key].filter((part) => part !== '').join(' ');
}

/** One line of it: the rest is in the status, or in a log of `reconstruct run`. */
function causeOf({ err, error, reason }: Entry): string {
  const cause =
    err?.message ?? (typeof error === 'string' ? error : typeof reason === 'string' ? reason : '');
  const [first = ''] = cause.split('\n');
  return first;
}

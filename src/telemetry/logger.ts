import { pino, stdSerializers } from 'pino';
import type { LogFn } from 'pino';
import type { LogFormat, LogLevel } from './log-options.js';

export * from './log-options.js';

/** Fields first, then a sentence: `log.info({ kind, name }, 'Reconciled')`. */
export interface Logger extends Readonly<Record<LogLevel, LogFn>> {
  /** A logger that puts these fields on each of its lines. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
  isLevelEnabled(level: LogLevel): boolean;
}

/** The log of a whole process. */
export interface RootLogger extends Logger {
  /** Setting it holds at once for every logger that descends from this one, those that exist already included. */
  level: string;
}

export interface LoggerProps {
  readonly level: LogLevel;
  /** `json`: one object a line, with the time in RFC 3339 and the level as a word. `pretty`: for people. */
  readonly format: LogFormat;
  /** A file descriptor. @default 2, standard error, since standard output belongs to results */
  readonly destination?: number;
}

/**
 * The log of a process; lines are written at once, so none is lost when it ends.
 *
 * **Guarantees.** Credentials don't get into it, whatever is logged: see `redactLine`. Of an error only its type,
 * message, stack and causes are written, since its other properties may hold anything, a custom resource for example.
 */
export async function createLogger({ level, format, destination = 2 }: LoggerProps): Promise<RootLogger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    hooks: { streamWrite: redactLine },
  };
  let logger: RootLogger;
  if (format === 'json') {
    logger = pino(options, pino.destination({ dest: destination, sync: true }));
  } else {
    const { PinoPretty } = await import('pino-pretty');
    const stream = PinoPretty({ destination, sync: true, colorize: process.stderr.isTTY, singleLine: true });
    logger = pino(options, stream);
  }
  return logger;
}

function describeError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return String(thrown);
  // Message and stack hold those of the causes as well.
  const { type, message, stack } = stdSerializers.err(thrown);
  return { type, message, stack };
}

/** Says nothing: for tests and for commands that report by other means. */
export const silentLogger: Logger = pino({ level: 'silent' });

const REDACTED = '[redacted]';

/** Names of fields whose value nobody should read in a log, in whatever case, with dashes or without. */
const SECRET_NAME =
  '(?:proxy-?)?authorization|(?:set-?)?cookie|[\\w-]*(?:token|passwords?|passwd|secrets?|api-?key)|' +
  '(?:client-?|private-?|tls-?)key(?:-?data)?|(?:client-?)?cert(?:ificate)?(?:-?data)?';
const SECRET_FIELD = new RegExp(`^(?:${SECRET_NAME})$`, 'i');

/** Each hit is replaced by what the second part says. Quotes within a message may be escaped ones. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/-]{6,}=*/gi, `$1 ${REDACTED}`],
  // Whoever logs in to the server through its address.
  [/(\w:\/\/)[^\s/@"\\]+@/g, `$1${REDACTED}@`],
  [/-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)/gs, REDACTED],
  // JSON in base64, with what follows of a JSON web token: service accounts, OIDC and registries use it.
  [/\beyJ[\w-]{8,}(?:\.[\w-]*)*/g, REDACTED],
  // JSON or a query in the middle of a sentence.
  [new RegExp(`("(?:${SECRET_NAME})"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`([?&](?:${SECRET_NAME})=)[^\\s&"']+`, 'gi'), `$1${REDACTED}`],
];

/** Finds out, cheaply, that a line needs no closer look: nearly none does. */
const SUSPICIOUS =
  /authorization|cookie|token|passw|secret|api-?key|(?:client|private|tls)-?key|cert|bearer|basic|@|-----BEGIN|eyJ/i;

/**
 * A line of the log without what gives access to something: values of fields that are named for it, at any depth, and
 * what looks like a credential within any text.
 *
 * **Assumptions.** The line is what is about to be written, one JSON object: whatever way a value has taken into it, a
 * message, the stack of an error, a field of a child logger, it comes by here.
 */
export function redactLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line;
  try {
    return `${JSON.stringify(redacted(JSON.parse(line)))}\n`;
  } catch {
    return redactText(line);
  }
}

/** The same for text that isn't a line of the log. */
export function redactText(text: string): string {
  let clean = text;
  for (const [pattern, replacement] of SECRET_TEXT) clean = clean.replace(pattern, replacement);
  return clean;
}

function redacted(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_FIELD.test(name) && inner !== null && typeof inner !== 'boolean' ? REDACTED : redacted(inner),
    ]),
  );
}

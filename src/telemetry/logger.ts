import { pino, stdSerializers } from 'pino';
import type { LogFn } from 'pino';
import type { LogFormat, LogLevel } from './log-options.js';
import { redactLine } from './redact.js';

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

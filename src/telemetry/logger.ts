import { pino } from 'pino';
import type { LogFn } from 'pino';
import type { LogFormat, LogLevel } from './log-options.js';

export * from './log-options.js';

/** Fields first, then a sentence: `log.info({ kind, name }, 'Reconciled')`. */
export interface Logger extends Readonly<Record<LogLevel, LogFn>> {
  /** A logger that puts these fields on each of its lines. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
  isLevelEnabled(level: LogLevel): boolean;
}

export interface LoggerProps {
  readonly level: LogLevel;
  /** `json`: one object a line, with the time in RFC 3339 and the level as a word. `pretty`: for people. */
  readonly format: LogFormat;
  /** A file descriptor. @default 2, standard error, since standard output belongs to results */
  readonly destination?: number;
}

/** The log of a process; lines are written at once, so none is lost when it ends. */
export async function createLogger({ level, format, destination = 2 }: LoggerProps): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  let logger: Logger;
  if (format === 'json') {
    logger = pino(options, pino.destination({ dest: destination, sync: true }));
  } else {
    const { PinoPretty } = await import('pino-pretty');
    const stream = PinoPretty({ destination, sync: true, colorize: process.stderr.isTTY, singleLine: true });
    logger = pino(options, stream);
  }
  return logger;
}

/** Says nothing: for tests and for commands that report by other means. */
export const silentLogger: Logger = pino({ level: 'silent' });

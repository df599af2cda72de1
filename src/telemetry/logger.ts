import type { LogFn } from 'pino';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['json', 'pretty'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Fields first, then the fact in lower case: `log.info({ kind, name }, 'reconciled')`. */
export interface Logger extends Readonly<Record<LogLevel, LogFn>> {
  /** Returns a logger that puts these fields on each of its lines. */
  child(fields: Readonly<Record<string, unknown>>): Logger;
  isLevelEnabled(level: LogLevel): boolean;
}

/** The log of a whole process. */
export interface RootLogger extends Logger {
  /** Holds for every logger that descends from this one, as soon as it is set. */
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
 * Creates the log of a process; lines are written synchronously, so none is lost when it ends.
 *
 * **Guarantees.** Credentials don't get into it, see `redactLine`. Of an error only type, message, stack and causes are
 * written, since its other properties may hold anything, such as a custom resource.
 */
export async function createLogger({ level, format, destination = 2 }: LoggerProps): Promise<RootLogger> {
  // Named exports of CommonJS are lost where the bundle imports it on demand.
  const { default: pino } = await import('pino');
  const describeError = (thrown: unknown): unknown => {
    if (!(thrown instanceof Error)) return String(thrown);
    // Message and stack hold those of the causes as well.
    const { type, message, stack } = pino.stdSerializers.err(thrown);
    return { type, message, stack };
  };
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    hooks: { streamWrite: redactLine },
  };
  const stream =
    format === 'json'
      ? pino.destination({ dest: destination, sync: true })
      : (await import('pino-pretty')).default({
          ...{ destination, sync: true, colorize: process.stderr.isTTY, singleLine: true },
        });
  const logger: RootLogger = pino(options, stream);
  return logger;
}

const nothing = (): void => undefined;

/** Writes nothing: for tests and for commands that report by other means. */
export const silentLogger: Logger = {
  ...{ trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing },
  child: () => silentLogger,
  isLevelEnabled: () => false,
};

/** Part of a clock. */
export interface Timers {
  /** Calls back once; the timer alone must not keep the process alive. */
  setTimer(delayMilliseconds: number, callback: () => void): { cancel(): void };
}

const DEBUG_MINUTES = 10;

/**
 * Has SIGUSR2 raise the level to `debug` for ten minutes, without a restart that might hide the problem; another signal
 * restarts the ten minutes. A level that logs more already stays.
 */
export function debugOnSignal(log: RootLogger, timers: Timers): void {
  const rank = (level: string): number => LOG_LEVELS.indexOf(level as LogLevel);
  let raised: { readonly usual: string; readonly timer: ReturnType<Timers['setTimer']> } | undefined;
  process.on('SIGUSR2', () => {
    raised?.timer.cancel();
    const usual = raised?.usual ?? log.level;
    if (rank(usual) > rank('debug')) log.level = 'debug';
    const fields = { logLevel: log.level, usualLogLevel: usual, minutes: DEBUG_MINUTES };
    log.info(fields, 'log level raised by SIGUSR2');
    const timer = timers.setTimer(DEBUG_MINUTES * 60_000, () => {
      raised = undefined;
      log.info({ logLevel: usual }, 'log level restored');
      log.level = usual;
    });
    raised = { usual, timer };
  });
}

const REDACTED = '[redacted]';

/** Names of secret fields, in whatever case, with dashes or without. */
const SECRET_NAME =
  '(?:proxy-?)?authorization|(?:set-?)?cookie|[\\w-]*(?:token|passwords?|passwd|secrets?|api-?key)|' +
  '(?:client-?|private-?|tls-?)key(?:-?data)?|(?:client-?)?cert(?:ificate)?(?:-?data)?';
const SECRET_FIELD = new RegExp(`^(?:${SECRET_NAME})$`, 'i');

/** Patterns with their replacements. Quotes within a message may be escaped ones. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)\s+[\w.~+/-]{6,}=*/gi, `$1 ${REDACTED}`],
  // User and password in the address of a server.
  [/(\w:\/\/)[^\s/@"\\]+@/g, `$1${REDACTED}@`],
  [/-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)/gs, REDACTED],
  // JSON in base64, with what follows of a JSON web token: service accounts, OIDC and registries use it.
  [/\beyJ[\w-]{8,}(?:\.[\w-]*)*/g, REDACTED],
  // JSON or a query in the middle of a sentence.
  [new RegExp(`("(?:${SECRET_NAME})"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`([?&](?:${SECRET_NAME})=)[^\\s&"']+`, 'gi'), `$1${REDACTED}`],
];

/** Finds cheaply the few lines that need a closer look. */
const SUSPICIOUS =
  /authorization|cookie|token|passw|secret|api-?key|(?:client|private|tls)-?key|cert|bearer|basic|@|-----BEGIN|eyJ/i;

/**
 * Returns a line of the log without credentials: values of secret fields at any depth, and what looks like a credential in
 * any text.
 *
 * **Assumptions.** The line is what is about to be written, one JSON object: whatever way a value has taken into it.
 */
export function redactLine(line: string): string {
  if (!SUSPICIOUS.test(line)) return line;
  try {
    return `${JSON.stringify(redacted(JSON.parse(line)))}\n`;
  } catch {
    return redactText(line);
  }
}

/** Returns text that isn't a line of the log without credentials. */
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

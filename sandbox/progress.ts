/** Takes one line of news for people, without a line end. */
export type Log = (line: string) => void;

const CLEAR_LINE = '\r\x1b[2K';

interface Terminal {
  write(text: string): unknown;
  readonly columns: number;
}

/** The last line of a terminal, which shows the state of a long task; everything else is written above it. */
export class BottomLine {
  #text = '';

  constructor(private readonly terminal: Terminal) {}

  /** Replaces the line; the empty one isn't shown. */
  show(text: string): void {
    this.#clear();
    this.#text = text;
    this.#draw();
  }

  /** @param lines whole ones. @param stream another stream of the same terminal */
  writeAbove(lines: string, stream: Pick<Terminal, 'write'> = this.terminal): void {
    this.#clear();
    stream.write(lines);
    this.#draw();
  }

  #clear(): void {
    if (this.#text !== '') this.terminal.write(CLEAR_LINE);
  }

  #draw(): void {
    // A line as wide as the terminal would end in the next one.
    if (this.#text !== '') this.terminal.write(this.#text.slice(0, this.terminal.columns - 1));
  }
}

let bottomLine: BottomLine | undefined;
if (process.stderr.isTTY) {
  const line = (bottomLine = new BottomLine(process.stderr));
  process.on('exit', () => {
    line.show('');
  });
}

/** Writes whole lines to standard output or standard error. */
export function writeLines(stream: NodeJS.WriteStream, lines: string): void {
  // Of a file or a pipe, nothing is seen on the terminal.
  if (bottomLine && stream.isTTY) bottomLine.writeAbove(lines, stream);
  else stream.write(lines);
}

/** Writes a line to standard error: standard output stays free for results. */
export const logToStderr: Log = (line) => {
  writeLines(process.stderr, `${line}\n`);
};

const logsToStderr = new WeakSet<Log>([logToStderr]);

/** Returns a log to standard error that holds back its lines until it is released, so that they don't come in between others. */
export function heldLog(): { readonly log: Log; readonly release: () => void } {
  let held: string[] | undefined = [];
  const log: Log = (line) => {
    if (held) held.push(line);
    else logToStderr(line);
  };
  logsToStderr.add(log);
  const release = (): void => {
    held?.forEach(logToStderr);
    held = undefined;
  };
  return { log, release };
}

/** Shows the state of a long task until stopped: in the last line of the terminal, or else in the log every 15 seconds. */
export function showProgress(status: () => string, log: Log): { readonly stop: () => void } {
  const line = logsToStderr.has(log) ? bottomLine : undefined;
  const show = (): void => {
    if (line) line.show(status());
    else log(status());
  };
  const timer = setInterval(show, line ? 500 : 15_000);
  return {
    stop: () => {
      clearInterval(timer);
      line?.show('');
    },
  };
}

/** Milliseconds in words, for example `2 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

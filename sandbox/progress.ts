/** Takes one line of news for people, without a line end. */
export type Log = (line: string) => void;

const CLEAR_LINE = '\r\x1b[2K';
/** Specifies whether the last line of the terminal is one of progress, which the next line replaces. */
let rewritable = false;

/** Writes a line to standard error: standard output stays free for results. */
export const logToStderr: Log = (line) => {
  process.stderr.write(`${rewritable ? CLEAR_LINE : ''}${line}\n`);
  rewritable = false;
};

/** Shows the state of a long task until stopped: in one line of the terminal, or else in the log every 15 seconds. */
export function showProgress(status: () => string, log: Log): { readonly stop: () => void } {
  const onTerminal = log === logToStderr && process.stderr.isTTY;
  const show = (): void => {
    if (!onTerminal) log(status());
    else process.stderr.write(CLEAR_LINE + status().slice(0, process.stderr.columns - 1));
    rewritable = onTerminal;
  };
  const timer = setInterval(show, onTerminal ? 500 : 15_000);
  return {
    stop: () => {
      clearInterval(timer);
      if (rewritable) process.stderr.write(CLEAR_LINE);
      rewritable = false;
    },
  };
}

/** Milliseconds in words, for example `2 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

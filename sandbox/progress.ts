/** Takes one line of news for people, without a line end. */
export type Log = (line: string) => void;

/** Begins a line of the terminal again. */
const CLEAR = '\r\x1b[K';

/** Writes a line to standard error, in place of one that shows progress: standard output stays free for results. */
export const logToStderr: Log = (line) => {
  process.stderr.write(`${process.stderr.isTTY ? CLEAR : ''}${line}\n`);
};

/** Milliseconds between plain lines where a line cannot be redrawn. */
const lineInterval = 15_000;

/** Shows how far a long task is until stopped. */
export interface Progress {
  stop(): void;
}

/**
 * Redraws one line every second on a terminal; elsewhere, or with a `log` of one's own, gives a plain line every
 * 15 seconds.
 */
export function showProgress(status: () => string, log: Log): Progress {
  const redraw = log === logToStderr && process.stderr.isTTY;
  const timer = redraw
    ? setInterval(() => process.stderr.write(`${CLEAR}${status()}`), 1_000)
    : setInterval(() => {
        log(status());
      }, lineInterval);
  return {
    stop: () => {
      clearInterval(timer);
      if (redraw) process.stderr.write(CLEAR);
    },
  };
}

/** Milliseconds as people say them, for example `2 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Takes one line of news for people, without a line end. */
export type Log = (line: string) => void;

/** Writes a line to standard error: standard output stays free for results. */
export const logToStderr: Log = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Logs the state of a long task every 15 seconds until stopped. */
export function showProgress(status: () => string, log: Log): { readonly stop: () => void } {
  const timer = setInterval(() => {
    log(status());
  }, 15_000);
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** Milliseconds in words, for example `2 min 5 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

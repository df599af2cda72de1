/**
 * Works until it is done, or until Ctrl-C or SIGTERM; a second one ends the process the hard way.
 * @param signals those that interrupt it
 */
export async function untilInterrupted(
  work: (signal: AbortSignal) => Promise<void>,
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Promise<void> {
  const interrupted = new AbortController();
  const leave = (): void => {
    for (const name of signals) process.off(name, stop);
  };
  const stop = (): void => {
    // A listener that comes after would take itself for the only one, and end the process at once.
    setImmediate(leave);
    interrupted.abort();
  };
  for (const name of signals) process.on(name, stop);
  // Sockets and timers of the engine don't keep the process alive.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  try {
    await work(interrupted.signal);
  } finally {
    clearInterval(keepAlive);
    leave();
  }
}

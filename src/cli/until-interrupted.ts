/** Works until it is done, or until Ctrl-C or SIGTERM; a second one ends the process the hard way. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interrupted = new AbortController();
  const stop = (): void => {
    process.off('SIGINT', stop).off('SIGTERM', stop);
    interrupted.abort();
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Sockets and timers of the engine don't keep the process alive.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  try {
    await work(interrupted.signal);
  } finally {
    clearInterval(keepAlive);
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

const cleanups = new Set<() => void>();
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs `cleanup` when this process exits or gets SIGINT, SIGTERM or SIGHUP. The cleanup must be synchronous: on
 * exit nothing else runs. The signal keeps its effect: without another listener it ends the process.
 *
 * @returns a function that takes the cleanup back
 */
export function onInterrupt(cleanup: () => void): () => void {
  if (cleanups.size === 0) install();
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) uninstall();
  };
}

function install(): void {
  process.on('exit', runCleanups);
  for (const signal of signals) process.on(signal, onSignal);
}

function uninstall(): void {
  process.off('exit', runCleanups);
  for (const signal of signals) process.off(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  runCleanups();
  uninstall();
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}

function runCleanups(): void {
  for (const cleanup of [...cleanups]) {
    cleanups.delete(cleanup);
    try {
      cleanup();
    } catch (error) {
      process.stderr.write(`${String(error)}\n`);
    }
  }
}

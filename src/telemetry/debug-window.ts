import type { Timers } from './event-loop-check.js';
import { LOG_LEVELS } from './logger.js';
import type { LogLevel, RootLogger } from './logger.js';

const MINUTES = 10;

/**
 * Lets whoever can signal the process look closer for a while, without a restart that might cure what is looked at:
 * SIGUSR2 raises the level to `debug` for ten minutes; another one in that time starts them anew.
 *
 * **Guarantees.** Afterwards the level is what it was. One that says more already stays.
 * @returns ends it, and gives the signal back its usual effect
 */
export function debugOnSignal(log: RootLogger, timers: Timers): () => void {
  let usual: string | undefined;
  let timer: ReturnType<Timers['setTimer']> | undefined;
  const end = (): void => {
    timer?.cancel();
    timer = undefined;
    if (usual === undefined) return;
    log.info({ logLevel: usual }, 'Log level put back');
    log.level = usual;
    usual = undefined;
  };
  const begin = (): void => {
    timer?.cancel();
    usual ??= log.level;
    if (rank(usual) > rank('debug')) log.level = 'debug';
    // Told at the level that everybody reads, unless the log is silent about it by choice.
    log.info({ logLevel: log.level, usualLogLevel: usual, minutes: MINUTES }, 'Log level raised by SIGUSR2');
    timer = timers.setTimer(MINUTES * 60_000, end);
  };
  process.on('SIGUSR2', begin);
  return () => {
    process.off('SIGUSR2', begin);
    end();
  };
}

function rank(level: string): number {
  return LOG_LEVELS.indexOf(level as LogLevel);
}

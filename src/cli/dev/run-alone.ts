import { dirname } from 'node:path';
import { messageOf } from '../../contract/error.js';
import { aborted } from '../../engine/clock.js';
import { CliError } from '../exit.js';
import { untilInterrupted } from '../until-interrupted.js';
import { hintsFor } from './hints.js';
import { loadStand } from './stand.js';
import type { Cluster } from './stand.js';
import { hintLines } from './view.js';

/**
 * Keeps a control plane in which nothing is installed, until it is interrupted.
 * @throws CliError with exit code 2 where there is no sandbox in this package, 3 where it can't be started
 */
export async function runAlone(write: (text: string) => void): Promise<void> {
  const { startEmpty } = await loadStand();
  await untilInterrupted(
    async (signal) => {
      let up: Cluster | undefined;
      const starting = startEmpty((line) => {
        if (!signal.aborted) write(`${line}\n`);
      }).then((started) => (up = started));
      try {
        const cluster = await Promise.race([starting, aborted(signal)]);
        if (cluster) write(`${usage(cluster).join('\n')}\n`);
        await aborted(signal);
      } catch (error) {
        throw new CliError(`The sandbox can't be started: ${messageOf(error)}`, 3);
      } finally {
        // Of one that isn't up yet nobody can say how far it is; whatever there is of it ends with this process.
        if (signal.aborted && !up) process.exit();
        await up?.stop();
      }
    },
    ['SIGINT', 'SIGTERM', 'SIGHUP'],
  );
}

/** What somebody types elsewhere; `kubectl` is the sandbox's where there is none. */
function usage(cluster: Cluster): string[] {
  const hints = hintsFor(cluster, []);
  const path = hints.kubectl === 'kubectl' ? [] : [`  export PATH=${dirname(hints.kubectl)}:$PATH`];
  return ['A control plane runs, in which nothing is installed.', ...hintLines(hints), ...path];
}

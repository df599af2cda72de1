import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { startWatchdog } from '../watchdog.js';
import { CleanUp } from './clean-up.js';
import { playDemo } from './demo.js';
import { type DemoOptions, parseOptions } from './options.js';
import { Show } from './show.js';

/** Bad usage. */
const usage = 2;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let options: DemoOptions;
  try {
    options = parseOptions(args);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : usage;
  }
  const show = Show.onStandardOutput();
  const cleanUp = new CleanUp();
  const interruption = new AbortController();
  const interrupted = endOnSignals({ options, show, cleanUp, interruption });
  const watchdog = await startWatchdog();
  const folder = await mkdtemp(join(tmpdir(), 'reconstruct-demo-'));
  watchdog.watchFolder(folder);
  cleanUp.add('remove the demo’s files', () => rm(folder, { recursive: true, force: true }));
  introduce(show);
  const code = await playDemo({ options, show, cleanUp, watchdog, folder, signal: interruption.signal });
  await watchdog.release();
  return interrupted() ?? code;
}

function introduce(show: Show): void {
  show.heading('Reconstruct: one cdk8s construct, a Kubernetes operator');
  show.say(
    'This demo runs the operator for the kind AppService, of which a Deployment and a Service are made, and shows what ' +
      'it does when things change. Ctrl-C ends it and cleans up.',
  );
}

interface EndProps {
  readonly options: DemoOptions;
  readonly show: Show;
  readonly cleanUp: CleanUp;
  readonly interruption: AbortController;
}

/**
 * Ends the demo when it is interrupted. In a sandbox that is done at once: with this process everything goes that it
 * has started. What is in the user's cluster has to be removed in order, unless there is a second signal.
 *
 * @returns a function that gives the exit code of an interrupted demo
 */
function endOnSignals({ options, show, cleanUp, interruption }: EndProps): () => number | undefined {
  let code: number | undefined;
  const end = (newCode: number): void => {
    if (options.context === undefined || code !== undefined) process.exit(newCode);
    code = newCode;
    interruption.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (code === undefined) show.say('Interrupted: cleaning up.');
      else show.say('Interrupted again: ending at once. Remove by hand what may be left in your cluster:');
      if (code !== undefined) for (const command of cleanUp.byHand) show.command(command);
      end(128 + constants.signals[signal]);
    });
  }
  // Nobody reads any more, as in `npm run demo | head`.
  process.stdout.on('error', () => {
    if (code === undefined) end(128 + constants.signals.SIGPIPE);
  });
  return () => code;
}

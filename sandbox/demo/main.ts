import { mkdtemp, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { startWatchdog } from '../watchdog.js';
import { playDemo } from './demo.js';
import { CleanUp } from './stage.js';
import type { DemoOptions } from './stage.js';
import { Show } from './show.js';

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let options: DemoOptions;
  try {
    options = parseOptions(args);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
  const show = Show.onStandardOutput();
  const cleanUp = new CleanUp();
  const interruption = new AbortController();
  const interrupted = endOnSignals(options, show, cleanUp, interruption);
  const watchdog = await startWatchdog();
  const folder = await mkdtemp(join(tmpdir(), 'reconstruct-demo-'));
  watchdog.watchFolder(folder);
  cleanUp.add('remove the demo’s files', () => rm(folder, { recursive: true, force: true }));
  show.heading('Reconstruct: one cdk8s construct, a Kubernetes operator');
  show.say(
    'This demo shows the kind AppService, of which a Deployment and a Service are made: first what needs no cluster, then ' +
      'its operator, and what that does when things change. Ctrl-C ends it and cleans up.',
  );
  const code = await playDemo({ options, show, cleanUp, watchdog, folder, signal: interruption.signal });
  await watchdog.release();
  return interrupted() ?? code;
}

/** @throws commander's error, after it has printed what is wrong, or the help that was asked for */
function parseOptions(args: readonly string[]): DemoOptions {
  const command = new Command('npm run demo --')
    .description('Shows step by step what the operator does with an AppService, and times it')
    .option(
      '--context <name>',
      'use this context of your kubeconfig, in a namespace of its own, not a sandbox',
    )
    .option('--keep', 'leave the sandbox up, and say how to use it', false)
    .option('--image <image>', "image for the sample's pods, for a cluster that cannot pull its nginx:1.7.9")
    .allowExcessArguments(false)
    .showHelpAfterError()
    .exitOverride();
  command.parse(args, { from: 'user' });
  const options = command.opts<DemoOptions>();
  if (options.keep && options.context !== undefined)
    command.error('error: --keep is for the sandbox; with --context there is none. Leave one of them out.');
  return options;
}

/**
 * Ends the demo when it is interrupted. In a sandbox that is done at once: with this process everything goes that it
 * has started. What is in the user's cluster has to be removed in order, unless there is a second signal.
 *
 * @returns a function that gives the exit code of an interrupted demo
 */
function endOnSignals(
  { context }: DemoOptions,
  show: Show,
  cleanUp: CleanUp,
  interruption: AbortController,
): () => number | undefined {
  let code: number | undefined;
  const end = (newCode: number): void => {
    if (context === undefined || code !== undefined) process.exit(newCode);
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
  // The reader has ended, as in `npm run demo | head`.
  process.stdout.on('error', () => {
    if (code === undefined) end(128 + constants.signals.SIGPIPE);
  });
  return () => code;
}

import { existsSync } from 'node:fs';
import { Command } from 'commander';
import type { ProjectOptions } from './dev/load.js';
import { CliError } from './exit.js';
import { CONFIG_FILE, withShared } from './options.js';
import type { SharedOptions } from './options.js';

interface DevFlags extends SharedOptions {
  /** False where `--no-operator` is given. */
  readonly operator?: boolean;
}

/** `reconstruct dev`: runs a kind in a cluster of its own, and reloads it on each save. */
export function devCommand(): Command {
  const command = new Command('dev')
    .summary('try a kind of your own in a cluster of its own, reloaded on each save')
    .description(
      'Starts a control plane on this machine, applies the CRDs of the kinds and the samples, runs the controller, and ' +
        'shows their status. Saves are loaded at once. Ctrl-C ends it, and leaves nothing behind.',
    )
    .argument(
      '[source...]',
      'files, folders and patterns of samples (default: samples/*.yaml, else sample.yaml, beside the configuration)',
    )
    .option(
      '--no-operator',
      'the control plane alone, in which nothing is installed: to try an installation on it',
    )
    .action(async (samples: readonly string[], flags: DevFlags) => {
      const { runControlPlane, runDev } = await import('./dev/session.js');
      await (flags.operator === false ? runControlPlane() : runDev(optionsOf(samples, flags)));
    });
  return withShared(command, { config: true, kinds: true });
}

/** `reconstruct dev-load`: loads the author's code for `dev`; hidden. */
export function devLoadCommand(): Command {
  const command = new Command('dev-load')
    .description('loads a configuration and samples, and sends them to its parent process')
    .argument('[source...]')
    .action(async (samples: readonly string[], flags: DevFlags) => {
      const { sendProject } = await import('./dev/load.js');
      await sendProject(optionsOf(samples, flags));
    });
  return withShared(command, { config: true, kinds: true });
}

function optionsOf(samples: readonly string[], { config, kinds }: DevFlags): ProjectOptions {
  const file = config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (config !== undefined && !existsSync(config))
    throw new CliError(`${config}: there is no such file; check the path given to --config`, 2);
  if (file === undefined && !kinds)
    throw new CliError(
      `There is no ${CONFIG_FILE} here; go to its folder, name another with --config, or kinds with --kinds`,
      2,
    );
  return { samples, ...(file !== undefined && { config: file }), ...(kinds && { kinds }) };
}

import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { CONFIG_FILE } from './config.js';
import type { ProjectOptions } from './dev/project.js';
import { CliError } from './exit.js';
import { sharedOptions } from './options.js';

interface DevFlags {
  readonly config?: string;
  readonly kinds?: readonly string[];
  /** False where `--no-operator` is given. */
  readonly operator?: boolean;
}

/** `reconstruct dev`: a kind of one's own in a cluster of its own, loaded anew on each save. */
export function devCommand(): Command {
  return new Command('dev')
    .summary('try a kind of your own in a cluster of its own, loaded anew on each save')
    .description(
      'Starts a control plane on this machine, applies the CRDs of the kinds and the samples, runs the controller, and ' +
        'shows how they fare. What is saved is loaded at once. Ctrl-C ends it, and leaves nothing behind.',
    )
    .argument(
      '[source...]',
      'files, folders and patterns of samples (default: samples/*.yaml, else sample.yaml, beside the configuration)',
    )
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .option(
      '--no-operator',
      'the control plane alone, in which nothing is installed: to try an installation on it',
    )
    .action(async (samples: readonly string[], flags: DevFlags) => {
      if (flags.operator === false) {
        const { runAlone } = await import('./dev/run-alone.js');
        await runAlone((text) => process.stdout.write(text));
        return;
      }
      const { runDev } = await import('./dev/run-dev.js');
      await runDev(optionsOf(samples, flags));
    });
}

/** What `dev` starts to load the author's code: hidden, since its result is for `dev` alone. */
export function devLoadCommand(): Command {
  return new Command('dev-load')
    .description('loads a configuration and samples, and tells its parent process')
    .argument('[source...]')
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .action(async (samples: readonly string[], flags: DevFlags) => {
      const { tellProject } = await import('./dev/tell-project.js');
      await tellProject(optionsOf(samples, flags));
    });
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

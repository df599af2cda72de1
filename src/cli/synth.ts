import { Command, Option } from 'commander';
import { OperatorError } from '../contract/error.js';
import type { FlagValues } from '../contract/kind.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, SOURCES, withShared } from './options.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { policyOf } from './policy-file.js';
import { print, printError, warn } from './output.js';

interface SynthFlags extends SharedOptions {
  readonly output?: string;
  readonly stdout?: boolean;
}

/** `reconstruct synth`: renders custom resources to manifests, without asking any cluster. */
export function synthCommand(): Command {
  const command = new Command('synth')
    .summary('render custom resources to manifests')
    .description(
      'Validates custom resources and renders them to manifests, without asking any cluster. ' +
        'Nothing is written unless all of them can be rendered.',
    )
    .argument('<source...>', SOURCES)
    .option(
      '-o, --output <dir>',
      'write one file per custom resource to this folder (default: standard output)',
    )
    .addOption(
      new Option('--stdout', 'write to standard output, also when run by "cdk8s synth"').conflicts('output'),
    )
    .action((sources: readonly string[], flags: SynthFlags) => run(sources, flags, kindFlagValues(flags)));
  withShared(command, { namespace: true, recursive: true, config: true, kinds: true, policy: true });
  return addKindFlags(command);
}

async function run(sources: readonly string[], flags: SynthFlags, ofKinds: FlagValues): Promise<void> {
  // Loaded here, so that `--help` needs neither cdk8s nor ajv.
  const [{ synth }, { writeFolder }] = await Promise.all([
    import('../synth/synth.js'),
    import('../synth/folder.js'),
  ]);
  const { namespace, recursive } = flags;
  const kinds = await loadKinds(flags);
  const policy = await policyOf(flags);
  try {
    const files = await synth({
      kinds,
      sources,
      flags: ofKinds,
      warn,
      note: printError,
      ...(namespace !== undefined && { namespace }),
      ...(recursive !== undefined && { recursive }),
      ...(policy && { policy }),
    });
    // `cdk8s synth` reads what its app wrote from the folder that it names in the environment.
    const folder = flags.stdout ? undefined : (flags.output ?? (process.env.CDK8S_OUTDIR || undefined));
    if (folder === undefined) await print(files.map(({ text }) => text).join(''));
    else writeFolder(folder, files);
  } catch (error) {
    if (error instanceof OperatorError) throw new CliError(error.message.split('\n'), 2);
    throw error;
  }
}

import { Command, Option } from 'commander';
import { OperatorError } from '../contract/error.js';
import type { FlagValues } from '../contract/kind.js';
import { builtInFlags } from '../kinds/flags.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, sharedOptions } from './options.js';
import { kindsOnRequest } from './config.js';
import { policyOf } from './policy-file.js';
import { print } from './output.js';

interface SynthFlags {
  readonly output?: string;
  readonly stdout?: boolean;
  readonly namespace?: string;
  readonly recursive?: boolean;
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
}

/** `reconstruct synth`: renders custom resources to manifests, without asking any cluster. */
export function synthCommand(kindFlags = builtInFlags): Command {
  const command = new Command('synth')
    .summary('render custom resources to manifests')
    .description(
      'Validates custom resources and renders them to manifests, without asking any cluster. ' +
        'Nothing is written unless all of them can be rendered.',
    )
    .argument('<source...>', 'files, folders with .yaml, .yml and .json files, or - for standard input')
    .addOption(
      new Option(
        '-o, --output <dir>',
        'write one file per custom resource to this folder; the default is standard output',
      ),
    )
    .addOption(
      new Option('--stdout', 'write to standard output, also when run by "cdk8s synth"').conflicts('output'),
    )
    .option('-n, --namespace <name>', 'the namespace of custom resources that name none')
    .option('-R, --recursive', 'look into subfolders too')
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .addOption(sharedOptions.policy())
    .action((sources: readonly string[], flags: SynthFlags) =>
      run(sources, flags, kindFlagValues(kindFlags, flags)),
    );
  return addKindFlags(command, kindFlags);
}

async function run(sources: readonly string[], flags: SynthFlags, ofKinds: FlagValues): Promise<void> {
  // Loaded here, so that `--help` needs neither cdk8s nor ajv.
  const [{ builtInKinds }, { loadKinds }, { synth }, { writeFolder }] = await Promise.all([
    import('../kinds/index.js'),
    import('./config.js'),
    import('../synth/synth.js'),
    import('../synth/folder.js'),
  ]);
  const { namespace, recursive, config, kinds: names } = flags;
  const kinds = await loadKinds({
    builtIn: builtInKinds,
    onRequest: kindsOnRequest,
    ...(config !== undefined && { config }),
    ...(names !== undefined && { kinds: names }),
  });
  const policy = await policyOf(flags, builtInKinds);
  try {
    const files = await synth({
      kinds,
      sources,
      flags: ofKinds,
      warn: (line) => void process.stderr.write(`warning: ${line}\n`),
      note: (line) => void process.stderr.write(`${line}\n`),
      ...(namespace !== undefined && { namespace }),
      ...(recursive !== undefined && { recursive }),
      ...(policy && { policy }),
    });
    const folder = outputFolder(flags, process.env);
    if (folder === undefined) await print(files.map(({ text }) => text).join(''));
    else writeFolder(folder, files);
  } catch (error) {
    if (error instanceof OperatorError) throw new CliError(error.message.split('\n'), 2);
    throw error;
  }
}

/** `cdk8s synth` reads what its app wrote from the folder that it names in the environment. */
function outputFolder({ output, stdout }: SynthFlags, env: NodeJS.ProcessEnv): string | undefined {
  if (stdout) return undefined;
  return output ?? (env.CDK8S_OUTDIR || undefined);
}

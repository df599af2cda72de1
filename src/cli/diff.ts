import { Command, Option } from 'commander';
import type { FlagValues } from '../contract/kind.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import type { ClusterOptions } from './cluster.js';
import { loadKinds } from './config.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, namespace, sharedOptions } from './options.js';
import { paint, print, printError, warn } from './output.js';
import { policyOf, policyParser } from './policy-file.js';

interface DiffOptions extends ClusterOptions {
  readonly output: 'text' | 'json';
  readonly namespace?: string;
  readonly recursive?: boolean;
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
  readonly watchNamespace?: readonly string[];
  readonly operatorNamespace?: string;
}

/** `reconstruct diff`: shows what would change in the cluster. */
export function diffCommand(): Command {
  const command = new Command('diff')
    .summary('show what custom resources would change in the cluster')
    .description(
      'Shows what would change in the cluster if these custom resources were applied and the controller had acted. ' +
        'Nothing is written. Exit code 0: nothing would change, 1: something would.',
    )
    .argument('<source...>', 'files, folders with .yaml, .yml and .json files, or - for standard input')
    .addOption(
      new Option('-o, --output <format>', 'for people or for programs')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addOption(
      new Option(
        '-n, --namespace <name>',
        "the namespace of custom resources that name none (default: the context's)",
      ).argParser(namespace),
    )
    .option('-R, --recursive', 'look into subfolders too')
    .addOption(sharedOptions.kubeconfig())
    .addOption(sharedOptions.context())
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .addOption(sharedOptions.policy('that of the installed operator'))
    .addOption(sharedOptions.watchNamespace())
    .addOption(
      new Option(
        '--operator-namespace <name>',
        `where the controller runs (default: where it is installed, else ${DEFAULT_NAMESPACE})`,
      ).argParser(namespace),
    )
    .action((sources: readonly string[], options: DiffOptions) =>
      run(sources, options, kindFlagValues(options)),
    );
  return addKindFlags(command);
}

async function run(sources: readonly string[], options: DiffOptions, flags: FlagValues): Promise<void> {
  // Loaded here, so that `--help` needs none of it.
  const [
    { withCluster },
    { compare, differs, refusals },
    { jsonOf, textOf },
    { operatorContext },
    { render },
  ] = await Promise.all([
    import('./cluster.js'),
    import('./diff/compare.js'),
    import('./diff/text.js'),
    import('./operators.js'),
    import('../synth/render.js'),
  ]);
  const kinds = await loadKinds(options);
  const policy = await policyOf(options);
  const { watchNamespace: watchNamespaces, operatorNamespace, recursive = false } = options;
  await withCluster(options, async (cluster, { transport, namespace: own }) => {
    const contextFor = operatorContext({
      ...{ cluster, render, flags, warn, note: printError, policy, watchNamespaces, operatorNamespace },
      parsePolicy: async (name, text) => (await policyParser(options))(name, text),
    });
    const outcome = await compare({
      ...{ sources, kinds, transport, contextFor, warn, recursive },
      namespace: options.namespace ?? own,
    });
    await print(options.output === 'json' ? jsonOf(outcome) : textOf(outcome, paint));
    const refused = refusals(outcome);
    if (refused.length > 0) throw new CliError(refused, 3);
    if (differs(outcome)) process.exitCode = 1;
  });
}

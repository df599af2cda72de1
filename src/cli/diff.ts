import { Command } from 'commander';
import type { FlagValues } from '../contract/kind.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import { loadKinds } from './config.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues, OF_CONTEXT, outputFormat, SOURCES, withShared } from './options.js';
import type { SharedOptions } from './options.js';
import { paint, print, printError, warn } from './output.js';
import { policyOf, policyParser } from './policy-file.js';

interface DiffOptions extends SharedOptions {
  readonly output: 'text' | 'json';
}

/** `reconstruct diff`: shows what would change in the cluster. */
export function diffCommand(): Command {
  const command = new Command('diff')
    .summary('show what custom resources would change in the cluster')
    .description(
      'Shows what would change in the cluster if these custom resources were applied and the controller had acted. ' +
        'Nothing is written. Exit code 0: nothing would change, 1: something would.',
    )
    .argument('<source...>', SOURCES)
    .addOption(outputFormat())
    .action((sources: readonly string[], options: DiffOptions) =>
      run(sources, options, kindFlagValues(options)),
    );
  withShared(command, {
    ...({ namespace: OF_CONTEXT, recursive: true, kubeconfig: true, context: true } as const),
    ...({ config: true, kinds: true, policy: 'that of the installed operator' } as const),
    watchNamespace: true,
    operatorNamespace: `where the controller runs (default: where it is installed, else ${DEFAULT_NAMESPACE})`,
  });
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

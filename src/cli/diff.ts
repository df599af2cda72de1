import { Command, Option } from 'commander';
import type { FlagValues } from '../contract/kind.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import { builtInFlags } from '../kinds/flags.js';
import { loadKinds } from './config.js';
import { differs, refusals } from './diff/outcome.js';
import type { Outcome } from './diff/outcome.js';
import { CliError } from './exit.js';
import { addKindFlags, kindFlagValues } from './kind-flags.js';
import { kindsOnRequest } from './kinds-on-request.js';
import { namespace, sharedOptions } from './options.js';
import { paint } from './paint.js';
import { plain } from './plain.js';
import { policyOf, policyParser } from './policy-option.js';
import { print } from './print.js';
import { withCluster } from './with-cluster.js';
import type { ClusterOptions } from './with-cluster.js';

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

/** `reconstruct diff`: what would change in the cluster. */
export function diffCommand(flags = builtInFlags): Command {
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
      run(sources, options, kindFlagValues(flags, options)),
    );
  return addKindFlags(command, flags);
}

async function run(sources: readonly string[], options: DiffOptions, flags: FlagValues): Promise<void> {
  // Loaded here, so that `--help` needs none of it.
  const [{ builtInKinds }, { compare }, { answering }, { textOf }, { jsonOf }] = await Promise.all([
    import('../kinds/index.js'),
    import('./diff/compare.js'),
    import('./diff/answering.js'),
    import('./diff/text.js'),
    import('./diff/json.js'),
  ]);
  const [{ operatorContext }, { operatorPolicy }] = await Promise.all([
    import('./diff/operator-context.js'),
    import('./diff/operator-policy.js'),
  ]);
  const [{ render }, { ClusterClient }] = await Promise.all([
    import('../synth/render.js'),
    import('./cluster-client.js'),
  ]);
  const kinds = await loadKinds({ ...options, builtIn: builtInKinds, onRequest: kindsOnRequest });
  const policy = await policyOf(options, builtInKinds);
  const warn = (line: string): void => void process.stderr.write(`warning: ${plain(line)}\n`);
  const note = (line: string): void => void process.stderr.write(`${plain(line)}\n`);
  const { watchNamespace, operatorNamespace } = options;
  const parse = policyParser(options, builtInKinds);
  let outcome: Outcome = { objects: [], explanations: [] };
  await withCluster(options, async (_, connection) => {
    const transport = answering(connection.transport);
    const cluster = new ClusterClient(transport);
    const contextFor = operatorContext({
      ...{ cluster, render, flags, warn },
      policyOf: operatorPolicy({ cluster, parse, warn, note }),
      ...(policy && { policy }),
      ...(watchNamespace && { watchNamespaces: watchNamespace }),
      ...(operatorNamespace !== undefined && { operatorNamespace }),
    });
    outcome = await compare({
      ...{ sources, kinds, transport, contextFor, warn },
      namespace: options.namespace ?? connection.namespace,
      recursive: options.recursive ?? false,
    });
  });
  await print(options.output === 'json' ? jsonOf(outcome) : textOf(outcome, paint));
  const refused = refusals(outcome);
  if (refused.length > 0) throw new CliError(refused, 3);
  if (differs(outcome)) process.exitCode = 1;
}

import { Command, Option } from 'commander';
import type { Kind } from '../contract/kind.js';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import { kindsOnRequest } from './config.js';
import { namespace, sharedOptions } from './options.js';
import { withCluster } from './with-cluster.js';
import type { ClusterOptions } from './with-cluster.js';

interface UninstallOptions extends ClusterOptions {
  readonly namespace: string;
  readonly config?: string;
  readonly purge?: boolean;
  readonly dryRun?: boolean;
}

/** `reconstruct uninstall`: takes away what `reconstruct install` has made. */
export function uninstallCommand(): Command {
  return new Command('uninstall')
    .summary('remove what install has made')
    .description(
      'Removes what "reconstruct install" has made, and nothing of others. CRDs, custom resources, and what was ' +
        'made of them stay, unless they are purged.',
    )
    .addOption(
      new Option('-n, --namespace <name>', 'where the operator was installed')
        .argParser(namespace)
        .default(DEFAULT_NAMESPACE),
    )
    .option('--purge', 'CRDs, custom resources and what was made of them go too; what is shared is released')
    .option('--dry-run', 'only tell what would be done')
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kubeconfig())
    .addOption(sharedOptions.context())
    .action(run);
}

async function run(options: UninstallOptions): Promise<void> {
  const [{ builtInKinds }, { loadKinds }, { uninstall }] = await Promise.all([
    import('../kinds/index.js'),
    import('./config.js'),
    import('../install/uninstall.js'),
  ]);
  const named = await loadKinds({ ...options, builtIn: builtInKinds });
  const kinds = [...named, ...(await onRequestBeside(named))];
  const { purge = false, dryRun = false } = options;
  await withCluster(options, (cluster) =>
    uninstall(
      { namespace: options.namespace, kinds, purge, dryRun },
      cluster,
      (line) => void process.stdout.write(`${line}\n`),
    ),
  );
}

/** Whatever was asked for when it was installed. */
async function onRequestBeside(kinds: readonly Kind[]): Promise<Kind[]> {
  const onRequest = await Promise.all(Object.values(kindsOnRequest).map((load) => load()));
  const names = new Set(kinds.map(({ crd }) => crd.metadata.name));
  return onRequest.filter(({ crd }) => !names.has(crd.metadata.name));
}

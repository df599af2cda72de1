import { Command } from 'commander';
import { DEFAULT_NAMESPACE } from '../install/names.js';
import { kindsOnRequest, loadKinds } from './config.js';
import { namespace, withShared } from './options.js';
import type { SharedOptions } from './options.js';

interface UninstallOptions extends SharedOptions {
  readonly namespace: string;
  readonly purge?: boolean;
  readonly dryRun?: boolean;
}

/** `reconstruct uninstall`: removes what `reconstruct install` has made. */
export function uninstallCommand(): Command {
  const command = new Command('uninstall')
    .summary('remove what install has made')
    .description(
      'Removes what "reconstruct install" has made, and nothing of others. CRDs, custom resources, and what was ' +
        'made of them stay, unless they are purged.',
    )
    .option('-n, --namespace <name>', 'where the operator was installed', namespace, DEFAULT_NAMESPACE)
    .option('--purge', 'CRDs, custom resources and what was made of them go too; what is shared is released')
    .option('--dry-run', 'only print what would be done')
    .action(run);
  return withShared(command, { config: true, kubeconfig: true, context: true });
}

async function run(options: UninstallOptions): Promise<void> {
  const [{ withCluster }, { uninstall }] = await Promise.all([
    import('./cluster.js'),
    import('../install/uninstall.js'),
  ]);
  const named = await loadKinds(options);
  const names = new Set(named.map(({ crd }) => crd.metadata.name));
  // Kinds on request may have been asked for when it was installed.
  const onRequest = await Promise.all(Object.values(kindsOnRequest).map((load) => load()));
  const kinds = [...named, ...onRequest.filter(({ crd }) => !names.has(crd.metadata.name))];
  const { namespace, purge = false, dryRun = false } = options;
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  await withCluster(options, (cluster) => uninstall({ namespace, kinds, purge, dryRun }, cluster, say));
}

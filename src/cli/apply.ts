import { Command, Option } from 'commander';
import { loadKinds } from './config.js';
import { milliseconds, OF_CONTEXT, SOURCES, withShared } from './options.js';
import type { SharedOptions } from './options.js';
import { policyOf } from './policy-file.js';
import { plain, print, warn } from './output.js';
import { untilInterrupted } from './exit.js';

interface ApplyOptions extends SharedOptions {
  readonly prune?: boolean;
  readonly wait?: boolean;
  readonly timeout: number;
}

/** `reconstruct apply`: applies custom resources and their children once, without a controller. */
export function applyCommand(): Command {
  const command = new Command('apply')
    .summary('apply custom resources and what is made of them, without a controller')
    .description(
      'Applies custom resources and, where no operator is installed that looks after them, what is made of them: once, ' +
        'as the controller would. Nothing is written unless all of it could be, by a dry run.',
    )
    .argument('<source...>', SOURCES)
    .option('--prune', 'delete what these custom resources own, and do not render any more')
    .option('--wait', 'wait until they are ready, and report why not')
    .addOption(
      new Option('--timeout <duration>', 'how long to wait')
        .argParser(milliseconds)
        .default(milliseconds('5m'), '5m'),
    )
    .action(run);
  return withShared(command, {
    ...({ namespace: OF_CONTEXT, recursive: true, kubeconfig: true, context: true } as const),
    ...({ config: true, kinds: true, policy: true } as const),
    operatorNamespace: 'where an operator may be installed (default: it is looked for everywhere)',
  });
}

async function run(sources: readonly string[], options: ApplyOptions): Promise<void> {
  // Loaded here, so that `--help` needs none of it.
  const [
    { withCluster },
    { applyResources, waitUntilReady },
    { responsibleOperator },
    { render },
    { Api },
    { systemClock },
  ] = await Promise.all([
    import('./cluster.js'),
    import('./apply/resources.js'),
    import('./operators.js'),
    import('../synth/render.js'),
    import('../engine/api.js'),
    import('../engine/clock.js'),
  ]);
  const kinds = await loadKinds(options);
  const policy = await policyOf(options);
  const report = (line: string): Promise<void> => print(`${plain(line)}\n`);
  const { operatorNamespace, prune = false, recursive = false, timeout } = options;
  const deadline = performance.now() + timeout;
  await withCluster(options, async (cluster, { transport, namespace: own }) => {
    const applied = await applyResources({
      ...{ sources, kinds, transport, warn, report, prune, recursive },
      namespace: options.namespace ?? own,
      render: (kind, cr) => render(kind, cr, policy),
      operatorOf: responsibleOperator({ cluster, warn, operatorNamespace }),
      ...(options.wait && { deadline }),
    });
    if (!options.wait) return;
    const late = AbortSignal.timeout(Math.ceil(Math.max(0, deadline - performance.now())));
    const props = { api: new Api(transport), clock: systemClock, report, late, timeoutMilliseconds: timeout };
    await untilInterrupted((signal) => waitUntilReady(applied, { ...props, signal }));
    for (const { given } of applied)
      await report(`${given.after.kind} ${given.after.metadata.name} is ready`);
  });
}

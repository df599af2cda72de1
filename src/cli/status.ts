import { Command, Option } from 'commander';
import type { Kind } from '../contract/kind.js';
import type { StatusDocument } from './status/document.js';
import { loadKinds } from './config.js';
import { CliError } from './exit.js';
import { kindsOnRequest } from './kinds-on-request.js';
import { namespace, sharedOptions } from './options.js';
import { paint } from './paint.js';
import { print } from './print.js';
import { untilInterrupted } from './until-interrupted.js';
import { withCluster } from './with-cluster.js';
import type { ClusterOptions } from './with-cluster.js';

interface StatusOptions extends ClusterOptions {
  readonly output: 'text' | 'json';
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly watch?: boolean;
  readonly config?: string;
  readonly kinds?: readonly string[];
}

/** `reconstruct status`: how custom resources fare, and what is made of them. */
export function statusCommand(): Command {
  return new Command('status')
    .summary('show how custom resources fare, with children, pods and events')
    .description(
      'Shows how custom resources fare, with what is made of them down to the pods, and their last events. Nothing is ' +
        'written. Exit code 0, also where something is not ready: scripts use "kubectl wait".',
    )
    .argument('[KIND/NAME]', 'one custom resource, as in appservice/web (default: all of every kind)')
    .addOption(new Option('-n, --namespace <name>', "default: the context's").argParser(namespace))
    .addOption(new Option('-A, --all-namespaces', 'in every namespace').conflicts('namespace'))
    .option('-w, --watch', 'show what changes, until interrupted')
    .addOption(
      new Option('-o, --output <format>', 'for people or for programs')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addOption(sharedOptions.kubeconfig())
    .addOption(sharedOptions.context())
    .addOption(sharedOptions.config())
    .addOption(sharedOptions.kinds())
    .action(run);
}

async function run(text: string | undefined, options: StatusOptions): Promise<void> {
  // Loaded here, so that `--help` needs none of it.
  const [{ builtInKinds }, { targetOf }, { Look }, { Api }, { answering }] = await Promise.all([
    import('../kinds/index.js'),
    import('./status/targets.js'),
    import('./status/look.js'),
    import('../engine/api.js'),
    import('./diff/answering.js'),
  ]);
  const kinds = await loadKinds({ ...options, builtIn: builtInKinds, onRequest: kindsOnRequest });
  const targets = text === undefined ? kinds.map((kind) => ({ kind })) : [targetOf(text, kinds)];
  await withCluster(options, async (_, connection) => {
    const where = options.allNamespaces ? undefined : (options.namespace ?? connection.namespace);
    const look = new Look({ targets, ...(where !== undefined && { namespace: where }) });
    if (!options.watch) {
      const document = await look.once(new Api(answering(connection.transport)));
      await print(options.output === 'json' ? jsonOf(document) : await shown(document, kinds, where));
      return;
    }
    const [{ watching }, { systemClock }] = await Promise.all([
      import('./status/watching.js'),
      import('../engine/clock.js'),
    ]);
    await untilInterrupted((signal) =>
      watching(look, {
        ...{ api: new Api(connection.transport), clock: systemClock, signal, output: process.stdout, paint },
        ...{ write: print, json: options.output === 'json' },
      }),
    );
  });
}

async function shown(
  document: StatusDocument,
  kinds: readonly Kind[],
  where: string | undefined,
): Promise<string> {
  const [{ textOf }, { noneOf }] = await Promise.all([
    import('./status/text.js'),
    import('./status/none.js'),
  ]);
  const { resources, notes, unreadable = [] } = document;
  if (resources.length === 0 && unreadable.length > 0) throw new CliError(notes, 3);
  const none = noneOf(document, kinds, where);
  return textOf(document, { now: new Date(), paint, width: widthOf(), none });
}

function jsonOf(document: StatusDocument): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function widthOf(): number {
  return Math.max(process.stdout.isTTY ? process.stdout.columns : 80, 60);
}

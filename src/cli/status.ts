import { Command, Option } from 'commander';
import type { Kind } from '../contract/kind.js';
import { suggest } from '../contract/suggest.js';
import { kindName } from '../install/names.js';
import { loadKinds } from './config.js';
import { CliError, untilInterrupted } from './exit.js';
import { namespace, outputFormat, withShared } from './options.js';
import type { SharedOptions } from './options.js';
import { paint, print } from './output.js';
import type { List, Target } from './tree/collect.js';
import type { StatusDocument } from './tree/model.js';

interface StatusOptions extends SharedOptions {
  readonly output: 'text' | 'json';
  readonly allNamespaces?: boolean;
  readonly watch?: boolean;
}

/** `reconstruct status`: shows custom resources with their children, pods and events. */
export function statusCommand(): Command {
  const command = new Command('status')
    .summary('show the status of custom resources, with children, pods and events')
    .description(
      'Shows the status of custom resources, with their children down to the pods, and their last events. Nothing is ' +
        'written. Exit code 0, also where something is not ready: scripts use "kubectl wait".',
    )
    .argument('[KIND/NAME]', 'one custom resource, as in appservice/web (default: all of every kind)')
    .option('-n, --namespace <name>', "default: the context's", namespace)
    .addOption(new Option('-A, --all-namespaces', 'in every namespace').conflicts('namespace'))
    .option('-w, --watch', 'show what changes, until interrupted')
    .addOption(outputFormat())
    .action(run);
  return withShared(command, { kubeconfig: true, context: true, config: true, kinds: true });
}

async function run(text: string | undefined, options: StatusOptions): Promise<void> {
  // Loaded here, so that `--help` needs none of it.
  const [{ withCluster }, tree, { noneOf, textOf, watchText }, { Api }, { systemClock }] = await Promise.all([
    import('./cluster.js'),
    import('./tree/collect.js'),
    import('./tree/text.js'),
    import('../engine/api.js'),
    import('../engine/clock.js'),
  ]);
  const kinds = await loadKinds(options);
  const targets = text === undefined ? kinds.map((kind) => ({ kind })) : [targetOf(text, kinds)];
  const isJson = options.output === 'json';
  const { isTTY, columns } = process.stdout;
  const width = Math.max(isTTY ? columns : 80, 60);
  await withCluster(options, async (_, { transport, namespace }) => {
    const where = options.allNamespaces ? undefined : (options.namespace ?? namespace);
    const scope = { targets, namespace: where };
    const api = new Api(transport);
    const look = async (list: List, isFirst = true): Promise<StatusDocument> => {
      const document = await tree.look(scope, list);
      if (isFirst) await tree.refuseMissing(scope, document, list);
      return document;
    };
    if (options.watch) {
      const show = watchText({ isJson, isTTY, width, paint });
      let isFirst = true;
      const props = {
        ...{ api, clock: systemClock },
        look: (list: List) => look(list, isFirst),
        onDocument: async (document: StatusDocument) => {
          isFirst = false;
          const news = show(document, new Date());
          if (news !== '') await print(news);
          return false;
        },
      };
      await untilInterrupted((signal) => tree.follow({ ...props, signal }));
      return;
    }
    const document = await look(tree.lister(api));
    const { resources, notes, unreadable = [] } = document;
    if (isJson) await print(`${JSON.stringify(document, undefined, 2)}\n`);
    else if (resources.length === 0 && unreadable.length > 0) throw new CliError(notes, 3);
    else
      await print(textOf(document, { now: new Date(), paint, width, none: noneOf(document, kinds, where) }));
  });
}

/**
 * Reads `KIND/NAME`, where the kind is named as for `kubectl`: by kind, plural, singular or short name, with or without
 * its group.
 * @throws CliError with exit code 2 where it can't be read, or there is no such kind
 */
export function targetOf(text: string, kinds: readonly Kind[]): Target {
  const [named = '', name, ...rest] = text.split('/');
  if (named === '' || name === undefined || name === '' || rest.length > 0)
    throw new CliError(`${text}: write KIND/NAME, as in ${kinds[0]?.name ?? 'appservice'}/web`, 2);
  const found = kinds.filter((kind) => namesOf(kind).includes(named.toLowerCase()));
  const [kind] = found;
  if (kind && found.length === 1) return { kind, name };
  if (kind) {
    const full = found.map((one) => `${kindName(one)}/${name}`).join(' or ');
    throw new CliError(`${text}: several kinds are called ${named}; write ${full}`, 2);
  }
  const short = kinds.flatMap(namesOf).filter((each) => !each.includes('.'));
  const near = suggest(named, short);
  const meant = near === undefined ? '' : `; did you mean ${near}?`;
  const known = kinds.map(kindName).join(', ');
  throw new CliError(`${text}: there is no kind ${named}${meant}; the kinds are ${known}`, 2);
}

function namesOf({ crd: { spec } }: Kind): string[] {
  const { kind, plural, singular = kind, shortNames = [] } = spec.names;
  const names = [kind, plural, singular, ...shortNames].map((name) => name.toLowerCase());
  return names.flatMap((name) => [name, `${name}.${spec.group}`]);
}

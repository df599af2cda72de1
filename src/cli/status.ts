import { Command, Option } from 'commander';
import { rfc3339Seconds } from '../contract/conditions.js';
import type { Kind } from '../contract/kind.js';
import { suggest } from '../contract/suggest.js';
import type { Api } from '../engine/api.js';
import type { Clock } from '../engine/clock.js';
import { kindName } from '../install/names.js';
import { kindsOnRequest, loadKinds } from './config.js';
import { CliError, untilInterrupted } from './exit.js';
import { namespace, sharedOptions } from './options.js';
import { paint, plain, print } from './output.js';
import type { Paint } from './output.js';
import type { Source, Target } from './tree/collect.js';
import type { StatusDocument } from './tree/model.js';
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

/** `reconstruct status`: shows custom resources with their children, pods and events. */
export function statusCommand(): Command {
  return new Command('status')
    .summary('show the status of custom resources, with children, pods and events')
    .description(
      'Shows the status of custom resources, with their children down to the pods, and their last events. Nothing is ' +
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
  const [{ builtInKinds }, { listedSource, look, refuseMissing }, { Api }, { noneOf, textOf }] =
    await Promise.all([
      import('../kinds/index.js'),
      import('./tree/collect.js'),
      import('../engine/api.js'),
      import('./tree/text.js'),
    ]);
  const kinds = await loadKinds({ ...options, builtIn: builtInKinds, onRequest: kindsOnRequest });
  const targets = text === undefined ? kinds.map((kind) => ({ kind })) : [targetOf(text, kinds)];
  await withCluster(options, async (_, connection) => {
    const where = options.allNamespaces ? undefined : (options.namespace ?? connection.namespace);
    const scope = { targets, ...(where !== undefined && { namespace: where }) };
    const api = new Api(connection.transport);
    if (options.watch) {
      const { systemClock } = await import('../engine/clock.js');
      const json = options.output === 'json';
      const props = { api, clock: systemClock, output: process.stdout, paint, write: print, json };
      let isFirst = true;
      const collect = async (source: Source): Promise<StatusDocument> => {
        const document = await look(scope, source);
        if (isFirst) await refuseMissing(scope, document, api);
        isFirst = false;
        return document;
      };
      await untilInterrupted((signal) => watch(collect, { ...props, signal }));
      return;
    }
    const document = await look(scope, listedSource(api));
    await refuseMissing(scope, document, api);
    if (options.output === 'json') {
      await print(`${JSON.stringify(document, undefined, 2)}\n`);
      return;
    }
    const { resources, notes, unreadable = [] } = document;
    if (resources.length === 0 && unreadable.length > 0) throw new CliError(notes, 3);
    const none = noneOf(document, kinds, where);
    await print(textOf(document, { now: new Date(), paint, width: widthOf(process.stdout), none }));
  });
}

/** A terminal, or where output is redirected to. */
interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

function widthOf({ isTTY, columns = 80 }: Output): number {
  return Math.max(isTTY ? columns : 80, 60);
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

interface WatchProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly output: Output;
  readonly write: (text: string) => Promise<void>;
  readonly paint: Paint;
  /** Writes a line with a document for each change, in place of text. */
  readonly json: boolean;
}

/** Moves the cursor to the first line, and clears all below. */
const HOME = '\u001b[H\u001b[J';

/** Shows the trees, and then what changes, until the signal aborts: on a terminal in place, elsewhere line by line. */
export async function watch(
  collect: (source: Source) => Promise<StatusDocument>,
  props: WatchProps,
): Promise<void> {
  const { clock, output, write, paint, json } = props;
  const [{ follow }, { goneText, linesOf, newLines, textOf }] = await Promise.all([
    import('./tree/follow.js'),
    import('./tree/text.js'),
  ]);
  let last: { readonly text: string; readonly lines: ReadonlyMap<string, string> } | undefined;
  const shown = (document: StatusDocument, text: string, lines: ReadonlyMap<string, string>): string => {
    const now = new Date(clock.now());
    if (json) return text === last?.text ? '' : text;
    if (output.isTTY) return HOME + textOf(document, { now, paint, width: widthOf(output) });
    if (!last) return textOf(document, { now, paint });
    const changed = newLines(last.lines, lines, goneText(document));
    return changed.map((line) => `${rfc3339Seconds(now)} ${plain(line)}\n`).join('');
  };
  await follow({
    ...props,
    collect,
    onDocument: async (document) => {
      const [text, lines] = [`${JSON.stringify(document)}\n`, linesOf(document)];
      const output = shown(document, text, lines);
      last = { text, lines };
      if (output !== '') await write(output);
      return false;
    },
  });
}

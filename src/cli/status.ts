import type { Kind } from '../contract/kind.js';
import { suggest } from '../contract/suggest.js';
import { Api } from '../engine/api.js';
import { systemClock } from '../engine/clock.js';
import { kindName } from '../install/names.js';
import { withCluster } from './cluster.js';
import type { SharedOptions } from './commands.js';
import { loadKinds } from './config.js';
import { CliError, untilInterrupted } from './exit.js';
import { paint, print } from './output.js';
import { follow, lister, look, refuseMissing } from './tree/model.js';
import type { List, Target } from './tree/model.js';
import { noneOf, textOf, watchText } from './tree/text.js';

interface StatusOptions extends SharedOptions {
  readonly output: 'text' | 'json';
  readonly allNamespaces?: boolean;
  readonly watch?: boolean;
}

/** `reconstruct status`: shows custom resources with their children, pods and events. */
export async function runStatus(text: string | undefined, options: StatusOptions): Promise<void> {
  const kinds = await loadKinds(options);
  const targets = text === undefined ? kinds.map((kind) => ({ kind })) : [targetOf(text, kinds)];
  const isJson = options.output === 'json';
  const { isTTY, columns } = process.stdout;
  const width = Math.max(isTTY ? columns : 80, 60);
  await withCluster(options, async (_, { transport, namespace }) => {
    const where = options.allNamespaces ? undefined : (options.namespace ?? namespace);
    const scope = { targets, namespace: where };
    const api = new Api(transport);
    let isFirst = true;
    const lookAll = async (list: List) => {
      const document = await look(scope, list);
      if (isFirst) await refuseMissing(scope, document, list);
      isFirst = false;
      return document;
    };
    if (options.watch) {
      const show = watchText({ isJson, isTTY, width, paint });
      const watching = { api, clock: systemClock, look: lookAll };
      await untilInterrupted((signal) =>
        follow({
          ...{ ...watching, signal },
          onDocument: async (document) => {
            const news = show(document, new Date());
            if (news !== '') await print(news);
            return false;
          },
        }),
      );
      return;
    }
    const document = await lookAll(lister(api));
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
  const remedy =
    near === undefined ? `the kinds are ${kinds.map(kindName).join(', ')}` : `did you mean ${near}?`;
  throw new CliError(`${text}: there is no kind ${named}; ${remedy}`, 2);
}

function namesOf({ crd: { spec } }: Kind): string[] {
  const { kind, plural, singular = kind, shortNames = [] } = spec.names;
  const names = [kind, plural, singular, ...shortNames].map((name) => name.toLowerCase());
  return names.flatMap((name) => [name, `${name}.${spec.group}`]);
}

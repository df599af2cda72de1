import { groupKind } from '../contract/resource.js';
import { systemClock } from '../client/clock.js';
import { withCluster } from './cluster.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { untilInterrupted } from './exit.js';
import { CliError, paint, print } from './output.js';
import { noSuchResource, targetsOf } from './targets.js';
import type { KindTarget } from './targets.js';
import { follow, lister } from './reader.js';
import type { List } from './reader.js';
import { look } from './tree/model.js';
import type { ResourceStatus } from './tree/model.js';
import { documentText, noneOf, textOf, watchText } from './tree/text.js';

interface StatusOptions extends SharedOptions {
  readonly output: 'text' | 'wide' | 'json' | 'yaml' | 'name';
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly watch?: boolean;
}

/** `reconstruct status`: shows custom resources with their children, pods and events. */
export async function runStatus(words: readonly string[], options: StatusOptions): Promise<void> {
  const kinds = await loadKinds(options);
  const { output, selector, allNamespaces, watch = false } = options;
  const targets = targetsOf(words, kinds, selector);
  if (watch && (output === 'yaml' || output === 'name'))
    throw new CliError(`--watch prints text or JSON: write -o json instead of -o ${output}`);
  const { stdout } = process;
  const isWide = output === 'wide';
  const size = () => ({ columns: isWide ? Infinity : Math.max(stdout.columns, 40), rows: stdout.rows });
  await withCluster(options, async (_, { api, namespace }) => {
    const where = allNamespaces ? undefined : namespace;
    const scope = { targets, namespace: where, selector };
    let isFirst = true;
    const lookAll = async (list: List) => {
      const document = await look(scope, list);
      const named = isFirst ? targets.filter(({ name }) => name !== undefined) : [];
      const missing = named.find((target) => !document.resources.some((each) => isOf(target, each)));
      if (missing) throw await noSuchResource(missing, where, list);
      isFirst = false;
      return document;
    };
    if (watch) {
      const show = watchText({ isJson: output === 'json', isWide, paint, ...(stdout.isTTY && { size }) });
      return untilInterrupted(async (signal) => {
        for await (const document of follow({ api, clock: systemClock, look: lookAll, signal })) {
          const news = show(document, new Date());
          if (news !== '') await print(news);
        }
      });
    }
    const document = await lookAll(lister(api));
    const { resources, notes, unreadable = [] } = document;
    if (output === 'json' || output === 'yaml') return print(documentText(document, output));
    if (resources.length === 0 && unreadable.length > 0) throw new CliError(notes, 3);
    if (output === 'name') return print(resources.map((each) => `${nameOf(each)}\n`).join(''));
    const asked = targets.map(({ kind }) => kind);
    const none = noneOf(document, asked, where);
    const width = stdout.isTTY || isWide ? size().columns : 80;
    await print(textOf(document, { now: new Date(), paint, width, none, isWide }));
  });
}

function isOf({ kind, name }: KindTarget, resource: ResourceStatus): boolean {
  return groupKind(kind.type) === groupKind(resource) && name === resource.name;
}

/** Returns the name as `kubectl -o name` prints it: `appservice.kosmos.io/web`. */
function nameOf(resource: ResourceStatus): string {
  return `${groupKind(resource).toLowerCase()}/${resource.name}`;
}

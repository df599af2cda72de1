import { existsSync } from 'node:fs';
import { withCluster } from './cluster.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { compare, contextBy, differs, refusals } from './diff/compare.js';
import { compareLive } from './diff/live.js';
import { markdownOf } from './diff/markdown.js';
import { compareSince } from './diff/since.js';
import type { LiveDiff } from './diff/live.js';
import { documentOf, liveJson, liveText, NONE, textOf } from './diff/text.js';
import { CliError, paint, print, printError, showProgress, warn } from './output.js';
import { meansKind, targetsOf } from './targets.js';
import type { KindTarget } from './targets.js';
import { documentText } from './tree/text.js';

interface DiffOptions extends SharedOptions {
  readonly output: 'text' | 'json' | 'yaml' | 'markdown';
  readonly since?: string;
  readonly all?: boolean;
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly details?: number;
  readonly filename?: readonly string[];
}

/** `reconstruct diff`: shows what would change in the cluster. */
export async function runDiff(words: readonly string[], options: DiffOptions): Promise<void> {
  const { output, selector, all, allNamespaces, filename: files = [], since } = options;
  if (since !== undefined) {
    const details = options.details ?? (output === 'markdown' ? DETAILS : 0);
    const found = await compareSince([...words, ...files], { ...options, since, details });
    await conclude(manyText(found, output), found.changes.length > 0, []);
    return;
  }
  const kinds = await loadKinds(options);
  const [first] = [...files, ...words];
  const isFile = first !== undefined && (files.length > 0 || first === '-' || existsSync(first));
  const isMany = all === true || allNamespaces === true || selector !== undefined;
  if (isFile && isMany)
    throw new CliError(`${first}: a file excludes --all, --all-namespaces and --selector; leave out one`);
  const targets =
    isMany || (first !== undefined && !isFile && meansKind(first, kinds))
      ? targetsOf(words, kinds, selector)
      : undefined;
  if (!targets && first === undefined)
    throw new CliError('diff of what? Give files, KIND NAME..., or --all for all that is live');
  const isCounted = targets?.some(({ name }) => name === undefined);
  if (output === 'markdown' && !isCounted)
    throw new CliError('-o markdown is for what is counted: give --since or --all with it');
  const contextOf = await contextBy(options);
  await withCluster(options, async (cluster, { transport, namespace }) => {
    const common = { transport, contextFor: contextOf(cluster), warn };
    const live = async (named: readonly KindTarget[], details: number): Promise<LiveDiff> => {
      const progress = showProgress();
      const scope = { targets: named, namespace: allNamespaces ? undefined : namespace, selector };
      return compareLive({ ...common, ...scope, details, progress: progress.update }).finally(progress.end);
    };
    if (targets && isCounted) {
      const found = await live(targets, options.details ?? 0);
      await conclude(manyText(found, output), found.changes.length > 0, found.changes);
    } else {
      const { recursive = false } = options;
      const sources = [...words, ...files];
      const diff = targets
        ? (await live(targets, Infinity)).kept
        : await compare({ ...common, sources, kinds, recursive, namespace });
      const text =
        output === 'text'
          ? textOf(diff, paint)
          : documentText(documentOf(diff), output === 'yaml' ? 'yaml' : 'json');
      const errors = diff.objects.flatMap(({ error }) => error ?? []);
      await conclude(text, differs(diff), errors);
    }
  });
}

/** Number of objects that a comment shows in full. */
const DETAILS = 20;

function manyText(found: LiveDiff, output: DiffOptions['output']): string {
  if (output === 'markdown') return markdownOf(found);
  return output === 'text' ? liveText(found, paint) : documentText(liveJson(found), output);
}

/** Prints a diff, and sets the exit code. That nothing differs is for people, and leaves standard output empty. */
async function conclude(
  text: string,
  isDifferent: boolean,
  failures: Parameters<typeof refusals>[0],
): Promise<void> {
  if (text === '') printError(NONE);
  else await print(text);
  const refused = refusals(failures);
  if (refused.length > 0) throw new CliError(refused, 3);
  if (isDifferent) process.exitCode = 1;
}

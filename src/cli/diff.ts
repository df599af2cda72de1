import { existsSync } from 'node:fs';
import { withCluster } from './cluster.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { compare, contextBy, differs, refusals } from './diff/compare.js';
import { compareLive } from './diff/live.js';
import type { LiveDiff } from './diff/live.js';
import { documentOf, liveJson, liveText, NONE, textOf } from './diff/text.js';
import { CliError, paint, print, printError, showProgress, warn } from './output.js';
import { meansKind, targetsOf } from './targets.js';
import type { KindTarget } from './targets.js';
import { documentText } from './tree/text.js';

interface DiffOptions extends SharedOptions {
  readonly output: 'text' | 'json' | 'yaml';
  readonly all?: boolean;
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly details?: number;
  readonly filename?: readonly string[];
}

/** `reconstruct diff`: shows what would change in the cluster. */
export async function runDiff(words: readonly string[], options: DiffOptions): Promise<void> {
  const kinds = await loadKinds(options);
  const { output, selector, all, allNamespaces, filename: files = [] } = options;
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
  const contextOf = await contextBy(options);
  await withCluster(options, async (cluster, { transport, namespace }) => {
    const common = { transport, contextFor: contextOf(cluster), warn };
    const live = async (named: readonly KindTarget[], details: number): Promise<LiveDiff> => {
      const progress = showProgress();
      const scope = { targets: named, namespace: allNamespaces ? undefined : namespace, selector };
      return compareLive({ ...common, ...scope, details, progress: progress.update }).finally(progress.end);
    };
    if (targets?.some(({ name }) => name === undefined)) {
      const found = await live(targets, options.details ?? 0);
      const text = output === 'text' ? liveText(found, paint) : documentText(liveJson(found), output);
      await conclude(text, found.changes.length > 0, found.changes);
    } else {
      const { recursive = false } = options;
      const sources = [...words, ...files];
      const diff = targets
        ? (await live(targets, Infinity)).kept
        : await compare({ ...common, sources, kinds, recursive, namespace });
      const text = output === 'text' ? textOf(diff, paint) : documentText(documentOf(diff), output);
      const errors = diff.objects.flatMap(({ error }) => error ?? []);
      await conclude(text, differs(diff), errors);
    }
  });
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

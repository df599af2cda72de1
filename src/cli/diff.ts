import { existsSync } from 'node:fs';
import { render } from '../render/render.js';
import { withCluster } from './cluster.js';
import { kindFlagValues } from './options.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { compare, differs, refusals } from './diff/compare.js';
import type { Outcome } from './diff/compare.js';
import { compareLive } from './diff/live.js';
import { documentOf, liveJson, liveText, NONE, textOf } from './diff/text.js';
import { CliError } from './exit.js';
import { operatorContext } from './operators.js';
import { paint, print, printError, showProgress, warn } from './output.js';
import { policyOf, policyParser } from './policy-file.js';
import { meansKind, targetsOf } from './targets.js';
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
  const {
    output,
    selector,
    all,
    allNamespaces,
    watchNamespace: watchNamespaces,
    operatorNamespace,
  } = options;
  const { filename: files = [] } = options;
  const [first] = [...files, ...words];
  const isFile = first !== undefined && (files.length > 0 || first === '-' || existsSync(first));
  const isMany = all === true || allNamespaces === true || selector !== undefined;
  if (isFile && isMany)
    throw new CliError(`${first}: a file excludes --all, --all-namespaces and --selector; leave out one`, 2);
  const targets =
    isMany || (first !== undefined && !isFile && meansKind(first, kinds))
      ? targetsOf(words, kinds, selector)
      : undefined;
  if (!targets && first === undefined)
    throw new CliError('diff of what? Give files, KIND NAME..., or --all for all that is live', 2);
  const policy = await policyOf(options);
  await withCluster(options, async (cluster, { transport, namespace: own }) => {
    const contextFor = operatorContext({
      ...{ cluster, render, warn, note: printError, policy, watchNamespaces, operatorNamespace },
      flags: kindFlagValues(options),
      parsePolicy: async (name, text) => (await policyParser(options))(name, text),
    });
    const namespace = options.namespace ?? own;
    const common = { transport, contextFor, warn };
    const isNamed = targets?.every(({ name }) => name !== undefined) ?? true;
    let [errors, isDifferent]: [Outcome['objects'], boolean] = [[], false];
    if (targets) {
      const progress = showProgress();
      const where = allNamespaces ? undefined : namespace;
      const details = options.details ?? (isNamed ? Infinity : 0);
      const live = { ...common, targets, namespace: where, selector, details, progress: progress.update };
      const found = await compareLive(live).finally(progress.end);
      const document = isNamed ? documentOf(found.kept) : liveJson(found);
      const text = (): string => (isNamed ? textOf(found.kept, paint) : liveText(found, paint));
      await show(output === 'text' ? text() : documentText(document, output));
      [errors, isDifferent] = [found.errors, isNamed ? differs(found.kept) : found.changes.length > 0];
    } else {
      const { recursive = false } = options;
      const sources = [...words, ...files];
      const outcome = await compare({ ...common, sources, kinds, recursive, namespace });
      await show(output === 'text' ? textOf(outcome, paint) : documentText(documentOf(outcome), output));
      [errors, isDifferent] = [outcome.objects, differs(outcome)];
    }
    const refused = refusals({ objects: errors });
    if (refused.length > 0) throw new CliError(refused, 3);
    if (isDifferent) process.exitCode = 1;
  });
}

/** Prints what differs; that nothing does is for people, and leaves standard output empty. */
async function show(text: string): Promise<void> {
  if (text === '') printError(NONE);
  else await print(text);
}

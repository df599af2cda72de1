import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import type { Kind, RenderedType } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { groupOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { compareRendered } from '../../engine/preview/rollout.js';
import { objectsIn } from '../../validate/document.js';
import { adminFiles } from '../admin-file.js';
import { CONFIG_FILE, configurationsIn, loadKinds } from '../config.js';
import { untilInterrupted } from '../exit.js';
import { kindFlagValues } from '../options.js';
import type { SharedOptions } from '../options.js';
import { CliError, printError, warn } from '../output.js';
import { synth } from '../synth/synth.js';
import { NOTHING, Summary } from './live.js';
import type { LiveDiff } from './live.js';

interface SinceOptions extends SharedOptions {
  /** Revision of Git, or a folder. */
  readonly since: string;
  /** Maximum number of objects that differ and are kept in full. */
  readonly details: number;
}

type Run = (file: string, args: readonly string[], options?: object) => Promise<{ readonly stdout: string }>;

/**
 * Compares what custom resources render to with what they rendered to earlier, each with the kinds of its time, without a cluster.
 *
 * **Guarantees.** Nothing is written but a temporary folder, which goes in the end, also after a failure or a signal.
 *
 * @throws CliError where the revision or the folder isn't there, or one of both can't be rendered
 */
export async function compareSince(sources: readonly string[], options: SinceOptions): Promise<LiveDiff> {
  if (sources.length === 0 || sources.includes('-'))
    throw new CliError('--since compares files with what they were: give files or folders of the repository');
  const summary = new Summary(options.details);
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), 'reconstruct-since-')));
  await untilInterrupted(async (signal) => {
    const run: Run = (file, args, more) =>
      promisify(execFile)(file, args, { ...more, signal, encoding: 'utf8', maxBuffer: 2 ** 30 });
    try {
      const folder = await earlierFolder(options.since, temporary, run);
      // A package has kinds alone: they render the present custom resources.
      const cwd = folder.split(sep).includes('node_modules') ? resolve() : folder;
      const named = sources.map((source) => relative('.', source) || '.');
      const then = named.filter((path) => existsSync(resolve(cwd, path)));
      const before = then.length === 0 ? [] : await renderedEarlier({ folder, cwd, run }, then, options);
      const now = named.filter((path) => existsSync(path) || !then.includes(path));
      await addChanges(summary, before, now, options);
    } catch (error) {
      if (!signal.aborted) throw error;
      process.exitCode = 130;
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  });
  return summary.diff();
}

function stderrOf(error: unknown): string {
  const { stderr, message } = error as Partial<Readonly<Record<'stderr' | 'message', string>>>;
  return (stderr || message || '').trim();
}

/** Returns what the working directory was at a revision, or the folder that is named. */
async function earlierFolder(since: string, temporary: string, run: Run): Promise<string> {
  const git = (...args: string[]): Promise<string> => run('git', args).then(({ stdout }) => stdout.trim());
  let commit: string;
  try {
    commit = await git('rev-parse', '--verify', `${since}^{commit}`);
  } catch (error) {
    if (existsSync(join(since, '.'))) return resolve(since);
    throw new CliError(
      `--since ${since}: there is no such folder, and Git knows no such revision: ${stderrOf(error)}; a branch may have to be fetched first`,
    );
  }
  const [root, prefix] = [await git('rev-parse', '--show-toplevel'), await git('rev-parse', '--show-prefix')];
  const tree = join(temporary, 'tree');
  // An index of its own: that of the user, and the repository, stay as they are.
  const own = { cwd: root, env: { ...process.env, GIT_INDEX_FILE: join(temporary, 'index') } };
  await run('git', ['read-tree', commit], own);
  await run('git', ['checkout-index', '--all', `--prefix=${tree}/`], own);
  const folder = resolve(tree, prefix);
  mkdirSync(folder, { recursive: true });
  for (let at = folder; at.startsWith(tree); at = dirname(at)) {
    const [here, there] = [join(root, relative(tree, at)), at];
    const isSame = PACKAGES.every((name) => textOf(join(here, name)) === textOf(join(there, name)));
    const [installed, linked] = [here, there].map((each) => join(each, 'node_modules')) as [string, string];
    if (!existsSync(installed) || existsSync(linked)) continue;
    if (!isSame || /"workspaces"/.test(textOf(join(here, 'package.json'))))
      throw new CliError(
        `--since ${since}: has other packages, or workspaces: run "git worktree add ../since ${since}", install its packages ` +
          `there, as by "npm ci", and give --since ${join('../since', prefix)}`,
      );
    symlinkSync(installed, linked);
  }
  return folder;
}

const PACKAGES: readonly string[] = ['package-lock.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock'];

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** Returns what custom resources render to with the kinds of another folder, by the command that is installed there. */
async function renderedEarlier(
  { folder, cwd, run }: { readonly folder: string; readonly cwd: string; readonly run: Run },
  sources: readonly string[],
  options: SinceOptions,
): Promise<AnyObject[]> {
  const { kinds, namespace, policy, settings, recursive, since, config = CONFIG_FILE } = options;
  const file = join(folder, cwd === folder ? relative('.', config) : CONFIG_FILE);
  const isNamed = cwd !== folder || existsSync(file);
  const given = {
    ...{ ...kindFlagValues(options), '--kinds': kinds, '--namespace': namespace },
    ...{ '--policy': policy, '--settings': settings, '--config': isNamed ? file : undefined },
  };
  const flags = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [name, [value].flat().join()],
  );
  const args = ['synth', '--stdout', ...flags, ...(recursive ? ['--recursive'] : []), ...sources];
  try {
    const { stdout } = await run(process.execPath, [commandOf(folder), ...args], { cwd });
    return objectsIn({ name: since, text: stdout });
  } catch (error) {
    if (!existsSync(config) || isNamed)
      throw new CliError([
        `--since ${since}: can't be rendered as it was there:`,
        stderrOf(error).replaceAll(folder + sep, ''),
      ]);
    const [found] = configurationsIn(existsSync(dirname(file)) ? dirname(file) : folder);
    if (found !== undefined) {
      const other = relative(folder, found);
      const why = `there is no ${config}, but ${other}, which seems to be the configuration`;
      const have = `have ${other} here, too, such as \`export { default } from './${relative(dirname(other), config)}';\``;
      throw new CliError(`--since ${since}: ${why}: ${have}, and give --config ${other}`);
    }
    printError(`--since ${since}: there is no ${config}, so that all is new`);
    return [];
  }
}

/** Returns the command of the package that is installed for a folder, else this one. */
function commandOf(folder: string): string {
  try {
    const file = createRequire(join(folder, 'package.json')).resolve('cdk8s-reconstruct/package.json');
    return join(dirname(file), 'lib/bundle/reconstruct.mjs');
  } catch {
    return process.argv[1] ?? '';
  }
}

/** Renders custom resources as they are now, and adds what differs. */
async function addChanges(
  summary: Summary,
  before: readonly AnyObject[],
  sources: readonly string[],
  options: SinceOptions,
): Promise<void> {
  const { namespace, recursive = false } = options;
  const [kinds, files] = [await loadKinds(options), await adminFiles(options)];
  const common = { kinds, files, sources, recursive, flags: kindFlagValues(options), warn, note: printError };
  const given = { ...common, ...(namespace !== undefined && { namespace }) };
  const manifests = sources.length === 0 ? [] : await synth(given);
  const after = manifests.flatMap(objectsIn);
  for (const { type } of kinds) {
    const part = `.${type.kind.toLowerCase()}.${groupOf(type.apiVersion)}.`;
    const watched = manifests.filter(({ name }) => name.includes(part)).length;
    if (watched > 0) summary.add(type.kind, { ...NOTHING, watched });
  }
  const typeOf = ({ apiVersion, kind, metadata: { labels = {} } }: AnyObject): RenderedType | undefined => {
    const isOf = ({ type }: Kind): boolean =>
      Object.keys(selectorLabels(type, '')).some((name) => name in labels);
    const { rendering } = kinds.find(isOf) ?? {};
    const types = rendering && 'each' in rendering ? rendering.each.children : [];
    return types.find((type) => groupKind(type) === groupKind({ apiVersion, kind }));
  };
  summary.addObjects(compareRendered(before, after, typeOf));
}

import { existsSync, globSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Kind, OwnedKind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { installedRules } from '../../install/access.js';
import { DEFAULT_NAMESPACE } from '../../install/names.js';
import { readCustomResources } from '../../synth/custom-resource.js';
import type { CustomResourceInput } from '../../synth/custom-resource.js';
import { InputError } from '../../synth/problem.js';
import { loadKinds } from '../config.js';
import { CliError } from '../exit.js';
import { kindsOnRequest } from '../kinds-on-request.js';
import type { LoadedKind, LoadFailure, LoadOutcome, Project, ProjectOptions, Sample } from './project.js';

/** Loads a project and tells the parent process, which has asked for it. */
export async function tellProject(options: ProjectOptions): Promise<void> {
  try {
    await tell({ project: await readProject(options) });
  } catch (error) {
    await tell({ failure: failureOf(error) });
    // Of some mistakes Node tells the place only when it prints what nobody has caught.
    setImmediate(() => {
      throw error;
    });
  }
}

async function tell(outcome: LoadOutcome): Promise<void> {
  if (!process.send) throw new CliError('This command is for "reconstruct dev" alone; run that', 2);
  await new Promise<void>((resolve) => {
    process.send?.(outcome, undefined, undefined, () => {
      resolve();
    });
  });
}

/** Where samples are that name no namespace. */
const NAMESPACE = 'default';

/**
 * Loads a configuration and its samples, in this process: code of an author, which can be loaded only once.
 * @throws whatever the author's code throws, and CliError where the configuration isn't one
 */
async function readProject(options: ProjectOptions): Promise<Project> {
  const { config } = options;
  // What it throws by itself has its place, unlike what a command makes of it.
  if (config !== undefined) await import(pathToFileURL(resolve(config)).href);
  const kinds = await kindsOf(options);
  const sources = sampleSources(options.samples, dirname(config ?? 'any'));
  return {
    kinds: kinds.map(loadedKind),
    rules: installedRules(kinds, { namespace: DEFAULT_NAMESPACE }),
    sources,
    samples: await samplesIn(sources, kinds),
  };
}

/** Those that come with this package only by name: a configuration is about its own. */
async function kindsOf({ config, kinds }: ProjectOptions): Promise<Kind[]> {
  const { builtInKinds } = await import('../../kinds/index.js');
  return loadKinds({
    builtIn: kinds ? builtInKinds : [],
    onRequest: kindsOnRequest,
    ...(config !== undefined && { config }),
    ...(kinds && { kinds }),
  });
}

function loadedKind(kind: Kind): LoadedKind {
  const { name, type, crd } = kind;
  const { children = [], formerChildren = [] } = kind as Partial<OwnedKind>;
  return { name, type, crd, children, formerChildren };
}

async function samplesIn(sources: readonly string[], kinds: readonly Kind[]): Promise<Project['samples']> {
  if (sources.length === 0) return { valid: [] };
  try {
    const inputs = await readCustomResources({ sources, kinds, namespace: NAMESPACE });
    return { valid: inputs.map(sampleOf) };
  } catch (error) {
    if (error instanceof InputError) return { problems: error.lines };
    throw error;
  }
}

/** As it is written: defaults are the API server's matter. */
function sampleOf({ type, cr, document }: CustomResourceInput): Sample {
  const given = document.value as AnyObject;
  const { namespace, ...metadata } = given.metadata;
  const own = cr.metadata.namespace;
  return {
    type,
    object: { ...given, metadata: { ...metadata, ...(own !== undefined && { namespace: own }) } },
  };
}

/** For people, and where it was thrown as far as that isn't said already. */
function failureOf(error: unknown): LoadFailure {
  if (error instanceof CliError) return { message: error.message };
  const isNamed = error instanceof Error && !(error instanceof OperatorError) && error.name !== 'Error';
  const message = isNamed ? `${error.name}: ${error.message}` : messageOf(error);
  return { message, ...(error instanceof Error && error.stack !== undefined && { stack: error.stack }) };
}

/** Where samples are looked for, beside the configuration, when none are named. */
const USUAL = ['samples/*.{yaml,yml,json}', 'sample.yaml'];

/**
 * The files and folders that hold the samples.
 * @param named as on the command line: files, folders, and patterns that the shell has left as they are
 * @param folder the configuration's
 * @returns none where none are named, and none are where they usually are
 */
export function sampleSources(named: readonly string[], folder: string): string[] {
  if (named.length > 0) return named.flatMap((name) => (existsSync(name) ? [name] : matching(name)));
  for (const pattern of USUAL) {
    const found = globSync(pattern, { cwd: folder }).sort();
    if (found.length > 0) return found.map((file) => join(folder, file));
  }
  return [];
}

/** What matches nothing stays, so that somebody says that it isn't there. */
function matching(pattern: string): string[] {
  const found = globSync(pattern).sort();
  return found.length > 0 ? found : [pattern];
}

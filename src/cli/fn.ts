import { isDeepStrictEqual } from 'node:util';
import { Command, CommanderError } from 'commander';
import { OperatorError } from '../contract/error.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, Sections } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { suggest } from '../values/suggest.js';
import { decodeText } from '../values/yaml.js';
import { readStdin, remarkLine } from '../validate/document.js';
import { showValue } from '../values/path.js';
import { parseResourceList, renderList } from './synth/resource-list.js';
import type { ResourceList } from './synth/resource-list.js';
import { fnOptions, kindFlagValues } from './options.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { CliError, print, printError } from './output.js';
import { adminFiles, sectionsParser } from './admin-file.js';

/** `reconstruct fn`: renders the custom resources of a ResourceList, for kustomize, kpt and others. */
export async function runFn(flags: SharedOptions): Promise<void> {
  const list = parseResourceList(decodeText(await readStdin()));
  const rendering = optionsFor(list, flags).then((options) => renderList(list, options));
  const rendered = await rendering.catch(async (error: unknown) => {
    if (!(error instanceof CliError || error instanceof OperatorError)) throw error;
    const lines = error.message.split('\n');
    const results = lines.map((message) => ({ message, severity: 'error' as const }));
    const unchanged = list.items.map(({ node }) => node);
    await print(list.write(unchanged, results));
    throw new CliError(lines);
  });
  await print(rendered.text);
  if (rendered.problems.length > 0) throw new CliError(rendered.problems.map(remarkLine));
  rendered.notes.forEach(printError);
}

/** Returns the options of a list: those of the command line, and of its functionConfig. */
async function optionsFor({ functionConfig }: ResourceList, flags: SharedOptions) {
  const object = functionConfig?.object;
  const isOptions = object?.apiVersion === 'v1' && object.kind === 'ConfigMap';
  const { given, texts = [] } = isOptions ? readOptions(object, flags) : { given: {} };
  const all: SharedOptions = { ...given, ...flags };
  const kinds = await loadKinds(all);
  // A list that isn't understood may restrict something.
  if (object && !isOptions && !kinds.some(({ type }) => groupKind(type) === groupKind(object)))
    throw refusal(
      `${object.kind} of ${object.apiVersion} is nothing that is known here; give a ConfigMap with options, or one of ` +
        kinds.map(({ type }) => type.kind).join(', '),
    );
  const ofList: Record<string, Sections> = {};
  for (const [name, text] of texts)
    ofList[name] = (await sectionsParser(all))(name, `functionConfig: data.${name}`, text);
  const { namespace } = all;
  return {
    ...{ kinds, flags: kindFlagValues(all), files: { ...(await adminFiles(all)), ...ofList } },
    ...(namespace !== undefined && { namespace }),
  };
}

/** A list may not name code to run, and files of the admin are given as text. */
const NOT_HERE: readonly string[] = ['config', ...ADMIN_FILES];

/**
 * Reads options from a ConfigMap, whose keys are their names without dashes; `policy` and `settings` hold these themselves.
 * @param flags of the command line, which has the last word: a list comes from anywhere
 * @throws CliError with exit code 2
 */
function readOptions(
  { data }: AnyObject,
  flags: SharedOptions,
): { readonly given: object; readonly texts: ReadonlyMap<AdminFile, string> } {
  const command = new Command();
  for (const option of fnOptions()) command.addOption(option);
  const names = command.options.flatMap(({ long }) => (long ? [long.slice(2)] : []));
  const known = [...ADMIN_FILES, ...names.filter((name) => !NOT_HERE.includes(name))];
  const texts = new Map<AdminFile, string>();
  const args: string[] = [];
  for (const [key, value] of Object.entries((data ?? {}) as Readonly<Record<string, unknown>>)) {
    if (!known.includes(key)) {
      const near = suggest(key, known);
      const remedy = near ? `did you mean ${near}?` : `the keys are ${known.join(', ')}`;
      throw refusal(`data.${key}: there is no such option; ${remedy}`);
    }
    if (typeof value !== 'string')
      throw refusal(`data.${key}: ${showValue(value)} is not text; put it in quotes`);
    const file = ADMIN_FILES.find((name) => name === key);
    if (file) texts.set(file, value);
    else args.push(`--${key}=${value}`);
  }
  let given: object;
  try {
    command.exitOverride().configureOutput({ writeErr: () => undefined });
    given = command.parse(args, { from: 'user' }).opts();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw refusal(error.message.replace(/^error: /, ''));
  }
  const ofList = { ...given, ...Object.fromEntries(texts) } as Readonly<Record<string, unknown>>;
  for (const [name, value] of Object.entries(flags)) {
    if (ofList[name] === undefined || isDeepStrictEqual(ofList[name], value)) continue;
    const long = command.options.find((option) => option.attributeName() === name)?.long ?? name;
    throw refusal(`data.${long.replace(/^--/, '')}: ${long} gives another one already; remove it`);
  }
  return { given, texts };
}

function refusal(message: string): CliError {
  return new CliError(`functionConfig: ${message}`);
}

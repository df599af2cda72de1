import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { shownOption } from '../author/definition.js';
import type { Kind, StandaloneController } from '../contract/kind.js';
import { describeThrown, markedOrigin, originOf } from '../values/origin.js';
import { groupKind } from '../contract/resource.js';
import { suggest } from '../values/suggest.js';
import { kindName } from '../install/names.js';
import { CliError } from './output.js';
import { isMap } from '../values/json.js';

/** Loaded from the working directory when no other file is named. */
export const CONFIG_FILE = 'reconstruct.config.mjs';

/** Kinds of the project that are loaded only where `--kinds` names them, by name and group. */
export const kindsOnRequest: Readonly<Record<string, () => Promise<Kind>>> = {
  'appservice.app.example.com': async () =>
    (await import('../kinds/app-service/kind.js')).appServiceOfExample,
};

export interface Config {
  /** Kinds of your own, each made with `defineKind`. @default - none */
  readonly kinds?: readonly Kind[];
  /** Controllers without custom resources, made by `decorate`, or by `defineController` without a CRD. @default - none */
  readonly controllers?: readonly StandaloneController[];
  /** Whether the kinds that come with the command are included. @default true */
  readonly builtIn?: boolean;
}

/** Controllers that an operator runs. */
export interface Controllers {
  readonly kinds: Kind[];
  /** Controllers without custom resources. */
  readonly controllers: StandaloneController[];
}

interface LoadKindsOptions {
  /** @default - `reconstruct.config.mjs` in the working directory, if it exists */
  readonly config?: string | undefined;
  /**
   * Kinds to take, by name (`appservice`) or name and group (`appservice.kosmos.io`).
   * @default - all but those on request
   */
  readonly kinds?: readonly string[] | undefined;
  /** @default - the kinds that come with the command */
  readonly builtIn?: readonly Kind[];
}

/**
 * Returns the kinds that a command works on: the built-in ones and those of the configuration, as far as `--kinds` names
 * them.
 * @throws CliError with exit code 2 when the configuration can't be used or a name is unknown
 */
export async function loadKinds(options: LoadKindsOptions): Promise<Kind[]> {
  return (await loadControllers(options)).kinds;
}

/** Returns these kinds, and the controllers without custom resources that `--kinds` doesn't leave out. @throws CliError */
export async function loadControllers({
  config,
  kinds: names,
  builtIn,
}: LoadKindsOptions): Promise<Controllers> {
  // Loaded here, so that `--help` loads no kind.
  const own = builtIn ?? (await import('../kinds/index.js')).builtInKinds;
  const file = config ?? CONFIG_FILE;
  const loaded = config !== undefined || existsSync(file) ? await loadConfig(file) : {};
  const requested = Object.entries(kindsOnRequest).filter(([name]) =>
    names?.some((each) => each.toLowerCase() === name),
  );
  const kinds = [
    ...(loaded.builtIn === false ? [] : own),
    ...(loaded.kinds ?? []),
    ...(await Promise.all(requested.map(([, load]) => load()))),
  ];
  const types = kinds.map(({ type }) => groupKind(type));
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice !== undefined) {
    const isBuiltIn = own.some(({ type }) => groupKind(type) === twice);
    const remedy = isBuiltIn ? 'built-in kinds need not be listed, remove it' : 'list it once';
    throw unusable(file, `kind ${twice} is there twice; ${remedy}`);
  }
  const controllers = [...(loaded.controllers ?? [])];
  const all = [...kinds.map(({ name }) => name), ...controllers.map(({ name }) => name)];
  const same = controllers.find(({ name }) => all.indexOf(name) !== all.lastIndexOf(name));
  if (same) throw unusable(file, `the name ${same.name} is there twice; give the controller another one`);
  return names === undefined ? { kinds, controllers } : choose({ kinds, controllers }, names);
}

function unusable(file: string, why: string): CliError {
  return new CliError(`${file}: ${why}`);
}

async function loadConfig(file: string): Promise<Config> {
  if (!existsSync(file)) throw unusable(file, 'there is no such file; check the path given to --config');
  const { default: config } = await imported(file);
  const example = 'write `export default { kinds: [defineKind({ ... })] }`';
  if (!isMap(config)) throw unusable(file, `its default export is ${shownOption(config)}; ${example}`);
  const { kinds = [], controllers = [], builtIn, ...others } = config;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw unusable(
      file,
      `its default export has a member ${unknown}; it takes kinds, controllers and builtIn`,
    );
  if (builtIn !== undefined && typeof builtIn !== 'boolean')
    throw unusable(file, `builtIn is ${shownOption(builtIn)}; write true or false`);
  if (!Array.isArray(kinds)) throw unusable(file, `kinds is ${shownOption(kinds)}, not a list; ${example}`);
  const isController = ({ name, controllers: of }: Partial<StandaloneController>): boolean =>
    typeof name === 'string' && typeof of === 'function';
  if (!Array.isArray(controllers) || !controllers.every((one) => isMap(one) && isController(one)))
    throw unusable(
      file,
      `controllers is ${shownOption(controllers)}; write controllers: [decorate({ ... })]`,
    );
  const index = kinds.findIndex((kind) => !isKind(kind));
  if (index < 0) return config;
  const wrong: unknown = kinds[index];
  const construct = typeof wrong === 'function' ? `({ crd, construct: ${wrong.name}, children: [...] })` : '';
  throw unusable(
    file,
    `kinds[${index}] is ${shownOption(wrong)}, not a kind; make it with defineKind${construct}`,
  );
}

/** Returns the files in a folder that seem to be configurations, without loading them. */
export function configurationsIn(folder: string): string[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const modules = files.map(({ name }) => join(folder, name)).filter((file) => /\.[cm]?[jt]s$/.test(file));
  const config = /^(?=[^]*\bexport default\b)[^]*\b(?:kinds|controllers)\b/;
  return modules.filter((file) => config.test(readFileSync(file, 'utf8')));
}

/** Maximum time for a configuration to load. */
const MAX_LOAD_MILLISECONDS = 60_000;

/** Imports a module of the author. @throws CliError with the place of a mistake, also of an `await` that never ends */
async function imported(file: string): Promise<{ readonly default?: unknown }> {
  const { promise: unending, resolve: give } = Promise.withResolvers<undefined>();
  const giveUp = (): void => {
    give(undefined);
  };
  // Emitted where nothing goes on that the module could wait for.
  process.once('beforeExit', giveUp);
  const timer = setTimeout(giveUp, MAX_LOAD_MILLISECONDS).unref();
  try {
    const loading = import(pathToFileURL(resolve(file)).href) as Promise<{ readonly default?: unknown }>;
    const loaded = await Promise.race([loading, unending]);
    if (loaded) return loaded;
  } catch (error) {
    const isPlaceless = error instanceof SyntaxError && originOf(error) === undefined;
    const place = isPlaceless ? placeByNode(file) : '';
    const named = error instanceof SyntaxError ? `${error.name}: ` : '';
    throw unusable(file, `can't be loaded: ${named}${describeThrown(error)}${place}${remedyFor(error)}`);
  } finally {
    clearTimeout(timer);
    process.off('beforeExit', giveUp);
  }
  const what = 'an await outside of any function, in it or in what it imports, never ends';
  throw unusable(file, `can't be loaded: ${what}${placeByNode(file)}`);
}

/** Returns the place that Node prints only where it runs the module itself. */
function placeByNode(file: string): string {
  const options = { encoding: 'utf8', timeout: 10_000 } as const;
  const place = markedOrigin(spawnSync(process.execPath, [resolve(file)], options).stderr);
  return place === undefined ? '' : ` (at ${place})`;
}

/** Returns what Node's message lacks: that TypeScript is imported by its own name. */
function remedyFor(error: unknown): string {
  const { code, url = '' } = error as NodeJS.ErrnoException & { readonly url?: string };
  if (code !== 'ERR_MODULE_NOT_FOUND' || !/^file:.*\.js$/.test(url)) return '';
  const path = fileURLToPath(url).replace(/\.js$/, '.ts');
  return existsSync(path) ? `; there is ${basename(path)}: import it by that name` : '';
}

/** Reports whether a value has the members of a kind: the configuration may have loaded this package a second time. */
function isKind(value: unknown): boolean {
  if (!isMap(value)) return false;
  const { name, crd, controllers } = value;
  return typeof name === 'string' && typeof crd === 'object' && typeof controllers === 'function';
}

function choose({ kinds, controllers }: Controllers, names: readonly string[]): Controllers {
  const onRequest = Object.keys(kindsOnRequest);
  const isNamed = (kind: Kind, name: string): boolean =>
    name === kindName(kind) || (name === kind.name && !onRequest.includes(kindName(kind)));
  const wanted = names.map((name) => name.toLowerCase());
  const others = controllers.map(({ name }) => name);
  const unknown = wanted.find((name) => !others.includes(name) && !kinds.some((kind) => isNamed(kind, name)));
  if (unknown === undefined)
    return {
      kinds: kinds.filter((kind) => wanted.some((name) => isNamed(kind, name))),
      controllers: controllers.filter(({ name }) => wanted.includes(name)),
    };
  const known = [...new Set([...kinds.map(kindName), ...onRequest, ...others])];
  const near = suggest(unknown, [...kinds.map(({ name }) => name), ...known]);
  const meant = near === undefined ? '' : `; did you mean ${near}?`;
  throw new CliError(
    `--kinds: there is no kind ${unknown || '""'}; the kinds are ${known.join(', ')}${meant}`,
  );
}

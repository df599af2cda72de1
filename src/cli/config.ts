import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeThrown } from '../contract/origin.js';
import type { Kind } from '../contract/kind.js';
import { groupKind } from '../contract/resource.js';
import { suggest } from '../contract/suggest.js';
import { CliError } from './exit.js';

/** Loaded from the working directory when no other file is named. */
export const CONFIG_FILE = 'reconstruct.config.mjs';

/** Kinds of the project that are loaded only where `--kinds` names them, by name and group. */
export const kindsOnRequest: Readonly<Record<string, () => Promise<Kind>>> = {
  'appservice.app.example.com': async () =>
    (await import('../kinds/app-service/example-group.js')).appServiceOfExample,
};

/** What the default export of a configuration holds. */
export interface Config {
  /** Kinds of one's own, each made with `defineKind`. @default - none */
  readonly kinds?: readonly Kind[];
  /** Whether the kinds that come with the command are known too. @default true */
  readonly builtIn?: boolean;
}

export interface LoadKindsOptions {
  /** @default - `reconstruct.config.mjs` in the working directory, if it exists */
  readonly config?: string;
  /**
   * Kinds to take, by name (`appservice`) or name and group (`appservice.kosmos.io`).
   * @default - all but those on request
   */
  readonly kinds?: readonly string[];
  readonly builtIn: readonly Kind[];
  /** Kinds that are taken only if `kinds` has them by name and group, as here. @default - none */
  readonly onRequest?: Readonly<Record<string, () => Promise<Kind>>>;
}

/**
 * The kinds that a command works on: the built-in ones and those of the configuration, as far as `--kinds` names
 * them.
 * @throws CliError with exit code 2 when the configuration can't be used or a name is unknown
 */
export async function loadKinds(options: LoadKindsOptions): Promise<Kind[]> {
  const file = options.config ?? CONFIG_FILE;
  const { kinds: own = [], builtIn = true } =
    options.config !== undefined || existsSync(file) ? await loadConfig(file) : {};
  const kinds = [...(builtIn ? options.builtIn : []), ...own, ...(await requested(options))];
  const types = kinds.map(({ type }) => groupKind(type));
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  if (twice) {
    const isBuiltIn = options.builtIn.some(({ type }) => groupKind(type) === twice);
    const remedy = isBuiltIn ? 'built-in kinds need not be listed, remove it' : 'list it once';
    throw new CliError(`${file}: kind ${twice} is there twice; ${remedy}`, 2);
  }
  if (options.kinds === undefined) return kinds;
  return choose(kinds, options.kinds, Object.keys(options.onRequest ?? {}));
}

async function requested({ kinds = [], onRequest = {} }: LoadKindsOptions): Promise<Kind[]> {
  const names = new Set(kinds.map((name) => name.toLowerCase()));
  const loaders = Object.entries(onRequest).filter(([name]) => names.has(name));
  return Promise.all(loaders.map(([, load]) => load()));
}

async function loadConfig(file: string): Promise<Config> {
  if (!existsSync(file))
    throw new CliError(`${file}: there is no such file; check the path given to --config`, 2);
  let module: { default?: unknown };
  try {
    module = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  } catch (error) {
    throw new CliError(`${file}: can't be loaded: ${describeThrown(error)}${remedyFor(error)}`, 2);
  }
  const example = 'write `export default { kinds: [defineKind({ ... })] }`';
  const config = module.default;
  if (config === undefined) throw new CliError(`${file}: has no default export; ${example}`, 2);
  if (config === null || typeof config !== 'object') {
    throw new CliError(`${file}: its default export is ${found(config)}; ${example}`, 2);
  }
  const unknown = Object.keys(config).find((key) => key !== 'kinds' && key !== 'builtIn');
  if (Array.isArray(config) || unknown !== undefined) {
    const what = Array.isArray(config) ? 'is a list' : `has a member ${unknown ?? ''}`;
    throw new CliError(`${file}: its default export ${what}; ${example}`, 2);
  }
  const { kinds = [], builtIn } = config as { kinds?: unknown; builtIn?: unknown };
  if (builtIn !== undefined && typeof builtIn !== 'boolean')
    throw new CliError(`${file}: builtIn is ${found(builtIn)}; write true or false`, 2);
  if (!Array.isArray(kinds))
    throw new CliError(`${file}: kinds is ${found(kinds)}, not a list; ${example}`, 2);
  kinds.forEach((kind: unknown, index) => {
    if (isKind(kind)) return;
    const construct = typeof kind === 'function' ? `({ crd, construct: ${kind.name}, children: [...] })` : '';
    throw new CliError(
      `${file}: kinds[${index}] is ${found(kind)}, not a kind; make it with defineKind${construct}`,
      2,
    );
  });
  return config;
}

/** Node keeps to itself where the mistake is, and that it takes TypeScript by its own name alone. */
function remedyFor(error: unknown): string {
  if (error instanceof SyntaxError) return '; `node --check` on it, and on what it imports, says where';
  const { code, url = '' } = error as NodeJS.ErrnoException & { readonly url?: string };
  if (code !== 'ERR_MODULE_NOT_FOUND' || !/^file:.*\.js$/.test(url)) return '';
  const path = fileURLToPath(url).replace(/\.js$/, '.ts');
  return existsSync(path) ? `; there is ${basename(path)}: import it by that name` : '';
}

/** Judged by its members: the configuration may have loaded this package a second time. */
function isKind(value: unknown): value is Kind {
  const kind = value as Partial<Record<keyof Kind, unknown>> | null | undefined;
  return (
    typeof kind === 'object' &&
    typeof kind?.name === 'string' &&
    typeof kind.type === 'object' &&
    typeof kind.crd === 'object' &&
    typeof kind.rendering === 'object' &&
    typeof kind.controllers === 'function'
  );
}

function found(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object')
    return `an object with ${Object.keys(value).slice(0, 5).join(', ') || 'nothing in it'}`;
  if (typeof value === 'function') return `the function or class ${value.name}`;
  return `the ${typeof value} ${JSON.stringify(value)}`;
}

function choose(kinds: readonly Kind[], names: readonly string[], onRequest: readonly string[]): Kind[] {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  const fullName = (kind: Kind): string => `${kind.name}.${kind.crd.spec.group}`;
  const isNamed = (kind: Kind, name: string): boolean =>
    name === fullName(kind) || (name === kind.name && !onRequest.includes(fullName(kind)));
  for (const name of wanted) {
    if (kinds.some((kind) => isNamed(kind, name))) continue;
    const known = [...new Set([...kinds.map(fullName), ...onRequest])].join(', ') || 'none';
    const names = kinds.flatMap((kind) => [kind.name, fullName(kind)]);
    const near = suggest(name, [...names, ...onRequest]);
    const meant = near === undefined ? '' : `; did you mean ${near}?`;
    throw new CliError(`--kinds: there is no kind ${name || '""'}${meant}; the kinds are ${known}`, 2);
  }
  return kinds.filter((kind) => [...wanted].some((name) => isNamed(kind, name)));
}

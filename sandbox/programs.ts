import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { buildPrograms } from './build.js';
import { cacheFolder, sandboxFolder } from './paths.js';
import type { Program } from './program.js';
import { type Log, logToStderr } from './progress.js';

/** Where to look for programs. */
export interface ProgramOptions {
  /**
   * Folders looked into first, in order.
   *
   * @default - none
   */
  readonly assets?: readonly string[];
  /**
   * The folder of the go.mod that pins what is built.
   *
   * @default - sandbox/
   */
  readonly module?: string;
  /**
   * Read for RECONSTRUCT_SANDBOX_ASSETS (folders), KUBEBUILDER_ASSETS, XDG_CACHE_HOME, HOME and PATH.
   *
   * @default process.env
   */
  readonly env?: NodeJS.ProcessEnv;
  /** @default - standard error */
  readonly log?: Log;
}

/**
 * Finds each program, in this order: the folders of `assets`, of RECONSTRUCT_SANDBOX_ASSETS and of
 * KUBEBUILDER_ASSETS; the cache; `go build` from the pinned modules into the cache. What one place lacks comes
 * from the next.
 *
 * **Errors**: when something has to be built and Go is missing, too old or fails.
 */
export async function findPrograms<P extends Program>(
  names: readonly P[],
  options: ProgramOptions = {},
): Promise<Readonly<Record<P, string>>> {
  const env = options.env ?? process.env;
  const log = options.log ?? logToStderr;
  const module = options.module ?? sandboxFolder();
  const cache = programCache(env, module);
  const folders = [...namedFolders(options.assets ?? [], env, log), cache];
  const missing = names.filter((name) => locate(name, folders) === undefined);
  if (missing.length > 0) {
    await buildPrograms({
      cache,
      module,
      env,
      log,
      missing: () => missing.filter((name) => locate(name, [cache]) === undefined),
    });
  }
  const found = names.map((name) => [name, locate(name, folders) ?? join(cache, name)] as const);
  return Object.fromEntries(found) as Record<P, string>;
}

/** The cache folder of the pins and sources of a module, by default the sandbox's own, on this platform. */
export function programCache(env: NodeJS.ProcessEnv = process.env, module = sandboxFolder()): string {
  const hash = createHash('sha256');
  const sources = readdirSync(module).filter((file) => /^go\.(mod|sum)$|\.go$/.test(file));
  for (const file of sources.sort()) hash.update(readFileSync(join(module, file)));
  hash.update(`${process.platform}/${process.arch}`);
  return join(cacheFolder(env), hash.digest('hex').slice(0, 16));
}

function namedFolders(assets: readonly string[], env: NodeJS.ProcessEnv, log: Log): string[] {
  const named = [
    ...assets,
    ...(env.RECONSTRUCT_SANDBOX_ASSETS ?? '').split(delimiter),
    env.KUBEBUILDER_ASSETS ?? '',
  ].filter((folder) => folder !== '');
  for (const folder of named) {
    if (!existsSync(folder)) log(`The folder ${folder}, named for control-plane programs, does not exist.`);
  }
  return named;
}

function locate(name: Program, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

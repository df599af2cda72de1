import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from '../exit.js';

/** How a project comes by this package. */
export interface Dependency {
  /** The name that it is installed and imported by. */
  readonly name: string;
  /** What stands for it in package.json. */
  readonly spec: string;
  /** A packed file that becomes part of the project, where `spec` names it. @default - it comes from a registry */
  readonly tarball?: { readonly name: string; readonly content: Buffer };
}

/** In npm's registry another package has this name, so that a version would lead to somebody else's code. */
const FOREIGN = 'reconstruct';

/** The folder for packed files in a project. */
export const VENDOR = 'vendor';

/** The folder of the package that runs. */
export const ownFolder = fileURLToPath(new URL('../../../', import.meta.url));

/** What npm notes of a package that it has installed. */
interface Installed {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
}

/**
 * The same package that runs: of the same file or version.
 *
 * @param given a packed file, or what npm takes for a version where npm has this package by its name; it goes before what
 * npm has noted
 * @param folder of the package
 * @throws CliError with exit code 2 where that can't be known, or can't be had by anybody else
 */
export function ownDependency(given?: string, folder = ownFolder): Dependency {
  const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string };
  if (given !== undefined) return givenDependency(name, given);
  const modules = modulesAround(folder);
  if (modules === undefined)
    throw new CliError(
      `A project can't depend on ${folder}, which others don't have: pack it with "npm pack" there, and give the file ` +
        'with --package FILE',
      2,
    );
  const { version, resolved, integrity } = noted(modules, folder);
  if (resolved?.startsWith('file:'))
    return { name, ...packed(resolve(dirname(modules), resolved.slice('file:'.length)), integrity) };
  if (resolved?.startsWith('git')) return { name, spec: resolved };
  if (resolved !== undefined && version !== undefined)
    return { name, spec: name === FOREIGN ? resolved : version };
  throw new CliError(
    `Nothing tells where ${folder} was installed from: give the file that it was packed to, with --package FILE.tgz`,
    2,
  );
}

function givenDependency(name: string, given: string): Dependency {
  const path = given.replace(/^file:/, '');
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return { name, ...packed(resolve(path)) };
    throw new CliError(
      `--package: ${given} is a folder, which others don't have: pack it with "npm pack" there, and give the file`,
      2,
    );
  }
  if (path !== given || (/\.t(ar\.)?gz$/.test(path) && !/^https?:/.test(path)))
    throw new CliError(`--package: there is no file ${given}; check the path`, 2);
  if (isSource(given)) return { name, spec: given };
  if (name === FOREIGN)
    throw new CliError(
      `--package: ${given} names no packed file; ${name} of npm's registry is somebody else's package, so no version is ` +
        'taken: write --package FILE.tgz',
      2,
    );
  const spec = given.startsWith(`${name}@`) ? given.slice(name.length + 1) : given;
  if (/^[\d^~>=<]/.test(spec) || /^[\w.-]+$/.test(spec)) return { name, spec };
  throw new CliError(
    `--package: ${given} names neither a packed file nor a version of ${name}; write --package 0.1.0 or --package FILE.tgz`,
    2,
  );
}

/** Whether it says by itself where the package is. */
function isSource(given: string): boolean {
  return /^(npm:@|https?:|git[+:@])/.test(given);
}

/** The `node_modules` that a package was installed in; undefined for a folder of its own. */
function modulesAround(folder: string): string | undefined {
  const parent = dirname(resolve(folder));
  const above = basename(parent).startsWith('@') ? dirname(parent) : parent;
  return basename(above) === 'node_modules' ? above : undefined;
}

function noted(modules: string, folder: string): Installed {
  const file = join(modules, '.package-lock.json');
  if (!existsSync(file)) return {};
  const { packages = {} } = JSON.parse(readFileSync(file, 'utf8')) as {
    packages?: Record<string, Installed>;
  };
  return packages[relative(dirname(modules), resolve(folder)).replaceAll('\\', '/')] ?? {};
}

function packed(file: string, integrity?: string): Omit<Dependency, 'name'> {
  if (!existsSync(file))
    throw new CliError(
      `${file}, from which this package was installed, is gone: give it with --package FILE`,
      2,
    );
  const content = readFileSync(file);
  if (
    integrity?.startsWith('sha512-') &&
    integrity !== `sha512-${createHash('sha512').update(content).digest('base64')}`
  )
    throw new CliError(
      `${file} has changed since ${ownFolder} was installed from it: remove that folder and install it again, or give ` +
        'the file with --package FILE',
      2,
    );
  const name = basename(file);
  return { spec: `file:${VENDOR}/${name}`, tarball: { name, content } };
}

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError } from '../exit.js';

/** How a project depends on this package. */
export interface Dependency {
  /** The name under which it is installed and imported. */
  readonly name: string;
  /** Its value in package.json. */
  readonly spec: string;
  /** A packed file that becomes part of the project, where `spec` names it. @defaultValue none: it comes from a registry */
  readonly tarball?: { readonly path: string; readonly content: Buffer };
}

/** npm's registry has an unrelated package of this name, so a version would install that one. */
const UNRELATED = 'reconstruct';

/** The folder of the package that runs. */
export const ownFolder = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Finds the source of the very package that runs.
 *
 * @param given a packed file, a URL, or a version where npm has this package by its name; overrides what npm has recorded
 * @param folder of the package
 * @throws CliError with exit code 2 where the source isn't known, or nobody else could install it
 */
export function ownDependency(given?: string, folder = ownFolder): Dependency {
  const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string };
  return { name, ...(given === undefined ? recordedSource(name, folder) : givenSource(name, given)) };
}

type Source = Omit<Dependency, 'name'>;

/** The source that npm recorded when it installed the package. */
function recordedSource(name: string, folder: string): Source {
  const parent = dirname(resolve(folder));
  const modules = basename(parent).startsWith('@') ? dirname(parent) : parent;
  if (basename(modules) !== 'node_modules')
    throw new CliError(
      `A project can't depend on ${folder}, which others don't have: pack it with "npm pack" there, and give the file ` +
        'with --package FILE',
      2,
    );
  const record = join(modules, '.package-lock.json');
  const { packages = {} } = (existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : {}) as {
    packages?: Record<string, { version?: string; resolved?: string; integrity?: string }>;
  };
  const { version, resolved, integrity } = packages[relative(dirname(modules), resolve(folder))] ?? {};
  if (resolved?.startsWith('file:'))
    return packed(resolve(dirname(modules), resolved.slice('file:'.length)), integrity);
  if (resolved?.startsWith('git')) return { spec: resolved };
  if (resolved !== undefined && version !== undefined)
    return { spec: name === UNRELATED ? resolved : version };
  throw new CliError(
    `npm hasn't recorded where ${folder} was installed from: give the file that it was packed to, with --package FILE.tgz`,
    2,
  );
}

function givenSource(name: string, given: string): Source {
  const path = given.replace(/^file:/, '');
  if (existsSync(path)) {
    if (!statSync(path).isDirectory()) return packed(resolve(path));
    throw new CliError(
      `--package: ${given} is a folder, which others don't have: pack it with "npm pack" there, and give the file`,
      2,
    );
  }
  if (/^(npm:@|https?:|git[+:@])/.test(given)) return { spec: given };
  if (path !== given || /\.t(ar\.)?gz$/.test(path))
    throw new CliError(`--package: there is no file ${given}; check the path`, 2);
  if (name === UNRELATED)
    throw new CliError(
      `--package: ${given} names no packed file, and ${name} of npm's registry is an unrelated package, so no version can ` +
        'be given: write --package FILE.tgz',
      2,
    );
  const spec = given.startsWith(`${name}@`) ? given.slice(name.length + 1) : given;
  if (/^[\d^~>=<]/.test(spec) || /^[\w.-]+$/.test(spec)) return { spec };
  throw new CliError(
    `--package: ${given} names neither a packed file nor a version of ${name}; write --package 0.1.0 or --package FILE.tgz`,
    2,
  );
}

/** @param integrity that the file must have */
function packed(file: string, integrity?: string): Source {
  if (!existsSync(file))
    throw new CliError(
      `${file}, from which this package was installed, is gone: give it with --package FILE`,
      2,
    );
  const content = readFileSync(file);
  const actual = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  if (integrity?.startsWith('sha512-') && integrity !== actual)
    throw new CliError(
      `${file} has changed since ${ownFolder} was installed from it: remove that folder and install it again, or give ` +
        'the file with --package FILE',
      2,
    );
  const path = `vendor/${basename(file)}`;
  return { spec: `file:${path}`, tarball: { path, content } };
}

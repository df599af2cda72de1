import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../contract/error.js';
import { CliError } from '../exit.js';
import { isFreshManifest } from './manifest.js';
import type { PackageManifest } from './manifest.js';
import type { Files } from './project.js';
import { writeFiles } from './snapshot.js';

const MANIFEST = 'package.json';
/** What a folder may hold that a project is written to. */
const HARMLESS = ['node_modules', MANIFEST, 'package-lock.json', '.git'];

/**
 * @returns what `npm init -y` wrote in the folder, if it did
 * @throws CliError with exit code 2 where something is in the way
 */
export function requireFree(folder: string): PackageManifest | undefined {
  if (!existsSync(folder)) {
    requireParent(folder);
    return undefined;
  }
  if (!statSync(folder).isDirectory())
    throw new CliError(`${folder} is there already, and no folder; give another name`, 2);
  const others = readdirSync(folder).filter((name) => !HARMLESS.includes(name));
  if (others.length > 0) throw inTheWay(folder, others);
  const manifest = join(folder, MANIFEST);
  if (!existsSync(manifest)) return undefined;
  const found = manifestIn(manifest);
  if (!isFreshManifest(found))
    throw inTheWay(folder, [`${MANIFEST}, which has more in it than "npm init -y" writes,`]);
  return found;
}

/**
 * Writes all files, or none. What is there stays, but for the manifest of `npm init -y`.
 * @param earlier that manifest, as it was found. @default - there was none
 * @throws CliError with exit code 2 where something is in the way by now, or can't be written
 */
export function fill(folder: string, files: Files, earlier?: PackageManifest): void {
  const target = resolve(folder);
  const isNew = !existsSync(target);
  const staging = mkdtempSync(join(isNew ? dirname(target) : target, `.${basename(target)}-`));
  const made: string[] = [];
  const move = (name: string): void => {
    renameSync(join(staging, name), join(target, name));
    made.push(join(target, name));
  };
  try {
    writeFiles(staging, files);
    if (isNew) {
      mkdirSync(target);
      made.push(target);
    }
    const names = readdirSync(staging).filter((name) => name !== MANIFEST);
    for (const name of names) {
      if (existsSync(join(target, name))) throw inTheWay(folder, [name]);
      move(name);
    }
    if (!isAsFound(join(target, MANIFEST), earlier)) throw inTheWay(folder, [MANIFEST]);
    // Last, since the one that it replaces can't be had back.
    move(MANIFEST);
  } catch (error) {
    for (const place of made.reverse()) takeBack(place, target);
    throw error instanceof CliError
      ? error
      : new CliError(`${folder}: can't be written: ${messageOf(error)}; nothing was left there`, 2);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function isAsFound(manifest: string, earlier: PackageManifest | undefined): boolean {
  return isDeepStrictEqual(existsSync(manifest) ? manifestIn(manifest) : undefined, earlier);
}

/** What somebody else has put into the folder meanwhile stays, and the folder with it. */
function takeBack(place: string, target: string): void {
  if (place !== target) rmSync(place, { recursive: true });
  else if (readdirSync(target).length === 0) rmdirSync(target);
}

function requireParent(folder: string): void {
  const parent = dirname(resolve(folder));
  if (!existsSync(parent)) throw new CliError(`${parent}: there is no such folder; make it first`, 2);
}

function manifestIn(file: string): PackageManifest {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PackageManifest;
  } catch (error) {
    throw new CliError(`${file}: ${messageOf(error)}; mend or remove it`, 2);
  }
}

function inTheWay(folder: string, names: readonly string[]): CliError {
  const are = names.length === 1 ? 'is' : 'are';
  return new CliError(
    `${folder}: ${names.join(', ')} ${are} in the way, and nothing is overwritten; move ${are === 'is' ? 'it' : 'them'}, or give another name`,
    2,
  );
}

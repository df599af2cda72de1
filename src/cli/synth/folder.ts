import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf } from '../../contract/error.js';
import type { ManifestFile } from '../../validate/output.js';
import { InputError } from '../../validate/problem.js';

/**
 * Lists what we wrote into a folder; only that is ever overwritten or removed. Without the extension of a
 * manifest: kubectl and Argo CD apply every file of a folder that has one.
 */
export const LEDGER_NAME = '.reconstruct-synth';

export interface FolderChanges {
  readonly written: number;
  readonly unchanged: number;
  readonly removed: number;
}

/**
 * Makes a folder hold these files, and no others of those that were written there earlier.
 *
 * **Guarantees.** Other files are left alone. Each file is either the old or the new one at any time, never half of it;
 * nothing is touched when there is a conflict.
 *
 * @throws InputError when a file is there that wasn't written by us, with other content, or the folder can't be written
 */
export function writeFolder(folder: string, files: readonly ManifestFile[]): FolderChanges {
  try {
    mkdirSync(folder, { recursive: true });
    return update(folder, files);
  } catch (error) {
    if (error instanceof InputError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new InputError([`${folder}: is a file; name a folder`]);
    throw new InputError([
      `${folder}: can't be written: ${messageOf(error)}; check the path and its permissions`,
    ]);
  }
}

function update(folder: string, files: readonly ManifestFile[]): FolderChanges {
  const pathOf = (name: string): string => join(folder, name);
  const ledger = pathOf(LEDGER_NAME);
  const list = (names: Iterable<string>): void => {
    replace(ledger, `${JSON.stringify({ files: [...names].sort() }, undefined, 2)}\n`);
  };
  const earlier = readLedger(ledger);
  const changed = files.filter(({ name, text }) => textOf(pathOf(name)) !== text);
  const foreign = changed.filter(({ name }) => existsSync(pathOf(name)) && !earlier.has(name));
  const remedy = "is there and wasn't written by synth; move it away, or choose another folder";
  if (foreign.length > 0) throw new InputError(foreign.map(({ name }) => `${pathOf(name)}: ${remedy}`));
  const names = new Set(files.map(({ name }) => name));
  const stale = [...earlier].filter((name) => !names.has(name) && existsSync(pathOf(name)));
  // Listed before it is there and until it is gone, so that a run that is cut off leaves nothing unlisted.
  list([...names, ...stale]);
  for (const { name, text } of changed) replace(pathOf(name), text);
  for (const name of stale) rmSync(pathOf(name));
  list(names);
  return { written: changed.length, unchanged: files.length - changed.length, removed: stale.length };
}

function replace(path: string, text: string): void {
  if (textOf(path) === text) return;
  mkdirSync(dirname(path), { recursive: true });
  const temporary = join(dirname(path), `${LEDGER_NAME}-${process.pid}.tmp`);
  try {
    writeFileSync(temporary, text);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Names of manifests and of a chart's files. No other file is ever removed, whatever the ledger lists. */
const OWN_FILE =
  /^(?:[^/]+\.yaml|\.helmignore|values\.schema\.json|(?:templates|files(?:\/\w+)?)\/[\w-][\w.-]*\.(?:yaml|json|tpl|txt))$/;

function readLedger(file: string): Set<string> {
  if (!existsSync(file)) return new Set();
  try {
    const { files } = JSON.parse(readFileSync(file, 'utf8')) as { files: unknown };
    const isOurs = (name: unknown): name is string => typeof name === 'string' && OWN_FILE.test(name);
    if (Array.isArray(files) && files.every(isOurs)) return new Set(files);
  } catch {
    // Reported below.
  }
  throw new InputError([
    `${file}: is not a list of files that synth wrote; remove it, and the old files with it`,
  ]);
}

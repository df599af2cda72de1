import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../contract/error.js';
import type { ManifestFile } from './output.js';
import { InputError } from './problem.js';

/**
 * Lists what synth wrote into a folder; only what it lists is ever overwritten or removed. Without the extension of a
 * manifest: kubectl and Argo CD apply every file of a folder that has one.
 */
export const LEDGER_NAME = '.reconstruct-synth';

/** `chart`: a Helm chart, whose files are of other names, some of them in `templates`. */
export type FolderForm = 'manifests' | 'chart';

export interface FolderChanges {
  readonly written: number;
  readonly unchanged: number;
  readonly removed: number;
}

/**
 * Makes a folder hold these files, and no others of those that synth wrote there earlier.
 *
 * **Guarantees.** Files that synth didn't write are left alone. Each file is either the old or the new one at any
 * time, never half of it; nothing is touched when there is a conflict.
 *
 * @throws InputError when a file is there that synth didn't write, with other content, or the folder can't be
 *   written
 */
export function writeFolder(
  folder: string,
  files: readonly ManifestFile[],
  form: FolderForm = 'manifests',
): FolderChanges {
  try {
    mkdirSync(folder, { recursive: true });
    return update(folder, files, form);
  } catch (error) {
    if (error instanceof InputError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new InputError([`${folder}: is a file; name a folder with -o`]);
    }
    throw new InputError([
      `${folder}: can't be written: ${messageOf(error)}; check the path and its permissions`,
    ]);
  }
}

function update(folder: string, files: readonly ManifestFile[], form: FolderForm): FolderChanges {
  if (form === 'chart') requireOwnFolders(folder);
  const earlier = readLedger(folder, form);
  const isThere = (name: string): boolean => existsSync(join(folder, name));
  const changed = files.filter(({ name, text }) => !isThere(name) || !hasText(join(folder, name), text));
  refuseForeign(
    folder,
    changed.filter(({ name }) => isThere(name) && !earlier.has(name)),
  );

  const names = new Set(files.map(({ name }) => name));
  const stale = [...earlier].filter((name) => !names.has(name) && isThere(name));
  // Listed before it is there and until it is gone, so that a run that is cut off leaves nothing unlisted.
  writeLedger(folder, [...names, ...stale]);
  replaceAll(folder, changed);
  for (const name of stale) rmSync(join(folder, name));
  if (stale.length > 0) writeLedger(folder, [...names]);
  return { written: changed.length, unchanged: files.length - changed.length, removed: stale.length };
}

/** A link leads to files of others. */
function requireOwnFolders(folder: string): void {
  for (const path of ['templates', 'files', 'files/kinds', 'files/crds'].map((name) => join(folder, name))) {
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? true) continue;
    throw new InputError([`${path}: is no folder of its own; move it away, or choose another folder`]);
  }
}

function refuseForeign(folder: string, foreign: readonly ManifestFile[]): void {
  if (foreign.length === 0) return;
  throw new InputError(
    foreign.map(
      ({ name }) =>
        `${join(folder, name)}: is there and wasn't written by synth; move it away, or choose another folder`,
    ),
  );
}

/** Writes everything beside the old files first, so that a full disk leaves them as they were. */
function replaceAll(folder: string, files: readonly ManifestFile[]): void {
  const temporary = (index: number): string => join(folder, `.reconstruct-synth-${process.pid}-${index}.tmp`);
  try {
    files.forEach(({ text }, index) => {
      writeFileSync(temporary(index), text);
    });
    files.forEach(({ name }, index) => {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      renameSync(temporary(index), join(folder, name));
    });
  } catch (error) {
    files.forEach((_, index) => {
      rmSync(temporary(index), { force: true });
    });
    throw error;
  }
}

function hasText(file: string, text: string): boolean {
  try {
    return readFileSync(file, 'utf8') === text;
  } catch {
    return false;
  }
}

function readLedger(folder: string, form: FolderForm): Set<string> {
  const file = join(folder, LEDGER_NAME);
  if (!existsSync(file)) return new Set();
  const text = readFileSync(file, 'utf8');
  const isOurs = form === 'chart' ? isChartName : isManifestName;
  try {
    const { files } = JSON.parse(text) as { files: unknown };
    if (Array.isArray(files) && files.every(isOurs)) return new Set(files);
  } catch {
    // Said below.
  }
  throw new InputError([
    `${file}: is not a list of files that synth wrote; remove it, and the old files with it`,
  ]);
}

const CHART_FILE =
  /^(?:\.helmignore|(?:Chart|values|(?:templates|files(?:\/\w+)?)\/[\w-][\w.-]*)\.(?:yaml|schema\.json|json|tpl|txt))$/;

/** Nothing outside of the folder is ever removed, whatever the list says; nor in it what synth doesn't write. */
function isManifestName(name: unknown): name is string {
  return typeof name === 'string' && name.endsWith('.yaml') && name === basename(name);
}

function isChartName(name: unknown): name is string {
  return typeof name === 'string' && CHART_FILE.test(name);
}

function writeLedger(folder: string, names: readonly string[]): void {
  const text = `${JSON.stringify({ files: [...names].sort() }, undefined, 2)}\n`;
  const file = join(folder, LEDGER_NAME);
  if (hasText(file, text)) return;
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text);
  renameSync(temporary, file);
}

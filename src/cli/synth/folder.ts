import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../contract/error.js';
import type { ManifestFile } from '../../validate/output.js';
import { InputError } from '../../validate/problem.js';

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
    makeFolder(folder);
    return update(folder, files, form);
  } catch (error) {
    if (error instanceof InputError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new InputError([`${folder}: is a file; name a folder`]);
    }
    throw new InputError([
      `${folder}: can't be written: ${messageOf(error)}; check the path and its permissions`,
    ]);
  }
}

/** Node's own `recursive` never ends where a parent is there, and yet refuses with ENOENT, as /proc does. */
function makeFolder(folder: string): void {
  const isThere = (): boolean => statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isThere()) return;
  if (!existsSync(dirname(folder))) makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!isThere()) throw error;
  }
}

function update(folder: string, files: readonly ManifestFile[], form: FolderForm): FolderChanges {
  const pathOf = (name: string): string => join(folder, name);
  if (form === 'chart') requireOwnFolders(pathOf);
  const earlier = readLedger(pathOf(LEDGER_NAME), form);
  const changed = files.filter(({ name, text }) => textOf(pathOf(name)) !== text);
  const foreign = changed.filter(({ name }) => existsSync(pathOf(name)) && !earlier.has(name));
  if (foreign.length > 0)
    throw new InputError(
      foreign.map(
        ({ name }) =>
          `${pathOf(name)}: is there and wasn't written by synth; move it away, or choose another folder`,
      ),
    );
  const names = new Set(files.map(({ name }) => name));
  const stale = [...earlier].filter((name) => !names.has(name) && existsSync(pathOf(name)));
  // Listed before it is there and until it is gone, so that a run that is cut off leaves nothing unlisted.
  writeLedger(pathOf(LEDGER_NAME), [...names, ...stale]);
  replaceAll(pathOf, changed);
  for (const name of stale) rmSync(pathOf(name));
  if (stale.length > 0) writeLedger(pathOf(LEDGER_NAME), [...names]);
  return { written: changed.length, unchanged: files.length - changed.length, removed: stale.length };
}

/** A link leads to files of others. */
function requireOwnFolders(pathOf: (name: string) => string): void {
  for (const path of ['templates', 'files', 'files/kinds', 'files/crds'].map(pathOf))
    if (!(lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? true))
      throw new InputError([`${path}: is no folder of its own; move it away, or choose another folder`]);
}

/** Writes everything beside the old files first, so that a full disk leaves them as they were. */
function replaceAll(pathOf: (name: string) => string, files: readonly ManifestFile[]): void {
  const temporary = (index: number): string => pathOf(`.reconstruct-synth-${process.pid}-${index}.tmp`);
  try {
    for (const [index, { text }] of files.entries()) writeFileSync(temporary(index), text);
    for (const [index, { name }] of files.entries()) {
      mkdirSync(dirname(pathOf(name)), { recursive: true });
      renameSync(temporary(index), pathOf(name));
    }
  } catch (error) {
    for (const index of files.keys()) rmSync(temporary(index), { force: true });
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

const CHART_FILE =
  /^(?:\.helmignore|(?:Chart|values|(?:templates|files(?:\/\w+)?)\/[\w-][\w.-]*)\.(?:yaml|schema\.json|json|tpl|txt))$/;

function readLedger(file: string, form: FolderForm): Set<string> {
  if (!existsSync(file)) return new Set();
  // Nothing outside of the folder is ever removed, whatever the list says; nor in it what synth doesn't write.
  const isOurs = (name: unknown): name is string =>
    typeof name === 'string' &&
    (form === 'chart' ? CHART_FILE.test(name) : name.endsWith('.yaml') && name === basename(name));
  const text = readFileSync(file, 'utf8');
  try {
    const { files } = JSON.parse(text) as { files: unknown };
    if (Array.isArray(files) && files.every(isOurs)) return new Set(files);
  } catch {
    // Reported below.
  }
  throw new InputError([
    `${file}: is not a list of files that synth wrote; remove it, and the old files with it`,
  ]);
}

function writeLedger(file: string, names: readonly string[]): void {
  const text = `${JSON.stringify({ files: [...names].sort() }, undefined, 2)}\n`;
  if (textOf(file) === text) return;
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, text);
  renameSync(temporary, file);
}

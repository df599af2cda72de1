import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { messageOf } from '../contract/error.js';
import { InputError } from './problem.js';

/** A text that holds documents. */
export interface Source {
  /** The file as the user named it; `<stdin>` for standard input. */
  readonly name: string;
  readonly text: string;
}

export interface SourceOptions {
  /** Files, folders, or `-` for standard input. */
  readonly sources: readonly string[];
  /** Look into subfolders too. @default false */
  readonly recursive?: boolean;
  /** Reads standard input. @default - the standard input of the process */
  readonly stdin?: () => Promise<Uint8Array>;
}

const EXTENSIONS: readonly string[] = ['.yaml', '.yml', '.json'];

/**
 * Reads all sources, in the order given; the files of a folder in the order of their names. A file that is named
 * twice is read once.
 * @throws InputError when a source is missing, unreadable, not UTF-8, or a folder without any YAML or JSON file
 */
export async function readSources(options: SourceOptions): Promise<Source[]> {
  const problems: string[] = [];
  const names = new Set<string>();
  for (const source of options.sources) {
    const found = source === '-' ? ['-'] : listFiles(source, options.recursive ?? false, problems);
    for (const name of found) names.add(name);
  }
  const sources: Source[] = [];
  for (const name of names) {
    const shown = name === '-' ? '<stdin>' : name;
    try {
      const bytes = name === '-' ? await (options.stdin ?? readStdin)() : readFileSync(name);
      sources.push({ name: shown, text: decode(bytes) });
    } catch (error) {
      problems.push(`${shown}: can't be read: ${explain(error)}`);
    }
  }
  if (problems.length > 0) throw new InputError(problems);
  return sources;
}

function listFiles(source: string, recursive: boolean, problems: string[]): string[] {
  try {
    if (!statSync(source).isDirectory()) return [source];
    const files = readdirSync(source, { recursive, encoding: 'utf8' })
      .filter((name) => EXTENSIONS.includes(extname(name)))
      .map((name) => join(source, name))
      .filter((file) => statSync(file).isFile())
      .sort();
    if (files.length === 0) {
      const hasFolders = readdirSync(source, { withFileTypes: true }).some((entry) => entry.isDirectory());
      const deeper = recursive || !hasFolders ? '' : ', or add -R to look into its subfolders';
      problems.push(`${source}: holds no ${EXTENSIONS.join(', ')} file; name another folder${deeper}`);
    }
    return files;
  } catch (error) {
    problems.push(`${source}: can't be read: ${explain(error)}`);
    return [];
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8 text; give YAML or JSON, saved as UTF-8');
  }
}

function explain(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file or folder; check the path';
  if (code === 'EACCES' || code === 'EPERM') return 'access is denied; check its permissions';
  return messageOf(error);
}

/** The standard input of the process, to its end. */
export async function readStdin(): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

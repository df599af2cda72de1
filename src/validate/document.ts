import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Document as YamlDocument, ParsedNode } from 'yaml';
import { messageOf } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import {
  composeDocuments,
  decodeText,
  itemsOf,
  keyOf,
  splitJson,
  YAML_OPTIONS,
  YamlError,
} from '../values/yaml.js';
import { InputError } from './problem.js';
import type { Path } from './problem.js';

/** Object of a file. */
export interface Document {
  readonly file: string;
  /** Counted from 1 over the documents of the file that hold something; 0 where the file isn't known. */
  readonly index: number;
  /** Path of the object in the document: empty, or `items[n]` of a List. */
  readonly path: Path;
  readonly value: unknown;
  /**
   * The line in the file, counted from 1, of what a path below the object names, or of the nearest thing around
   * it that is there; 0 where the file isn't known. It parses the document again, so ask only when something is to be
   * reported.
   */
  lineOf(path: Path): number;
}

/** Returns the one document of a text, with its comments, and its value; or the first problem. */
export function parseOne(
  text: string,
): { readonly yaml: YamlDocument.Parsed; readonly value: unknown } | { readonly problem: string } {
  const [first, second] = composeDocuments({ text, line: 0 });
  try {
    const value = first?.read() ?? null;
    if (second) return { problem: 'holds several documents; give one' };
    return { yaml: first?.yaml ?? parseDocument(text, YAML_OPTIONS), value };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/**
 * Parses a text into the objects that it holds. The items of a `List` are objects of their own; documents that hold
 * nothing are left out.
 * @param report takes one line for each thing that isn't YAML
 */
export function parseDocuments(source: Source, report: (problem: string) => void): Document[] {
  const documents: Document[] = [];
  const latest: Latest = {};
  let index = 0;
  for (const part of splitJson(source.text)) {
    for (const { yaml, read, lineAt } of composeDocuments(part)) {
      index += 1;
      try {
        const value = read();
        const [start, , end] = yaml.range;
        const lineOf = locator(part.text.slice(start, end), lineAt(start), latest);
        documents.push(...listItems({ file: source.name, index, path: [], value, lineOf }));
      } catch (error) {
        if (!(error instanceof YamlError)) throw error;
        report(`${source.name}: document ${index}, line ${lineAt(error.offset)}: ${error.message}`);
      }
    }
  }
  return documents;
}

/** Returns the objects of a text, as `synth` prints them. @throws OperatorError `InvalidInput` for what isn't YAML */
export function objectsIn(source: Source): AnyObject[] {
  const refuse = (problem: string): never => {
    throw new InputError([problem]);
  };
  return parseDocuments(source, refuse).map(({ value }) => value as AnyObject);
}

function listItems(document: Document): Document[] {
  const items = itemsOf(document.value);
  return (
    items?.map((value, index) => {
      const path = ['items', index];
      return { ...document, path, value, lineOf: (below) => document.lineOf([...path, ...below]) };
    }) ?? [document]
  );
}

/** The document whose lines were asked for last. Only one is kept: together they would fill the memory. */
interface Latest {
  parsed?: { readonly text: string; readonly yaml: YamlDocument.Parsed; readonly lines: LineCounter };
}

/** Finds lines in one document, which is parsed when they are asked for. */
function locator(text: string, firstLine: number, latest: Latest): (path: Path) => number {
  return (path) => {
    if (latest.parsed?.text !== text) {
      const lines = new LineCounter();
      latest.parsed = { text, lines, yaml: parseDocument(text, { ...YAML_OPTIONS, lineCounter: lines }) };
    }
    const { yaml, lines } = latest.parsed;
    return firstLine - 1 + lines.linePos(offsetOf(yaml.contents, path)).line;
  };
}

function offsetOf(root: ParsedNode | null, path: Path): number {
  let node: ParsedNode | null = root;
  let offset = root?.range[0] ?? 0;
  for (const step of path) {
    if (isMap<ParsedNode, ParsedNode | null>(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && keyOf(key) === String(step));
      if (!pair) break;
      offset = pair.key.range[0];
      node = pair.value;
    } else if (isSeq<ParsedNode>(node) && typeof step === 'number') {
      node = node.items[step] ?? null;
      if (!node) break;
      offset = node.range[0];
    } else {
      break;
    }
    if (isAlias(node)) break;
  }
  return offset;
}

/** A text that holds documents. */
export interface Source {
  /** The file as the user named it; `<stdin>` for standard input. */
  readonly name: string;
  readonly text: string;
}

export interface SourceOptions {
  /** Files, folders, or `-` for standard input. */
  readonly sources: readonly string[];
  /** Whether subfolders are read too. @default false */
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
  const unreadable = (name: string, error: unknown): void => {
    const { code } = error as NodeJS.ErrnoException;
    const reasons: Readonly<Record<string, string>> = {
      ENOENT: 'there is no such file or folder; check the path',
      EACCES: 'access is denied; check its permissions',
      EPERM: 'access is denied; check its permissions',
      ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text; give YAML or JSON, saved as UTF-8',
    };
    problems.push(`${name}: can't be read: ${reasons[code ?? ''] ?? messageOf(error)}`);
  };
  const listFiles = (source: string): string[] => {
    try {
      if (source === '-' || !statSync(source).isDirectory()) return [source];
      const files = readdirSync(source, { recursive: options.recursive ?? false, encoding: 'utf8' })
        .filter((name) => EXTENSIONS.includes(extname(name)))
        .map((name) => join(source, name))
        .filter((file) => statSync(file).isFile())
        .sort();
      if (files.length === 0) {
        const hasFolders = readdirSync(source, { withFileTypes: true }).some((entry) => entry.isDirectory());
        const deeper = options.recursive || !hasFolders ? '' : ', or add -R to look into its subfolders';
        problems.push(`${source}: holds no ${EXTENSIONS.join(', ')} file; name another folder${deeper}`);
      }
      return files;
    } catch (error) {
      unreadable(source, error);
      return [];
    }
  };
  const sources: Source[] = [];
  for (const file of new Set(options.sources.flatMap(listFiles))) {
    const name = file === '-' ? '<stdin>' : file;
    try {
      const bytes = file === '-' ? await (options.stdin ?? readStdin)() : readFileSync(file);
      sources.push({ name, text: decodeText(bytes) });
    } catch (error) {
      unreadable(name, error);
    }
  }
  if (problems.length > 0) throw new InputError(problems);
  return sources;
}

/** The standard input of the process, to its end. */
export async function readStdin(): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

/** A remark on a document. */
export interface Remark {
  /** @default - about several, or all */
  readonly document?: Document;
  /** Path in the document; empty for the whole. */
  readonly path: Path;
  /** A sentence that needs no place: `spec.size: is missing; add it`. */
  readonly message: string;
}

/** Returns it with its place: `examples/web.yaml: document 2, line 14: spec.size: is missing; add it`. */
export function remarkLine({ document, path, message }: Remark): string {
  return document ? `${placeOf(document, path)}: ${message}` : message;
}

/** `examples/web.yaml: document 2, line 14`, as far as that is known. */
export function placeOf(document: Document, path: Path): string {
  const { file, index } = document;
  const line = document.lineOf(path);
  const inside = [...(index > 0 ? [`document ${index}`] : []), ...(line > 0 ? [`line ${line}`] : [])];
  return [file, ...(inside.length > 0 ? [inside.join(', ')] : [])].join(': ');
}

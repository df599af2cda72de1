import { Composer, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, Parser } from 'yaml';
import type { Document as YamlDocument, ParsedNode, YAMLError } from 'yaml';
import { messageOf } from '../contract/error.js';
import { keyOf, valueOf, YAML_OPTIONS, YamlError } from '../contract/yaml.js';
import type { Path } from './problem.js';
import type { Source } from './source.js';

/** One object of a file. */
export interface Document {
  readonly file: string;
  /** Counted from 1 over the documents of the file that hold something; 0 where the file isn't known. */
  readonly index: number;
  /** Where the object is in the document: empty, or `items[n]` of a List. */
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
  const yaml = parseDocument(text, YAML_OPTIONS);
  try {
    return yaml.errors[0] ? { problem: explain(yaml.errors[0]) } : { yaml, value: valueOf(yaml) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/**
 * Takes a text apart into the objects that it holds. The items of a `List` are objects of their own; documents
 * that hold nothing are left out.
 * @param report takes one line for each thing that isn't YAML
 */
export function parseDocuments(source: Source, report: (problem: string) => void): Document[] {
  const lines = new LineCounter();
  const tokens = new Parser(lines.addNewLine).parse(source.text);
  const documents: Document[] = [];
  const latest: Latest = {};
  let index = 0;
  // Composed one by one: the nodes of 10,000 documents at once would take several hundred MiB.
  for (const yaml of new Composer(YAML_OPTIONS).compose(tokens)) {
    if (isEmpty(yaml)) continue;
    index += 1;
    const at = (line: number): string => `${source.name}: document ${index}, line ${line}`;
    const [error] = yaml.errors;
    if (error) {
      report(`${at(lines.linePos(error.pos[0]).line)}: ${explain(error)}`);
      continue;
    }
    try {
      const [start, , end] = yaml.range;
      const value = valueOf(yaml);
      const lineOf = locator(source.text.slice(start, end), lines.linePos(start).line, latest);
      const document = { file: source.name, index, path: [], value, lineOf };
      for (const item of listItems(document)) documents.push(item);
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      report(`${at(lines.linePos(error.offset).line)}: ${error.message}`);
    }
  }
  return documents;
}

function isEmpty(yaml: YamlDocument.Parsed): boolean {
  return yaml.errors.length === 0 && (isScalar(yaml.contents) ? valueOf(yaml) : yaml.contents) === null;
}

function listItems(document: Document): Document[] {
  const list = document.value as { apiVersion?: unknown; kind?: unknown; items?: unknown } | null;
  if (list?.apiVersion !== 'v1' || list.kind !== 'List' || !Array.isArray(list.items)) return [document];
  return list.items.map((value: unknown, index) => {
    const path = ['items', index];
    return { ...document, path, value, lineOf: (below) => document.lineOf([...path, ...below]) };
  });
}

function explain(error: YAMLError): string {
  if (error.message.includes('call stack')) return 'it is nested too deeply; make it flatter';
  const message = error.message.replace(/\.$/, '');
  return `this is not YAML: ${message}; correct it, or put quotes around text with special characters`;
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

import { Composer, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, Parser } from 'yaml';
import type { CollectionTag, Document as YamlDocument, ParsedNode, ScalarTag, Tags, YAMLError } from 'yaml';
import { messageOf } from '../contract/error.js';
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

/** What `strconv.ParseInt` of Go takes beyond YAML 1.1: `0o17`, and prefixes in capitals. */
const PREFIXED_NUMBER: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0(?:o[0-7_]*[0-7]|x[0-9a-f_]*[0-9a-f]|b[01_]*[01])$/i,
  resolve: (text) => {
    const number = Number(text.replaceAll(/[-+_]/g, ''));
    return text.startsWith('-') ? -number : number;
  },
};

/**
 * YAML as `kubectl` reads it, which matters where the API server would see another value than we do: `0644` is an
 * octal number, `0o644` is the same one, and `yes` is a boolean, but neither times of day nor timestamps are anything
 * but text. That is YAML 1.1 with more prefixes of numbers, without its base 60 numbers, timestamps and collections.
 * @see https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/resolve.go
 */
const YAML_OPTIONS = {
  version: '1.1',
  schema: 'yaml-1.1',
  merge: true,
  strict: true,
  uniqueKeys: true,
  prettyErrors: false,
  customTags: (tags: Tags): Tags => [
    ...tags.filter((tag) => typeof tag === 'string' || isKnownToKubectl(tag)),
    PREFIXED_NUMBER,
  ],
} as const;

function isKnownToKubectl(tag: CollectionTag | ScalarTag): boolean {
  const isTime = 'format' in tag && tag.format === 'TIME';
  return !isTime && !/:(timestamp|binary|omap|pairs|set)$/.test(tag.tag);
}

/** The one document of a text, with its comments, or the first thing that isn't YAML. */
export function parseOne(text: string): YamlDocument.Parsed | { readonly problem: string } {
  const yaml = parseDocument(text, YAML_OPTIONS);
  const error = yaml.errors[0] ?? yaml.warnings[0];
  return error ? { problem: explain(error, text) } : yaml;
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
    const error = yaml.errors[0] ?? yaml.warnings[0];
    if (error) {
      report(`${at(lines.linePos(error.pos[0]).line)}: ${explain(error, source.text)}`);
      continue;
    }
    try {
      const [start, , end] = yaml.range;
      const text = source.text.slice(start, end);
      const value: unknown = yaml.toJS();
      // An alias inside of its own anchor makes a value without end; turning it into JSON throws.
      if (text.includes('*')) JSON.stringify(value);
      const lineOf = locator(text, lines.linePos(start).line, latest);
      const document = { file: source.name, index, path: [], value, lineOf };
      for (const item of listItems(document)) documents.push(item);
    } catch (cause) {
      const { line } = lines.linePos(yaml.contents?.range[0] ?? yaml.range[0]);
      report(`${at(line)}: its anchors can't be resolved: ${messageOf(cause)}; write the values out`);
    }
  }
  return documents;
}

function isEmpty(yaml: YamlDocument.Parsed): boolean {
  if (yaml.errors.length > 0 || yaml.warnings.length > 0) return false;
  return yaml.contents === null || (isScalar(yaml.contents) && yaml.contents.value === null);
}

function listItems(document: Document): Document[] {
  const list = document.value as { apiVersion?: unknown; kind?: unknown; items?: unknown } | null;
  if (list?.apiVersion !== 'v1' || list.kind !== 'List' || !Array.isArray(list.items)) return [document];
  return list.items.map((value: unknown, index) => {
    const path = ['items', index];
    return { ...document, path, value, lineOf: (below) => document.lineOf([...path, ...below]) };
  });
}

function explain(error: YAMLError, text: string): string {
  if (error.code === 'DUPLICATE_KEY') {
    const key = /^[^\s:]*/.exec(text.slice(error.pos[0], error.pos[0] + 100))?.[0] ?? '';
    return `the key ${key} is given twice; keep one of them`;
  }
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
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
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

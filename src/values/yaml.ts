import { Composer, Document, isAlias, isMap, isScalar, isSeq, LineCounter, Parser, visit } from 'yaml';
import { isMap as isObject } from './json.js';
import type { Alias, Node, Scalar, ScalarTag, YAMLError, YAMLMap } from 'yaml';

/**
 * Options for reading YAML into nodes. All scalars stay the text that was written; {@link valueOf} decides what they mean.
 * Nodes that were read so are also written back as they were.
 */
export const YAML_OPTIONS = {
  version: '1.1',
  schema: 'failsafe',
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

/** Maximum number of values that all aliases stand for, however few are written. */
const MAX_ALIASED = 1_000_000;

/** Text that isn't YAML, or means nothing that JSON can hold. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
  constructor(
    message: string,
    /** The place in the text, counted from 0. */
    readonly offset: number,
  ) {
    super(message);
  }
}

/**
 * Returns the text of a file as `kubectl` takes it: UTF-8, or UTF-16 with a byte order mark, without the mark.
 * @throws TypeError `ERR_ENCODING_INVALID_ENCODED_DATA` for another encoding
 */
export function decodeText(bytes: Uint8Array): string {
  const mark = ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding, { fatal: true }).decode(bytes);
}

/** A part of a text: a document in JSON, or all that is left. */
interface TextPart {
  readonly text: string;
  /** Number of lines before it. */
  readonly line: number;
  /** Value of a document in JSON. */
  readonly json?: unknown;
}

/** Takes documents in JSON apart that stand in a row without a separator, which YAML knows nothing of. */
export function* splitJson(text: string): Generator<TextPart> {
  let start = 0;
  let line = 0;
  for (let end; (end = endOfMap(text, start)) !== undefined; start = end) {
    const part = text.slice(start, end);
    let json: unknown;
    try {
      json = JSON.parse(part);
    } catch {
      break;
    }
    yield { text: part, line, json };
    line += part.split('\n').length - 1;
  }
  if (start === 0 || text.slice(start).trim() !== '') yield { text: text.slice(start), line };
}

/** Returns where a map of JSON ends that begins at a place, after blanks; undefined where there is none. */
function endOfMap(text: string, start: number): number | undefined {
  const tokens = /[^\s"{}]|"(?:[^"\\]|\\[^])*"|[{}]/g;
  tokens.lastIndex = start;
  let depth = 0;
  for (let found; (found = tokens.exec(text));) {
    const [token] = found;
    if (depth === 0 && token !== '{') return undefined;
    depth += token === '{' ? 1 : token === '}' ? -1 : 0;
    if (depth === 0) return tokens.lastIndex;
  }
  return undefined;
}

/** Reports whether a document holds nothing, as what follows the last `---` of a file. */
function isEmpty({ contents }: Document.Parsed): boolean {
  return (
    contents === null ||
    (isScalar(contents) &&
      !contents.tag &&
      contents.type === 'PLAIN' &&
      resolve(String(contents.value)) === null)
  );
}

/** Document that holds something, or isn't YAML. */
interface ComposedDocument {
  readonly yaml: Document.Parsed;
  /** Returns its value, see {@link valueOf}. @throws YamlError */
  readonly read: () => unknown;
  /** Returns the line of a place, counted from 1. */
  readonly lineAt: (offset: number) => number;
}

/** Composes documents when they are asked for: the nodes of 10,000 at once would take several hundred MiB. */
export function* composeDocuments({ text, line }: TextPart): Generator<ComposedDocument> {
  const lines = new LineCounter();
  const lineAt = (offset: number): number => line + lines.linePos(offset).line;
  for (const yaml of new Composer(YAML_OPTIONS).compose(new Parser(lines.addNewLine).parse(text))) {
    const [error] = yaml.errors;
    const read = (): unknown => {
      if (error) throw new YamlError(explain(error), error.pos[0]);
      return valueOf(yaml);
    };
    if (error || !isEmpty(yaml)) yield { yaml, read, lineAt };
  }
}

function explain(error: YAMLError): string {
  if (error.message.includes('call stack')) return 'it is nested too deeply; make it flatter';
  const message = error.message.replace(/\.$/, '');
  return `this is not YAML: ${message}; correct it, or put quotes around text with special characters`;
}

/**
 * Reads the documents of a text that hold something as `kubectl` does, see {@link valueOf}. One is read when it is asked for.
 * @throws Error that says what is wrong, and where
 */
export function* readDocuments(text: string): Generator {
  for (const part of splitJson(text)) {
    // The parser of JSON takes a hundredth of the time and memory.
    if (part.json !== undefined) yield part.json;
    else
      for (const { read, lineAt } of composeDocuments(part)) {
        try {
          yield read();
        } catch (error) {
          if (!(error instanceof YamlError)) throw error;
          throw new Error(`line ${lineAt(error.offset)}: ${error.message}`, { cause: error });
        }
      }
  }
}

/** Reads the first document of a text that holds something; null where there is none. @throws as `readDocuments` */
export function readYaml(text: string): unknown {
  for (const value of readDocuments(text)) return value;
  return null;
}

/** Returns the objects of a list, those of a typed one with its type, as `kubectl` does; undefined for anything else. */
export function itemsOf(value: unknown): readonly unknown[] | undefined {
  const { apiVersion, kind, items } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return undefined;
  const type = { apiVersion, kind: kind.slice(0, -'List'.length) };
  const isTyped = (item: unknown): boolean =>
    type.kind === '' || !isObject(item) || 'kind' in item || 'apiVersion' in item;
  return (items as unknown[]).map((item) => (isTyped(item) ? item : { ...type, ...(item as object) }));
}

/** Value of an alias. */
interface Anchored {
  readonly value: unknown;
  /** Number of values that it holds. */
  readonly size: number;
}

/**
 * Returns the JSON value that `kubectl` makes of a document: YAML 1.1 as Go's parser has it, without base 60 numbers and
 * timestamps. Refuses what `kubectl` reads in a way that is hardly meant: a key that is given twice, or is a float.
 * @throws YamlError
 * @see https://github.com/yaml/go-yaml/blob/v2.4.3/decode.go
 */
function valueOf(yaml: Document.Parsed): unknown {
  /** The last node of each name before the one that is read; nothing while it is being read itself. */
  const anchors = new Map<string, Anchored | undefined>();
  let size = 0;
  let aliased = 0;

  const read = (node: Node | null): unknown => {
    if (isAlias(node)) return follow(node);
    const before = size;
    size += 1;
    if (!node) return null;
    const { anchor } = node as { anchor?: string };
    if (anchor) anchors.set(anchor, undefined);
    const value = contentOf(node);
    if (anchor) anchors.set(anchor, { value, size: size - before });
    return value;
  };

  const contentOf = (node: Node): unknown => {
    if (isMap<Node, Node | null>(node)) return Object.fromEntries(entriesOf(node));
    if (isSeq<Node | null>(node)) return node.items.map(read);
    const value = scalarOf(node as Scalar);
    if (typeof value === 'bigint') return Number(value);
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw problem(`JSON has no number ${String((node as Scalar).value)}; put quotes around it`, node);
  };

  const follow = (alias: Alias): unknown => {
    const target = anchors.get(alias.source);
    size += target?.size ?? 0;
    aliased += target?.size ?? 0;
    if (target && aliased <= MAX_ALIASED) return target.value;
    const isOpen = !target && anchors.has(alias.source);
    const cause = target ? 'makes it too large' : isOpen ? 'holds itself' : 'is not set before it is used';
    throw problem(`its anchors can't be resolved: ${alias.source} ${cause}; write the values out`, alias);
  };

  /** Merges in the order that is written, as Go's parser does: what comes later wins. */
  const entriesOf = (map: YAMLMap<Node, Node | null>): Map<string, unknown> => {
    const entries = new Map<string, unknown>();
    const own = new Set<string>();
    for (const { key, value } of map.items) {
      if (isMergeKey(key)) {
        const from = read(value);
        for (const each of Array.isArray(from) ? (from as unknown[]).toReversed() : [from]) {
          if (typeof each !== 'object' || each === null || Array.isArray(each))
            throw problem('<< takes a map, or a list of maps; put quotes around it to make it a key', key);
          for (const [name, member] of Object.entries(each)) entries.set(name, member);
        }
        continue;
      }
      const name = keyOf(key);
      if (own.has(name)) throw problem(`the key ${name} is given twice; keep one of them`, key);
      own.add(name);
      entries.set(name, read(value));
    }
    return entries;
  };

  return read(yaml.contents);
}

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN' && !key.tag;
}

function problem(message: string, { range }: { range?: readonly number[] | null }): YamlError {
  return new YamlError(message, range?.[0] ?? 0);
}

/**
 * Returns the text that `kubectl` makes of a key. Of a float that is another one than was written, as `1.1` of `1.10`.
 * @throws YamlError for what can't be a key, and for floats
 */
export function keyOf(node: unknown): string {
  const value = isScalar(node) ? scalarOf(node) : null;
  if (value === null || typeof value === 'number' || (typeof value === 'bigint' && value >= 2n ** 63n))
    throw problem("this can't be a key; put quotes around it", node as Node);
  return String(value);
}

/** An integer is a bigint: as a key it is written with all of its digits. */
type ScalarValue = string | number | bigint | boolean | null;

const TYPES: Partial<Record<string, string>> = { boolean: 'bool', bigint: 'int', number: 'float' };
const STANDARD_TAG = /^tag:yaml\.org,2002:(bool|int|float|null|binary|merge)$/;

function scalarOf(node: Scalar): ScalarValue {
  const text = String(node.value);
  if (!node.tag) return node.type === 'PLAIN' ? resolve(text) : text;
  const tag = STANDARD_TAG.exec(node.tag)?.[1];
  if (!tag) return text;
  const value = resolve(text);
  if (tag === (value === null ? 'null' : TYPES[typeof value])) return value;
  throw problem(`${text} is no ${tag}, as its tag has it; remove the tag`, node);
}

const WORDS: ReadonlyMap<string, ScalarValue> = new Map(
  (
    [
      [true, 'y Y yes Yes YES true True TRUE on On ON'],
      [false, 'n N no No NO false False FALSE off Off OFF'],
      [null, ' ~ null Null NULL'],
      [NaN, '.nan .NaN .NAN'],
      [Infinity, '.inf .Inf .INF +.inf +.Inf +.INF'],
      [-Infinity, '-.inf -.Inf -.INF'],
    ] as const
  ).flatMap(([value, words]) => words.split(' ').map((word) => [word, value] as const)),
);

/**
 * Returns what a plain scalar means to `kubectl`.
 * @see https://github.com/yaml/go-yaml/blob/v2.4.3/resolve.go
 */
function resolve(text: string): ScalarValue {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (text.startsWith('.')) return /^\.\d+(?:_\d+)*(?:e[-+]?\d+(?:_\d+)*)?$/i.test(text) ? float(text) : text;
  if (!/^[-+\d]/.test(text)) return text;
  const number = text.replaceAll('_', '').replace(/^0b([-+])/, '$10b');
  const integer = /^([-+]?)(0b[01]+|0o[0-7]+|0x[\da-f]+|0[0-7]*|[1-9]\d{0,20})$/i.exec(number);
  if (integer) {
    const [, sign, digits = ''] = integer;
    const value = BigInt(/^0\d/.test(digits) ? `0o${digits}` : digits);
    if (value < 2n ** 63n || (sign === '' && value < 2n ** 64n)) return sign === '-' ? -value : value;
    if (sign === '-' && value === 2n ** 63n) return -value;
  }
  return /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(number) ? float(number) : text;

  function float(digits: string): number | string {
    const value = Number(digits.replaceAll('_', ''));
    return Number.isFinite(value) ? value : text;
  }
}

/** Text that `kubectl` or some other parser takes for something else is put between quotes. */
const AMBIGUOUS: ScalarTag = {
  tag: 'tag:reconstruct.kosmos.io,2026:ambiguous',
  default: true,
  identify: () => false,
  test: { test: (text: string) => text === '=' || text === '<<' || resolve(text) !== text } as RegExp,
  resolve: (text) => text,
};

/** Characters that Go's parser refuses, or takes for the end of a line. */
const UNSAFE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/**
 * Writes a JSON value as YAML that parsers of 1.1 and 1.2, and `kubectl`, read as that value. A text that holds no such
 * ambiguity is written as cdk8s writes it.
 */
export function writeYaml(value: unknown): string {
  const document = new Document(value, {
    version: '1.1',
    compat: 'core',
    keepUndefined: true,
    aliasDuplicateObjects: false,
    // With its tag, a merge key is written without quotes whatever else is said.
    customTags: (tags) => [
      ...tags.filter((tag) => typeof tag === 'string' || !tag.tag.endsWith(':merge')),
      AMBIGUOUS,
    ],
  });
  const text = document.toString({ lineWidth: 0 });
  if (text.search(UNSAFE) < 0) return text;
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && node.value.search(UNSAFE) >= 0) node.type = 'QUOTE_DOUBLE';
    },
  });
  const escaped = (character: string): string =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return document.toString({ lineWidth: 0 }).replaceAll(UNSAFE, escaped);
}

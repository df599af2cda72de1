import { Document, isAlias, isMap, isScalar, parseDocument, visit } from 'yaml';
import type { Alias, Node, Scalar, ScalarTag, YAMLMap } from 'yaml';

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

const MERGE = 'tag:yaml.org,2002:merge';

/** YAML that is well-formed, and means nothing that JSON can hold. */
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
 * Reads the one document of a text as `kubectl` does, see {@link valueOf}.
 * @throws Error that says what is wrong
 */
export function readYaml(text: string): unknown {
  const yaml = parseDocument(text, { ...YAML_OPTIONS, prettyErrors: true });
  if (yaml.errors[0]) throw yaml.errors[0];
  return valueOf(yaml);
}

/**
 * Returns the JSON value that `kubectl` makes of a document: YAML 1.1 as Go's parser has it, without base 60 numbers and
 * timestamps. Unlike `kubectl`, which silently keeps one of them, it refuses a key that is given twice.
 * @throws YamlError
 * @see https://github.com/yaml/go-yaml/blob/v2.4.3/decode.go
 */
export function valueOf(yaml: Document.Parsed): unknown {
  let targets: ReadonlyMap<Alias, Node> | undefined;
  const values = new Map<Node, { readonly value: unknown; readonly size: number }>();
  const open = new Set<Alias>();
  let decoded = 0;
  let aliased = 0;

  const read = (node: Node | null): unknown => {
    decoded += 1;
    if (open.size > 0) aliased += 1;
    if (isAlias(node)) return follow(node, reuse);
    if (node && 'items' in node) {
      const before = decoded;
      const value = isMap<Node, Node | null>(node)
        ? Object.fromEntries(entriesOf(node, new Map()))
        : (node.items as Node[]).map(read);
      if (node.anchor) values.set(node, { value, size: decoded - before });
      return value;
    }
    if (!node) return null;
    const value = scalarOf(node);
    if (typeof value === 'bigint') return Number(value);
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw problem(`JSON has no number ${String(node.value)}; put quotes around it`, node);
  };

  /** What aliases stand for is one object, which counts as often as it is used. */
  const reuse = (target: Node): unknown => {
    const { value, size = 0 } = values.get(target) ?? { value: read(target) };
    decoded += size;
    aliased += size;
    return value;
  };

  const follow = <T>(alias: Alias, then: (target: Node) => T): T => {
    targets ??= targetsOf(yaml);
    const target = targets.get(alias);
    const allowed = 0.99 - 0.89 * Math.min(1, Math.max(0, (decoded - 400_000) / 3_600_000));
    const isTooMuch = aliased > 100 && decoded > 1000 && aliased / decoded > allowed;
    if (!target || open.has(alias) || isTooMuch) {
      const cause = isTooMuch
        ? 'makes it too large'
        : target
          ? 'holds itself'
          : 'is not set before it is used';
      throw problem(`its anchors can't be resolved: ${alias.source} ${cause}; write the values out`, alias);
    }
    open.add(alias);
    const value = then(target);
    open.delete(alias);
    return value;
  };

  const entriesOf = (
    map: YAMLMap<Node, Node | null>,
    entries: Map<string, unknown>,
  ): Map<string, unknown> => {
    const own = new Set<string>();
    for (const { key, value } of map.items) {
      if (isMergeKey(key)) {
        merge(key, value, entries);
        continue;
      }
      const name = isAlias(key) ? follow(key, keyOf) : keyOf(key);
      if (own.has(name)) throw problem(`the key ${name} is given twice; keep one of them`, key);
      own.add(name);
      entries.set(name, read(value));
    }
    return entries;
  };

  /** Merges in the order that is written, as Go's parser does: what comes later wins. */
  const merge = (key: Node, from: Node | null, entries: Map<string, unknown>): void => {
    const list = from && 'items' in from && !isMap(from) ? [...(from.items as Node[])].reverse() : [from];
    for (const each of list) {
      const into = (map: Node | null): unknown => {
        if (isMap<Node, Node | null>(map)) return entriesOf(map, entries);
        throw problem('<< takes a map, or a list of maps; put quotes around it to make it a key', key);
      };
      if (isAlias(each)) follow(each, into);
      else into(each);
    }
  };

  return read(yaml.contents);
}

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && (key.tag ? key.tag === MERGE : key.type === 'PLAIN');
}

/** What each alias stands for: the last node of that anchor before it. */
function targetsOf(yaml: Document.Parsed): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(yaml, {
    Value: (_, node) => {
      if (node.anchor) anchors.set(node.anchor, node);
    },
    Alias: (_, alias) => {
      const target = anchors.get(alias.source);
      if (target) targets.set(alias, target);
    },
  });
  return targets;
}

function problem(message: string, { range }: { range?: readonly number[] | null }): YamlError {
  return new YamlError(message, range?.[0] ?? 0);
}

/** Returns the text that `kubectl` makes of a key. @throws YamlError for what can't be a key */
export function keyOf(node: unknown): string {
  const value = isScalar(node) ? scalarOf(node) : null;
  if (value === null || (typeof value === 'bigint' && value >= 2n ** 63n))
    throw problem("this can't be a key; put quotes around it", node as Node);
  return typeof value === 'number' ? float32Text(value) : String(value);
}

/** A float as Go's parser makes a key of it: with the fewest digits that tell it from other floats of 32 bits. */
function float32Text(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(Math.fround(value))) return value < 0 ? '-.inf' : '.inf';
  const short = Array.from({ length: 9 }, (_, digits) => value.toExponential(digits)).find(
    (text) => Math.fround(Number(text)) === Math.fround(value),
  );
  const exponent = Number(short?.split('e')[1]);
  if (exponent < -4 || exponent > 5) return String(short).replace(/e([-+])(\d)$/, 'e$10$2');
  return Object.is(value, -0) ? '-0' : String(Number(short));
}

/** An integer is a bigint: as a key it is written with all of its digits. */
type ScalarValue = string | number | bigint | boolean | null;

const TYPES: Partial<Record<string, string>> = { boolean: 'bool', bigint: 'int', number: 'float' };
const STANDARD_TAG = /^tag:yaml\.org,2002:(bool|int|float|null|binary)$/;

function scalarOf(node: Scalar): ScalarValue {
  const text = String(node.value);
  if (!node.tag) return node.type === 'PLAIN' ? resolve(text) : text;
  const tag = STANDARD_TAG.exec(node.tag)?.[1];
  if (tag === 'binary') {
    const bytes = Buffer.from(text, 'base64');
    if (bytes.toString('base64') === text.replaceAll(/[\r\n]/g, '')) return bytes.toString();
  } else {
    const value = tag ? resolve(text) : text;
    const type = value === null ? 'null' : TYPES[typeof value];
    if (!tag || type === tag) return value;
    if (tag === 'float' && typeof value === 'bigint') return Number(value);
  }
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

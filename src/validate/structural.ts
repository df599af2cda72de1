import { isDeepStrictEqual } from 'node:util';
import type { StructuralSchema } from '../contract/crd.js';
import { canonicalJson, isMap } from '../values/json.js';
import { compileRegularExpression } from '../values/regular-expression.js';
import { suggest } from '../values/suggest.js';
import { hasFormat, RE2 } from './formats.js';
import { MISSING, UNKNOWN_FIELD } from './problem.js';
import { showValue } from '../values/path.js';
import type { Problem } from './problem.js';
import { isUnchanged, placeBelow, schemaBelow } from './unchanged.js';
import type { Place } from './unchanged.js';

/** Mistake in a value, by a keyword of its schema. */
export interface Mistake extends Problem {
  readonly keyword: string;
  /** Whether rules in CEL could fail in themselves on such a value. */
  readonly blocksRules: boolean;
  /** Path of the field that an unknown one is taken for, as JSON. @default - none is near */
  readonly meant?: string;
}

const IDENTITY: readonly string[] = ['apiVersion', 'kind', 'metadata'];
const TEXT: StructuralSchema = { type: 'string' };
const TIME: StructuralSchema = { ...TEXT, nullable: true, format: 'date-time' };
const LIST_OF_MAPS: StructuralSchema = {
  type: 'array',
  items: { type: 'object', additionalProperties: true },
};
const LABEL: StructuralSchema = {
  ...{ type: 'string', maxLength: 63, pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$' },
};

/**
 * The fields of ObjectMeta; what the API server fills in is taken as it comes.
 * @see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 */
const OBJECT_META: StructuralSchema = {
  type: 'object',
  properties: {
    ...{ name: TEXT, generateName: TEXT, namespace: TEXT, uid: TEXT, resourceVersion: TEXT, selfLink: TEXT },
    labels: { type: 'object', additionalProperties: LABEL },
    annotations: { type: 'object', additionalProperties: TEXT },
    ...{ ownerReferences: LIST_OF_MAPS, managedFields: LIST_OF_MAPS },
    finalizers: { type: 'array', items: TEXT },
    ...{ generation: { type: 'integer' }, deletionGracePeriodSeconds: { type: 'integer' } },
    ...{ creationTimestamp: TIME, deletionTimestamp: TIME },
  },
};

/** Adds the three fields that every object has, also one inside of the object. */
export function objectSchema(schema: StructuralSchema, ...required: readonly string[]): StructuralSchema {
  return {
    ...schema,
    properties: { ...schema.properties, apiVersion: TEXT, kind: TEXT, metadata: OBJECT_META },
    required: [...new Set([...(schema.required ?? []), 'apiVersion', 'kind', ...required])],
  };
}

/** Value whose schema has rules in CEL. */
export interface Ruled {
  /** Schema as it was given, which has the rules. */
  readonly given: StructuralSchema;
  /** The same with the fields that every object has, where it is of one. */
  readonly schema: StructuralSchema;
  readonly place: Place;
}

/**
 * Returns what the API server finds wrong with a custom resource under `fieldValidation=Strict`, by its schema, and the values
 * that rules are about.
 * @param old what the cluster has: mistakes that were there, in a part that stays as it is, are none
 */
export function checkObject(
  schema: StructuralSchema,
  value: unknown,
  old?: unknown,
): { readonly mistakes: Mistake[]; readonly ruled: readonly Ruled[] } {
  const pair = old === undefined ? undefined : { schema, value, old };
  const root: Place = { value, path: [], pair, nearest: pair };
  const whole = new Checker();
  const { found, ruled } = whole;
  whole.check(schema, root, { isRoot: true });
  // A CRD may restrict the name, and nothing else of the metadata.
  const own = schema.properties?.metadata;
  if (own && isMap(value) && value.metadata !== undefined)
    whole.check(own, placeBelow(root, 'metadata', value.metadata), { isBranch: true });
  const isRepeated = ({ keyword }: Mistake): boolean => keyword === REPEATED;
  const hadRepeated = pair && found.some(isRepeated) && checkObject(schema, old).mistakes.some(isRepeated);
  return { mistakes: found.filter((mistake) => !hadRepeated || !isRepeated(mistake)), ruled };
}

/** Returns the mistakes in a value of any form. */
export function mistakesIn(schema: StructuralSchema, value: unknown): Mistake[] {
  const checker = new Checker();
  checker.check(schema, { value, path: [], pair: undefined, nearest: undefined });
  return checker.found;
}

/** Returns the mistakes that are to be reported, each once. */
export function reported(mistakes: readonly Mistake[]): Problem[] {
  const meant = new Set(mistakes.map((mistake) => mistake.meant));
  const pathOf = ({ path }: Mistake): string => JSON.stringify(path);
  const mistyped = new Set(mistakes.filter(({ keyword }) => keyword === 'type').map(pathOf));
  const problems = mistakes.flatMap((mistake): [string, Problem][] => {
    const { keyword, path, message, remedy } = mistake;
    const isMisspelt = keyword === 'required' && meant.has(pathOf(mistake));
    if (isMisspelt || (keyword !== 'type' && mistyped.has(pathOf(mistake)))) return [];
    const problem = { path, message, ...(remedy !== undefined && { remedy }) };
    return [[JSON.stringify(problem), problem]];
  });
  return [...new Map(problems).values()];
}

/** Keyword of mistakes in lists of the types `set` and `map`. */
const REPEATED = 'x-kubernetes-list-type';
const UNKNOWN = 'additionalProperties';

/**
 * Keywords after whose mistakes no rule is judged.
 * @see https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/registry/customresource/strategy.go
 * hasBlockingErr
 */
const BLOCKING: ReadonlySet<string> = new Set([
  ...[UNKNOWN, 'enum', 'maxItems', 'maxLength', 'maxProperties', 'required', 'type'],
]);

const IS_OF_TYPE: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: isMap,
  null: (value) => value === null,
};

interface CheckOptions {
  /** Whether the schema is of a whole custom resource. */
  readonly isRoot?: boolean;
  /** Whether the schema is below `allOf` and the like, where only the value keywords count. */
  readonly isBranch?: boolean;
  /** Whether the place is within the identity of an object inside of the object: that is refused however old it is. */
  readonly isIdentity?: boolean;
}

/** Collects the mistakes in a value and all that is below it. */
class Checker {
  readonly found: Mistake[] = [];
  readonly ruled: Ruled[] = [];

  check(given: StructuralSchema, place: Place, options: CheckOptions = {}): void {
    const { value } = place;
    const isEmbedded = !options.isBranch && given['x-kubernetes-embedded-resource'] === true;
    const ofObject = isEmbedded ? objectSchema(given) : given;
    const schema = options.isRoot ? objectSchema({ ...given, type: 'object' }, 'metadata') : ofObject;
    if (!options.isBranch && given['x-kubernetes-validations']) this.ruled.push({ given, schema, place });
    for (const [keyword, message, remedy, step, meant, blocks = BLOCKING.has(keyword)] of [
      ...wrongType(schema, value, options),
      ...wrongValue(schema, value, options),
      ...this.unfit(schema, place, options),
      ...(isMap(value) ? wrongFields(schema, value, options) : []),
    ]) {
      const isIdentity = options.isIdentity || (isEmbedded && IDENTITY.includes(String(step)));
      const isOld = place.nearest && !isIdentity && keyword !== UNKNOWN && keyword !== REPEATED;
      if (isOld && isUnchanged(place.nearest)) continue;
      const path = step === undefined ? place.path : [...place.path, step];
      const near = meant !== undefined && { meant: JSON.stringify([...place.path, meant]) };
      const blocksRules = blocks || (keyword === 'format' && formatBlocks(value, schema));
      this.found.push({ ...{ keyword, path, message, remedy, blocksRules }, ...near });
      if (keyword === 'type') return;
    }
    const members = Array.isArray(value) ? value.entries() : isMap(value) ? Object.entries(value) : [];
    for (const [step, member] of members as Iterable<[string | number, unknown]>) {
      const of = schemaBelow(schema, step);
      const isIdentity = options.isIdentity || (isEmbedded && IDENTITY.includes(String(step)));
      if (of && member !== undefined)
        this.check(of, placeBelow(place, step, member), { ...options, isRoot: false, isIdentity });
    }
  }

  /** Finds the alternatives that a value doesn't fit: that none fits says more than what each branch says. */
  private *unfit(schema: StructuralSchema, place: Place, options: CheckOptions): Iterable<Wrong> {
    const judged = (branch: unknown): Mistake[] => {
      const checker = new Checker();
      // Below these keywords the API server doesn't look at what was there.
      const inside = { ...place, pair: undefined };
      checker.check((branch ?? {}) as StructuralSchema, inside, { ...options, isBranch: true });
      return checker.found;
    };
    const branchesOf = (keyword: string): Mistake[][] =>
      ((schema[keyword] ?? []) as readonly unknown[]).map(judged);
    const wrong = (keyword: string, what: string, branches: readonly Mistake[][] = []): Wrong => {
      const blocks = branches.flat().some(({ blocksRules }) => blocksRules);
      return [keyword, `${showValue(place.value)} ${what}`, SEE, undefined, undefined, blocks];
    };
    const fitting = (branches: Mistake[][]): number => branches.filter(({ length }) => length === 0).length;
    if (schema.not && judged(schema.not).length === 0) yield wrong('not', 'must NOT be valid');
    const [any, one] = [branchesOf('anyOf'), branchesOf('oneOf')];
    if (any.length > 0 && fitting(any) === 0) yield wrong('anyOf', 'must match a schema in anyOf', any);
    if (one.length > 0 && fitting(one) !== 1)
      yield wrong('oneOf', 'must match exactly one schema in oneOf', one);
    this.found.push(...branchesOf('allOf').flat());
  }
}

/** A mistake, with the step below the value that it is about, and the field that is meant there. */
type Wrong = readonly [
  keyword: string,
  message: string,
  remedy: string,
  step?: string | number | undefined,
  meant?: string | undefined,
  /** Whether no rule is judged after it. @default - as its keyword says */
  blocks?: boolean,
];

const SEE = "see the kind's reference";

/** Reports whether rules aren't judged: an integer that doesn't fit into 64 bits is one of another type. */
function formatBlocks(value: unknown, { format = 'int64' }: StructuralSchema): boolean {
  const isTooLarge = typeof value !== 'number' || value < -(2 ** 63) || value >= 2 ** 63;
  return typeof value === 'string' || (format === 'int64' && isTooLarge);
}

function* wrongValue(schema: StructuralSchema, value: unknown, { isBranch }: CheckOptions): Iterable<Wrong> {
  if (typeof value === 'number') yield* wrongNumber(schema, value);
  if (typeof value === 'string') yield* wrongText(schema, value);
  // Numbers are doubles here: a larger integer would come out changed.
  const { format = schema.type === 'integer' && !isBranch ? 'int64' : undefined } = schema;
  if (format !== undefined && !hasFormat(value, format))
    yield [
      'format',
      `${showValue(value)} is no ${format}`,
      `give ${EXAMPLES[format] ?? `text of the format ${format}`}`,
    ];
  // The API server takes a list without items as if it weren't there.
  const allowed = schema.enum ?? [];
  if (allowed.length > 0 && !allowed.some((each) => isDeepStrictEqual(each, value))) {
    const names = allowed.map((each) => (typeof each === 'string' && each !== '' ? each : showValue(each)));
    const near = typeof value === 'string' ? suggest(value, names) : undefined;
    const remedy = near ? `did you mean ${near}?` : 'give one of them';
    yield ['enum', `${showValue(value)} is not one of ${names.join(', ')}`, remedy];
  }
  if (!Array.isArray(value)) return;
  yield* wrongSize(schema, value.length, 'Items');
  if (!isBranch) yield* repeatedItems(schema, value);
}

function* wrongNumber(schema: StructuralSchema, value: number): Iterable<Wrong> {
  const { minimum: least, maximum: most } = schema;
  const { multipleOf: factor } = schema as { readonly multipleOf?: number };
  const [isAbove, isBelow] = [schema.exclusiveMinimum === true, schema.exclusiveMaximum === true];
  const [from, to] = [isAbove ? undefined : least, isBelow ? undefined : most];
  const oneSided = from === undefined ? `give ${to} or less` : `give ${from} or more`;
  const range = from === undefined || to === undefined ? oneSided : `give a number between ${from} and ${to}`;
  if (isAbove && least !== undefined && value <= least)
    yield ['minimum', `${value} is not more than ${least}`, `give a number above ${least}`];
  else if (least !== undefined && value < least) yield ['minimum', `${value} is less than ${least}`, range];
  if (isBelow && most !== undefined && value >= most)
    yield ['maximum', `${value} is not less than ${most}`, `give a number below ${most}`];
  else if (most !== undefined && value > most) yield ['maximum', `${value} is more than ${most}`, range];
  // The API server refuses every number where the factor isn't positive.
  if (factor !== undefined && factor <= 0) yield ['multipleOf', `${value} must NOT be valid`, SEE];
  else if (factor !== undefined && !Number.isInteger(value / factor))
    yield ['multipleOf', `${value} must be multiple of ${factor}`, SEE];
}

function* wrongText({ minLength, maxLength, pattern }: StructuralSchema, value: string): Iterable<Wrong> {
  const shown = showValue(value);
  const length = minLength === undefined && maxLength === undefined ? 0 : Array.from(value).length;
  if (minLength !== undefined && length < minLength) {
    const what = value === '' ? '"" is empty' : `${shown} is too short`;
    yield ['minLength', what, `give at least ${plural(minLength, 'character')}`];
  }
  if (maxLength !== undefined && length > maxLength) {
    const what = `${shown} is too long, it has ${plural(length, 'character')}`;
    yield ['maxLength', what, `give at most ${maxLength}`];
  }
  if (pattern === undefined || compileRegularExpression(pattern).test(value)) return;
  const what = patternInWords(pattern);
  if (what === undefined) yield ['pattern', `${shown} doesn't match ${pattern}`, 'give text that does'];
  else yield ['pattern', `${shown} is not ${what}`, 'give one'];
}

function* wrongSize(schema: StructuralSchema, size: number, of: 'Items' | 'Properties'): Iterable<Wrong> {
  const [least = 0, most = Infinity] = [schema[`min${of}`], schema[`max${of}`]] as (number | undefined)[];
  if (size < least) yield [`min${of}`, `has ${plural(size, 'item')}`, `give at least ${least}`];
  if (size > most) yield [`max${of}`, `has ${plural(size, 'item')}`, `give at most ${most}`];
}

function* wrongFields(schema: StructuralSchema, value: object, { isBranch }: CheckOptions): Iterable<Wrong> {
  const fields = Object.keys(value);
  yield* wrongSize(schema, fields.length, 'Properties');
  for (const name of new Set(schema.required))
    if (!Object.hasOwn(value, name)) yield ['required', MISSING, 'add it', name];
  const { type, properties = {}, additionalProperties = false } = schema;
  const isOpen = additionalProperties !== false || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isBranch || type !== 'object' || isOpen) return;
  const known = Object.keys(properties);
  const listed = `${known.slice(0, 20).join(', ')}${known.length > 20 ? ', ...' : ''}`;
  const rest =
    known.length === 0 ? 'remove it: nothing may be here' : `remove it; the fields here are ${listed}`;
  for (const name of fields.filter((each) => !Object.hasOwn(properties, each))) {
    const near = suggest(name, known);
    yield [UNKNOWN, UNKNOWN_FIELD, near === undefined ? rest : `did you mean ${near}?`, name, near];
  }
}

/** Finds items of a list of type `map` with the same keys, and equal items of one of type `set`. */
function* repeatedItems(schema: StructuralSchema, list: readonly unknown[]): Iterable<Wrong> {
  const { 'x-kubernetes-list-type': type, 'x-kubernetes-list-map-keys': keys = [] } = schema;
  if (type !== 'map' && type !== 'set') return;
  const isByKeys = type === 'map' && keys.length > 0;
  const seen = new Map<string, number>();
  const reported = new Set<string>();
  for (const [index, item] of list.entries()) {
    const member = Object(item) as Readonly<Record<string, unknown>>;
    // An item's key that is missing is not one that is null.
    const given = Object.entries(member).filter(([key]) => keys.includes(key));
    const identity = canonicalJson(isByKeys ? Object.fromEntries(given) : item);
    const first = seen.get(identity);
    if (first === undefined) seen.set(identity, index);
    // Of many that are the same, the API server names the second.
    if (first === undefined || reported.has(identity)) continue;
    reported.add(identity);
    const shown = isByKeys && keys.map((key) => `${key} ${showValue(member[key])}`).join(', ');
    const message = `${shown || showValue(item)} is given twice, first by item [${first}]`;
    yield [REPEATED, message, 'remove or change one of them', index];
  }
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  ...{ string: 'a string', integer: 'an integer', number: 'a number', boolean: 'a boolean' },
  ...{ array: 'a list', object: 'a map', null: 'null' },
};

function* wrongType(schema: StructuralSchema, value: unknown, { isBranch }: CheckOptions): Iterable<Wrong> {
  const isEither = !isBranch && schema['x-kubernetes-int-or-string'] === true;
  const own = isEither ? ['integer', 'string'] : [schema.type ?? []].flat();
  const types = own.length > 0 && !isBranch && schema.nullable ? [...own, 'null'] : own;
  if (types.length === 0 || types.some((type) => IS_OF_TYPE[type]?.(value))) return;
  const expected = types.map((type) => TYPE_NAMES[type] ?? type).join(' or ');
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const isPossible = typeof value !== 'number' || Number.isFinite(value);
  const what = isPossible
    ? `${TYPE_NAMES[type] ?? 'something else'}, not ${expected}`
    : 'not a number that JSON can say';
  const isQuoted =
    typeof value === 'string' &&
    ((types.includes('boolean') && /^(true|false)$/.test(value)) ||
      (types.includes('number') && /^-?\d+(\.\d+)?$/.test(value)) ||
      (types.includes('integer') && /^-?\d+$/.test(value)));
  const isUnquoted = isPossible && (type === 'number' || type === 'boolean') && types.includes('string');
  const remedy = `give ${expected}${value === null ? ', or remove the field' : ''}`;
  yield [
    'type',
    `${showValue(value)} is ${what}`,
    isQuoted ? 'write it without quotes' : isUnquoted ? 'put it in quotes' : remedy,
  ];
}

const EXAMPLES: Readonly<Record<string, string>> = {
  int32: 'a whole number between -2147483648 and 2147483647',
  int64: 'a whole number below 2^53, which can be kept exactly',
  float: 'a smaller number',
  ...{ date: 'it like 2026-01-31', 'date-time': 'it like 2026-01-31T12:00:00Z' },
  ...{ datetime: 'it like 2026-01-31T12:00:00Z', duration: 'it like 1h30m' },
  ...{ email: 'it like someone@example.com', hostname: 'it like www.example.com' },
  ...{ uri: 'it like https://example.com/path', byte: 'base64 such as aGVsbG8=' },
  uuid: 'it like 123e4567-e89b-12d3-a456-426614174000',
  ...{ ipv4: 'it like 192.0.2.1', ipv6: 'it like 2001:db8::1', cidr: 'it like 192.0.2.0/24' },
  ...{ mac: 'it like 02:00:5e:10:00:01', hexcolor: 'it like #00ff7f', rgbcolor: 'it like rgb(0,255,127)' },
  [RE2]: 'one without look-around and backreferences, that is not too large',
  ...{ 'k8s-short-name': 'a DNS label such as my-name', 'k8s-long-name': 'a DNS name such as my.name' },
};

const LABEL_VALUE = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;

/** Patterns that Kubernetes gives to names, labels and the like, and that CRDs repeat. */
const PATTERNS = new Map([
  [`^${DNS_LABEL}$`, 'a name of lower-case letters, digits and, between them, dashes, such as web-1'],
  [`^${DNS_SUBDOMAIN}$`, 'a name of lower-case letters, digits and, between them, dashes and dots'],
  [`^(\\*\\.)?${DNS_SUBDOMAIN}$`, 'a hostname such as shop.example.com or *.example.com'],
  [`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${LABEL_VALUE}$`, 'the key of a label, such as example.com/tier'],
  [`^(${LABEL_VALUE})?$`, 'the value of a label, such as front-end or v1.2_3'],
  ['^(0|[1-9][0-9]*)%$', 'a percentage such as 25%'],
  ['^(100|[0-9]|[1-9][0-9])%$', 'a percentage such as 25%'],
]);

/** Returns undefined for a pattern that has to speak for itself. The pattern of quantities has many forms. */
function patternInWords(pattern: string): string | undefined {
  const isQuantity = /\[KMGTPE\]i/.test(pattern) && pattern.startsWith('^') && !pattern.includes('Memory');
  return PATTERNS.get(pattern) ?? (isQuantity ? 'a quantity such as 500m, 2 or 1Gi' : undefined);
}

import { Ajv } from 'ajv';
import type { ErrorObject, SchemaValidateFunction } from 'ajv';
import type { StructuralSchema } from '../contract/crd.js';
import { compileRegularExpression } from '../contract/regular-expression.js';
import { suggest } from '../contract/suggest.js';
import { FORMATS, formatHelp } from './formats.js';
import { LIST_KEYS, rootJsonSchema } from './json-schema.js';
import type { JsonSchema } from './json-schema.js';
import { showValue, UNKNOWN_FIELD } from './problem.js';
import type { Path, Problem } from './problem.js';
import { isUnchangedAt } from './unchanged.js';

/** What a schema says about a value, without its rules in CEL. */
interface Verdict {
  readonly problems: readonly Problem[];
  /** Whether the value is so wrong that the API server doesn't ask the rules. */
  readonly blocksRules: boolean;
}

/** @param old what was there before: what is wrong already, and stays as it is, isn't refused */
type ValidateOpenApi = (value: unknown, old?: unknown) => Verdict;

/**
 * A validator that accepts what the API server accepts under `fieldValidation=Strict`, rules in CEL and names
 * aside.
 * @throws Error if the schema itself is wrong, e.g. has a pattern that is no regular expression
 */
export function compileOpenApi(schema: StructuralSchema): ValidateOpenApi {
  const ajv = new Ajv({
    allErrors: true,
    verbose: true,
    // Schemas of CRDs have keywords of their own, and formats that nobody checks.
    strict: false,
    strictNumbers: true,
    logger: false,
    // A field named `constructor` is not there because every object has one.
    ownProperties: true,
    formats: FORMATS,
    // Patterns are written for Go.
    code: { regExp: Object.assign(compileRegularExpression, { code: 'compileRegularExpression' }) },
  });
  ajv.addKeyword({
    keyword: LIST_KEYS,
    type: 'array',
    schemaType: 'array',
    errors: true,
    validate: uniqueItems,
  });
  const validate = ajv.compile(rootJsonSchema(schema));
  const errorsOf = (value: unknown): readonly ErrorObject[] =>
    validate(value) ? [] : (validate.errors ?? []);
  return (value, old) => {
    let errors = errorsOf(value);
    if (old !== undefined && errors.length > 0) {
      const hadDuplicates = errorsOf(old).some(({ keyword }) => keyword === LIST_KEYS);
      errors = errors.filter((error) => {
        if (error.keyword === 'additionalProperties') return true;
        if (error.keyword === LIST_KEYS) return !hadDuplicates;
        const path = pathOf(error.instancePath, value);
        return (
          isOfEmbedded(schema, [...path, ...missingProperty(error)]) ||
          !isUnchangedAt({ schema, value, old }, path.slice(0, comparedDepth(error.schemaPath)))
        );
      });
    }
    return { problems: describeErrors(errors, value), blocksRules: errors.some(blocksRules) };
  };
}

function missingProperty({ keyword, params }: ErrorObject): string[] {
  return keyword === 'required' ? [String(params.missingProperty)] : [];
}

/**
 * How many steps into the value the API server compares: below `allOf` and the like it doesn't look at what was there.
 */
function comparedDepth(schemaPath: string): number {
  // What a schema says of the metadata stands below `allOf` here, and only here.
  const [, ...steps] = schemaPath.replace(/^(#\/properties\/metadata)\/allOf\/0/, '$1').split('/');
  let depth = 0;
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at] ?? '';
    if (['allOf', 'anyOf', 'oneOf', 'not'].includes(step)) break;
    if (step === 'properties') at++;
    if (['properties', 'items', 'additionalProperties'].includes(step)) depth++;
  }
  return depth;
}

const IDENTITY: readonly unknown[] = ['apiVersion', 'kind', 'metadata'];

/** Whether it is what every object has, of one inside of the object: that is refused however old it is. */
function isOfEmbedded(schema: StructuralSchema, path: Path): boolean {
  let at: StructuralSchema | undefined = schema;
  for (const step of path) {
    if (at?.['x-kubernetes-embedded-resource'] === true && IDENTITY.includes(step)) return true;
    at = schemaAt(at, step);
  }
  return false;
}

function schemaAt(schema: StructuralSchema | undefined, step: string | number): StructuralSchema | undefined {
  if (typeof step === 'number') return schema?.items;
  const { properties = {}, additionalProperties } = schema ?? {};
  if (Object.hasOwn(properties, step)) return properties[step];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** Where rules could go wrong in themselves; a field that is unknown is refused before anything else is asked. */
const BLOCKING = new Set([
  'additionalProperties',
  'enum',
  'maxItems',
  'maxLength',
  'maxProperties',
  'required',
  'type',
]);

/**
 * @see https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/registry/customresource/strategy.go
 * hasBlockingErr
 */
function blocksRules(error: ErrorObject, _index: number, all: readonly ErrorObject[]): boolean {
  const { keyword, data, params } = error;
  if (keyword === 'type' && passesForInteger(data) && all.some((other) => wantsInteger(other, error)))
    return false;
  if (BLOCKING.has(keyword)) return true;
  // An integer that doesn't fit into 64 bits is one of another type.
  return (
    keyword === 'format' && (typeof data === 'string' || (params.format === 'int64' && !fitsInt64(data)))
  );
}

function fitsInt64(data: unknown): boolean {
  return typeof data === 'number' && data >= -(2 ** 63) && data < 2 ** 63;
}

/** Whether an integer would do in the same place, be it as one of several alternatives. */
function wantsInteger({ keyword, params, instancePath }: ErrorObject, at: ErrorObject): boolean {
  return keyword === 'type' && instancePath === at.instancePath && [params.type].flat().includes('integer');
}

/**
 * Whether the API server takes a fraction for an integer at first, as 2147483647.5, and finds only at its bounds that
 * it is none, which keeps no rule from being checked.
 * @see https://github.com/go-openapi/swag/blob/master/conv/convert.go IsFloat64AJSONInteger
 */
function passesForInteger(data: unknown): boolean {
  if (typeof data !== 'number' || Number.isInteger(data)) return false;
  const whole = Math.trunc(data);
  return whole !== 0 && Math.abs(data - whole) / (Math.abs(data) + Math.abs(whole)) < 1e-9;
}

/** Refuses items of a list of type `map` with the same keys, and equal items of one of type `set`. */
const uniqueItems: SchemaValidateFunction = (keys: readonly string[], list: readonly unknown[]) => {
  const seen = new Map<string, number>();
  const told = new Set<string>();
  const errors: Partial<ErrorObject>[] = [];
  list.forEach((item, index) => {
    const identity = canonical(keys.length > 0 ? keysOf(item, keys) : item);
    const first = seen.get(identity);
    if (first === undefined) seen.set(identity, index);
    // Of many that are the same, the API server names the second.
    else if (!told.has(identity)) errors.push({ keyword: LIST_KEYS, params: { keys, index, first } });
    if (first !== undefined) told.add(identity);
  });
  uniqueItems.errors = errors;
  return errors.length === 0;
};

/** The keys that an item has: one that is missing is not one that is null. */
function keysOf(item: unknown, keys: readonly string[]): Readonly<Record<string, unknown>> {
  if (item === null || typeof item !== 'object') return {};
  const given = item as Readonly<Record<string, unknown>>;
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(given, key)).map((key) => [key, given[key]]));
}

/** JSON with sorted keys, so that equal values give equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    member !== null && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** Says in words, with path, value and remedy, what ajv found. */
function describeErrors(errors: readonly ErrorObject[], root: unknown): Problem[] {
  const mistyped = new Set(
    errors.filter(({ keyword }) => keyword === 'type').map(({ instancePath }) => instancePath),
  );
  const seen = new Set<string>();
  return errors
    .filter((error) => {
      // What each branch of an alternative lacks says less than that none fits, and that less than a wrong type.
      if (/\/(anyOf|oneOf|not)\//.test(error.schemaPath)) return false;
      return error.keyword === 'type' || !mistyped.has(error.instancePath);
    })
    .map((error) => describe(error, pathOf(error.instancePath, root)))
    .filter((problem) => {
      const identity = JSON.stringify(problem);
      return !seen.has(identity) && seen.add(identity);
    });
}

interface Words {
  readonly message: string;
  readonly remedy: string;
}

function describe(error: ErrorObject, path: Path): Problem {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return { path: [...path, String(params.missingProperty)], message: 'is missing', remedy: 'add it' };
    case 'additionalProperties':
      return unknownField(path, String(params.additionalProperty), error.parentSchema as JsonSchema);
    case LIST_KEYS:
      return duplicate(path, params, error.data as readonly unknown[]);
    case 'type':
      return { path, ...wrongType(error.data, [params.type].flat() as string[]) };
    case 'enum':
      return { path, ...notInEnum(error.data, (params.allowedValues as unknown[]).map(showEnumValue)) };
    case 'format': {
      const { name, example } = formatHelp(String(params.format));
      return {
        path,
        message: `${showValue(error.data)} is not ${name}`,
        remedy: `give ${giveExample(example)}`,
      };
    }
    case 'pattern':
      return { path, ...mismatch(error.data, String(params.pattern)) };
    default:
      return { path, ...outOfBounds(error, error.parentSchema as JsonSchema) };
  }
}

function mismatch(value: unknown, pattern: string): Pick<Problem, 'message' | 'remedy'> {
  const help = helpWithPattern(pattern);
  return help
    ? {
        message: `${showValue(value)} is not ${help.name}`,
        remedy: `give one such as ${either(help.examples)}`,
      }
    : { message: `${showValue(value)} doesn't match ${pattern}`, remedy: 'give text that does' };
}

function either(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function giveExample(example: string): string {
  return example.startsWith('a ') || example.startsWith('text ') ? example : `it like ${example}`;
}

function unknownField(parent: Path, field: string, schema: JsonSchema): Problem {
  const known = Object.keys(schema.properties ?? {});
  const near = suggest(field, known);
  const remedy = near
    ? `did you mean ${near}?`
    : known.length === 0
      ? 'remove it: nothing may be here'
      : `remove it; the fields here are ${known.slice(0, 20).join(', ')}${known.length > 20 ? ', ...' : ''}`;
  return { path: [...parent, field], message: UNKNOWN_FIELD, remedy };
}

function duplicate(path: Path, params: Record<string, unknown>, list: readonly unknown[]): Problem {
  const { keys, index, first } = params as { keys: readonly string[]; index: number; first: number };
  const item = list[index];
  const shown = keys.map((key) => `${key} ${showValue((item as Record<string, unknown>)[key])}`).join(', ');
  return {
    path: [...path, index],
    message: `${keys.length > 0 ? shown : showValue(item)} is given twice, first by item [${first}]`,
    remedy: 'remove or change one of them',
  };
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  array: 'a list',
  object: 'a map',
  null: 'null',
};

function wrongType(value: unknown, types: readonly string[]): Words {
  const expected = types.map((type) => TYPE_NAMES[type] ?? type).join(' or ');
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return { message: `${value} is not a number that JSON can say`, remedy: `give ${expected}` };
  }
  return {
    message: `${showValue(value)} is ${TYPE_NAMES[typeName(value)] ?? 'something else'}, not ${expected}`,
    remedy: typeRemedy(value, types, expected),
  };
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function typeRemedy(value: unknown, types: readonly string[], expected: string): string {
  const isScalar = typeof value === 'number' || typeof value === 'boolean';
  if (isScalar && types.includes('string')) return 'put it in quotes';
  if (typeof value === 'string') {
    const isNumeric = /^-?\d+(\.\d+)?$/.test(value);
    if (
      (isNumeric && (types.includes('number') || (types.includes('integer') && !value.includes('.')))) ||
      (types.includes('boolean') && /^(true|false)$/.test(value))
    ) {
      return 'write it without quotes';
    }
  }
  if (value === null) return `give ${expected}, or remove the field`;
  return `give ${expected}`;
}

function notInEnum(value: unknown, allowed: readonly string[]): Words {
  const near = typeof value === 'string' ? suggest(value, allowed) : undefined;
  return {
    message: `${showValue(value)} is not one of ${allowed.join(', ')}`,
    remedy: near ? `did you mean ${near}?` : 'give one of them',
  };
}

function showEnumValue(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : showValue(value);
}

function outOfBounds({ keyword, data, params, message }: ErrorObject, schema: JsonSchema): Words {
  const limit = String((params as { limit?: unknown }).limit);
  const shown = showValue(data);
  const count = Array.isArray(data) ? data.length : Object.keys(Object(data) as object).length;
  switch (keyword) {
    case 'minimum':
      return { message: `${shown} is less than ${limit}`, remedy: giveNumber(schema) };
    case 'maximum':
      return { message: `${shown} is more than ${limit}`, remedy: giveNumber(schema) };
    case 'exclusiveMinimum':
      return { message: `${shown} is not more than ${limit}`, remedy: `give a number above ${limit}` };
    case 'exclusiveMaximum':
      return { message: `${shown} is not less than ${limit}`, remedy: `give a number below ${limit}` };
    case 'multipleOf': {
      const step = String((params as { multipleOf?: unknown }).multipleOf);
      return { message: `${shown} is not a multiple of ${step}`, remedy: 'give one that is' };
    }
    case 'minLength':
      return data === ''
        ? { message: '"" is empty', remedy: `give at least ${plural(limit, 'character')}` }
        : { message: `${shown} is too short`, remedy: `give at least ${plural(limit, 'character')}` };
    case 'maxLength':
      return {
        message: `${shown} is too long, it has ${Array.from(String(data)).length} characters`,
        remedy: `give at most ${plural(limit, 'character')}`,
      };
    case 'minItems':
    case 'minProperties':
      return {
        message: `has ${count === 0 ? 'no items' : plural(count, 'item')}`,
        remedy: `give at least ${limit}`,
      };
    case 'maxItems':
    case 'maxProperties':
      return { message: `has ${plural(count, 'item')}`, remedy: `give at most ${limit}` };
    case 'anyOf':
      return {
        message: `${shown} fits none of the forms that are allowed`,
        remedy: "see the kind's reference",
      };
    case 'oneOf':
      return {
        message: `${shown} must fit exactly one of the allowed forms`,
        remedy: "see the kind's reference",
      };
    default:
      return { message: `${shown} ${message ?? 'is not allowed'}`, remedy: "see the kind's reference" };
  }
}

function giveNumber(schema: JsonSchema): string {
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
  if (minimum === undefined) return `give ${maximum ?? 0} or less`;
  return maximum === undefined
    ? `give ${minimum} or more`
    : `give a number between ${minimum} and ${maximum}`;
}

function plural(count: number | string, noun: string): string {
  return `${count} ${noun}${String(count) === '1' ? '' : 's'}`;
}

/** Takes a JSON Pointer apart; steps into lists become numbers. */
function pathOf(pointer: string, root: unknown): Path {
  let value = root;
  return pointer
    .split('/')
    .slice(1)
    .map((escaped) => {
      const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      const step = Array.isArray(value) ? Number(key) : key;
      value = (value as Record<string, unknown>)[key];
      return step;
    });
}

/** What a pattern asks for, in words. */
interface PatternHelp {
  /** What a value that doesn't match isn't: `a quantity`. */
  readonly name: string;
  readonly examples: readonly string[];
}

const LABEL_VALUE = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = `${DNS_LABEL}(\\.${DNS_LABEL})*`;

const QUANTITY: PatternHelp = { name: 'a quantity', examples: ['500m', '2', '1Gi'] };
const PERCENTAGE: PatternHelp = { name: 'a percentage', examples: ['0%', '25%', '100%'] };

/** The patterns that Kubernetes gives to names, labels and the like, and that CRDs repeat. */
const KNOWN: Readonly<Record<string, PatternHelp>> = {
  [`^${DNS_LABEL}$`]: {
    name: 'a name of lower-case letters, digits and, between them, dashes',
    examples: ['web', 'web-1'],
  },
  [`^${DNS_SUBDOMAIN}$`]: {
    name: 'a name of lower-case letters, digits and, between them, dashes and dots',
    examples: ['web-1', 'web.example.com'],
  },
  [`^(\\*\\.)?${DNS_SUBDOMAIN}$`]: {
    name: 'a hostname',
    examples: ['shop.example.com', '*.example.com'],
  },
  [`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${LABEL_VALUE}$`]: {
    name: 'the key of a label',
    examples: ['tier', 'example.com/tier'],
  },
  [`^(${LABEL_VALUE})?$`]: {
    name: 'the value of a label: letters, digits and, between them, dashes, dots and underscores',
    examples: ['front-end', 'v1.2_3'],
  },
  '^(0|[1-9][0-9]*)%$': PERCENTAGE,
  '^(100|[0-9]|[1-9][0-9])%$': PERCENTAGE,
};

/** The pattern that Kubernetes itself gives to quantities has many forms. */
const OF_QUANTITIES = /\[KMGTPE\]i/;

/** @returns nothing for a pattern that isn't known: then it has to speak for itself */
export function helpWithPattern(pattern: string): PatternHelp | undefined {
  if (Object.hasOwn(KNOWN, pattern)) return KNOWN[pattern];
  return OF_QUANTITIES.test(pattern) && pattern.startsWith('^') && !pattern.includes('Memory')
    ? QUANTITY
    : undefined;
}

import type { ErrorObject } from 'ajv';
import { suggest } from '../contract/suggest.js';
import { formatHelp } from './formats.js';
import { LIST_KEYS } from './json-schema.js';
import type { JsonSchema } from './json-schema.js';
import { showValue, UNKNOWN_FIELD } from './problem.js';
import type { Path, Problem } from './problem.js';

/** Says in words, with path, value and remedy, what ajv found. */
export function describeErrors(errors: readonly ErrorObject[], root: unknown): Problem[] {
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
export function pathOf(pointer: string, root: unknown): Path {
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

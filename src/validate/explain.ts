import type { ErrorObject } from 'ajv';
import { suggest } from '../values/suggest.js';
import { RE2 } from './formats.js';
import { MISSING, showValue, UNKNOWN_FIELD } from './problem.js';
import type { Path, Problem } from './problem.js';

/** Our own keyword for ajv: the keys of a list of type `map`, or an empty list for one of type `set`. */
export const LIST_KEYS = 'x-list-keys';

/** Returns in words, with path, value and remedy, what ajv found. */
export function explain(errors: readonly ErrorObject[], root: unknown): Problem[] {
  const mistyped = new Set(
    errors.filter(({ keyword }) => keyword === 'type').map(({ instancePath }) => instancePath),
  );
  const meant = new Set(errors.flatMap((error) => meantField(error) ?? []));
  const problems = errors
    .filter((error) => {
      // A required field that is only misspelt.
      const { keyword, instancePath, params } = error;
      if (keyword === 'required' && meant.has(`${instancePath}/${String(params.missingProperty)}`))
        return false;
      // What each branch of an alternative lacks says less than that none fits, and that less than a wrong type.
      const within = keywordsOf(error.schemaPath).slice(0, -1);
      if (['anyOf', 'oneOf', 'not'].some((keyword) => within.includes(keyword))) return false;
      return keyword === 'type' || !mistyped.has(instancePath);
    })
    .map((error) => problemOf(error, pathOf(error.instancePath, root)));
  return [...new Map(problems.map((problem) => [JSON.stringify(problem), problem])).values()];
}

/** Keywords whose next step in the path of a schema is a name, or an index. */
const NAMED: readonly string[] = ['properties', 'allOf', 'anyOf', 'oneOf'];

/** Returns the keywords that a path of a schema leads through; the name of a field may be that of a keyword. */
export function keywordsOf(schemaPath: string): string[] {
  const steps = schemaPath.split('/').slice(1).values();
  return Array.from(steps, (keyword) => {
    if (NAMED.includes(keyword)) steps.next();
    return keyword;
  });
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

type Words = readonly [message: string, remedy: string];

function problemOf(error: ErrorObject, path: Path): Problem {
  const { missingProperty, additionalProperty, index } = error.params as Readonly<Record<string, unknown>>;
  const steps = { required: missingProperty, additionalProperties: additionalProperty, [LIST_KEYS]: index };
  const step = (steps as Readonly<Record<string, unknown>>)[error.keyword] as string | number | undefined;
  const [message, remedy] = wordsFor(error);
  return { path: step === undefined ? path : [...path, step], message, remedy };
}

function wordsFor(error: ErrorObject): Words {
  const { keyword, data, parentSchema = {}, message } = error;
  const params = error.params as Readonly<Record<string, unknown>>;
  const shown = showValue(data);
  const limit = String(params.limit);
  const size = Object.keys(Object(data) as object).length;
  switch (keyword) {
    case 'required':
      return [MISSING, 'add it'];
    case 'additionalProperties':
      return unknownField(String(params.additionalProperty), parentSchema.properties as object | undefined);
    case LIST_KEYS: {
      const { keys, index, first } = params as { keys: readonly string[]; index: number; first: number };
      const item = (data as readonly Readonly<Record<string, unknown>>[])[index];
      const given = keys.map((key) => `${key} ${showValue(item?.[key])}`).join(', ') || showValue(item);
      return [`${given} is given twice, first by item [${first}]`, 'remove or change one of them'];
    }
    case 'type':
      return wrongType(data, [params.type].flat() as string[]);
    case 'enum': {
      const allowed = (params.allowedValues as readonly unknown[]).map((value) =>
        typeof value === 'string' && value !== '' ? value : showValue(value),
      );
      const near = typeof data === 'string' ? suggest(data, allowed) : undefined;
      return [
        `${shown} is not one of ${allowed.join(', ')}`,
        near ? `did you mean ${near}?` : 'give one of them',
      ];
    }
    case 'format': {
      const format = String(params.format);
      return [`${shown} is no ${format}`, `give ${EXAMPLES[format] ?? `text of the format ${format}`}`];
    }
    case 'pattern': {
      const what = patternInWords(String(params.pattern));
      return what
        ? [`${shown} is not ${what}`, 'give one']
        : [`${shown} doesn't match ${String(params.pattern)}`, 'give text that does'];
    }
    case 'minimum':
      return [`${shown} is less than ${limit}`, giveNumber(parentSchema)];
    case 'maximum':
      return [`${shown} is more than ${limit}`, giveNumber(parentSchema)];
    case 'exclusiveMinimum':
      return [`${shown} is not more than ${limit}`, `give a number above ${limit}`];
    case 'exclusiveMaximum':
      return [`${shown} is not less than ${limit}`, `give a number below ${limit}`];
    case 'minLength': {
      const what = data === '' ? '"" is empty' : `${shown} is too short`;
      return [what, `give at least ${plural(limit, 'character')}`];
    }
    case 'maxLength': {
      const length = plural(Array.from(String(data)).length, 'character');
      return [`${shown} is too long, it has ${length}`, `give at most ${limit}`];
    }
    case 'minItems':
    case 'minProperties':
      return [`has ${plural(size, 'item')}`, `give at least ${limit}`];
    case 'maxItems':
    case 'maxProperties':
      return [`has ${plural(size, 'item')}`, `give at most ${limit}`];
    default:
      return [`${shown} ${message ?? 'is not allowed'}`, "see the kind's reference"];
  }
}

function giveNumber(schema: object): string {
  const { minimum, maximum } = schema as { readonly minimum?: number; readonly maximum?: number };
  if (minimum === undefined) return `give ${maximum ?? 0} or less`;
  return maximum === undefined
    ? `give ${minimum} or more`
    : `give a number between ${minimum} and ${maximum}`;
}

function plural(count: number | string, noun: string): string {
  return `${count} ${noun}${String(count) === '1' ? '' : 's'}`;
}

/** Returns the pointer to the field of the schema that an unknown one is taken for. */
function meantField({ keyword, instancePath, params, parentSchema }: ErrorObject): string | undefined {
  const known = Object.keys((parentSchema?.properties ?? {}) as object);
  if (keyword !== 'additionalProperties') return undefined;
  const near = suggest(String(params.additionalProperty), known);
  return near && `${instancePath}/${near}`;
}

function unknownField(field: string, properties: object = {}): Words {
  const known = Object.keys(properties);
  const near = suggest(field, known);
  if (near) return [UNKNOWN_FIELD, `did you mean ${near}?`];
  if (known.length === 0) return [UNKNOWN_FIELD, 'remove it: nothing may be here'];
  const more = known.length > 20 ? ', ...' : '';
  return [UNKNOWN_FIELD, `remove it; the fields here are ${known.slice(0, 20).join(', ')}${more}`];
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  ...{ string: 'a string', integer: 'an integer', number: 'a number', boolean: 'a boolean' },
  ...{ array: 'a list', object: 'a map', null: 'null' },
};

function wrongType(value: unknown, types: readonly string[]): Words {
  const expected = types.map((type) => TYPE_NAMES[type] ?? type).join(' or ');
  if (typeof value === 'number' && !Number.isFinite(value))
    return [`${value} is not a number that JSON can say`, `give ${expected}`];
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const message = `${showValue(value)} is ${TYPE_NAMES[type] ?? 'something else'}, not ${expected}`;
  const isQuoted =
    typeof value === 'string' &&
    ((types.includes('boolean') && /^(true|false)$/.test(value)) ||
      (types.includes('number') && /^-?\d+(\.\d+)?$/.test(value)) ||
      (types.includes('integer') && /^-?\d+$/.test(value)));
  if (isQuoted) return [message, 'write it without quotes'];
  if ((type === 'number' || type === 'boolean') && types.includes('string'))
    return [message, 'put it in quotes'];
  return [message, `give ${expected}${value === null ? ', or remove the field' : ''}`];
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

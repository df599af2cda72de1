import { Ajv } from 'ajv';
import type { ErrorObject, SchemaValidateFunction } from 'ajv';
import type { StructuralSchema } from '../contract/crd.js';
import { FORMATS } from './formats.js';
import { LIST_KEYS, rootJsonSchema } from './json-schema.js';
import { describeErrors, pathOf } from './messages.js';
import type { Path, Problem } from './problem.js';
import { compileRegularExpression } from '../contract/regular-expression.js';
import { isUnchangedAt } from './unchanged.js';

/** What a schema says about a value, without its rules in CEL. */
export interface Verdict {
  readonly problems: readonly Problem[];
  /** Whether the value is so wrong that the API server doesn't ask the rules. */
  readonly blocksRules: boolean;
}

/** @param old what was there before: what is wrong already, and stays as it is, isn't refused */
export type ValidateOpenApi = (value: unknown, old?: unknown) => Verdict;

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

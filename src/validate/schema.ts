import { Ajv } from 'ajv';
import type { ErrorObject, SchemaValidateFunction } from 'ajv';
import { schemaBelow } from '../contract/crd.js';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import { canonicalJson } from '../values/json.js';
import { valueAt } from '../contract/object.js';
import { compileRegularExpression } from '../values/regular-expression.js';
import type { UnknownRule, Rules } from './cel/rules.js';
import { compileRules } from './cel/rules.js';
import { explain, keywordsOf, LIST_KEYS, pathOf } from './explain.js';
import { FORMATS } from './formats.js';
import { rootJsonSchema, SCHEMA_OF_SCHEMAS } from './json-schema.js';
import { formatProblem, showValue, UNKNOWN_FIELD } from './problem.js';
import type { Path, Problem } from './problem.js';
import { isUnchangedAt } from './unchanged.js';

/**
 * Names everything that is wrong with a custom resource; it must have its defaults already.
 * @param old what the cluster has. With it, rules on the change (`oldSelf`) are judged too, and what was wrong before
 *   and stays as it is passes, as in an update. Without it, the value is judged as if it were to be created.
 */
export type Validate = (value: unknown, old?: unknown) => Problem[];

interface SchemaOptions {
  /** Whether it has the subresource `status`: the API server drops the status of a create or an update. @default false */
  readonly hasStatus?: boolean;
  /** Field that the subresource `scale` reads replicas from, as `.spec.replicas`. @default - there is no such subresource */
  readonly replicasPath?: string;
  /** Whose schema it is, for messages. @default The schema */
  readonly owner?: string;
}

/** Returns how a version of a CRD is judged. */
export function optionsFor({ subresources }: CrdVersion): SchemaOptions {
  const { specReplicasPath: path } = (subresources?.scale ?? {}) as { readonly specReplicasPath?: string };
  return { hasStatus: subresources?.status !== undefined, ...(path !== undefined && { replicasPath: path }) };
}

const validators = new WeakMap<CrdVersion, Validate>();
let schemaJudge: ReturnType<typeof compileJson> | undefined;

/** Returns the validator of a version of a CRD, which takes a quarter of a second to compile, and is compiled once. */
export function validatorOf(version: CrdVersion, { metadata: { name } }: CustomResourceDefinition): Validate {
  const options = { ...optionsFor(version), owner: `CRD ${name}, version ${version.name},` };
  const validate = validators.get(version) ?? compileSchema(version.schema.openAPIV3Schema, options);
  validators.set(version, validate);
  return validate;
}

/**
 * Returns a validator with the verdict that the API server has under `fieldValidation=Strict`, names and the rules of
 * `unknownRules` aside. As there, the rules in CEL aren't judged of a value that the schema refuses for its form.
 * @throws OperatorError `InvalidDefinition` if the schema itself is wrong, e.g. has a pattern that is no regular expression
 */
export function compileSchema(
  schema: StructuralSchema,
  { hasStatus = false, replicasPath, owner = 'The schema' }: SchemaOptions = {},
): Validate {
  schemaJudge ??= compileJson(SCHEMA_OF_SCHEMAS);
  const [wrong] = explain(schemaJudge(schema), schema);
  if (wrong)
    throw new OperatorError({
      reason: 'InvalidDefinition',
      message: `${owner} can't be used: ${formatProblem(wrong)}`,
    });
  const errorsOf = compile(schema);
  return (given, old) => {
    const value = hasStatus ? withStatusOf(given, old) : given;
    const errors = errorsOf(value, old);
    const found = explain(errors, value);
    const known = new Set(found.map(({ path }) => JSON.stringify(path)));
    const ofScale = checkReplicas(value, replicasPath).filter(({ path }) => !known.has(JSON.stringify(path)));
    // The names of its fields are read before the status is dropped.
    const dropped = (value === given ? [] : explain(errorsOf(given), given)).filter(
      ({ path, message }) => path[0] === 'status' && path.length > 1 && message === UNKNOWN_FIELD,
    );
    const problems = [...found, ...ofScale, ...dropped];
    if (errors.some(blocksRules) || dropped.length > 0) return problems;
    return [...problems, ...rulesFor(schema).judge(value, old)];
  };
}

/** Returns the rules of a schema that aren't judged here, since they use what only the API server has. */
export function unknownRules(schema: StructuralSchema): readonly UnknownRule[] {
  return rulesFor(schema).unknown;
}

const compiled = new WeakMap<StructuralSchema, Rules>();

/** Compiled when they are first needed, and once. */
function rulesFor(schema: StructuralSchema): Rules {
  const rules = compiled.get(schema) ?? compileRules(schema);
  compiled.set(schema, rules);
  return rules;
}

/** Returns the errors of a value by a JSON Schema. */
function compileJson(schema: object): (value: unknown) => readonly ErrorObject[] {
  const ajv = new Ajv({
    ...{ allErrors: true, verbose: true, strictNumbers: true, logger: false },
    // Schemas of CRDs have keywords of their own, and formats that the API server doesn't check.
    strict: false,
    // Judged by a schema of ours already, and the API server takes bounds that JSON Schema refuses.
    validateSchema: false,
    // A field named `constructor` is not there because every object has one.
    ownProperties: true,
    formats: FORMATS,
    // Patterns are written for Go.
    code: { regExp: Object.assign(compileRegularExpression, { code: 'compileRegularExpression' }) },
  });
  ajv.addKeyword({
    ...{ keyword: LIST_KEYS, type: 'array', schemaType: 'array', errors: true },
    validate: uniqueItems,
  });
  const validate = ajv.compile(schema);
  return (value) => (validate(value) ? [] : (validate.errors ?? []));
}

/** Returns the errors of a value; what was wrong in the old one already, and stays as it is, is none. */
function compile(schema: StructuralSchema): (value: unknown, old?: unknown) => readonly ErrorObject[] {
  const errorsOf = compileJson(rootJsonSchema(schema));
  return (value, old) => {
    const errors = errorsOf(value);
    if (old === undefined || errors.length === 0) return errors;
    const hadDuplicates = errorsOf(old).some(({ keyword }) => keyword === LIST_KEYS);
    return errors.filter((error) => {
      if (error.keyword === 'additionalProperties') return true;
      if (error.keyword === LIST_KEYS) return !hadDuplicates;
      const path = pathOf(error.instancePath, value);
      const missing = error.keyword === 'required' ? [String(error.params.missingProperty)] : [];
      return (
        isOfEmbedded(schema, [...path, ...missing]) ||
        !isUnchangedAt({ schema, value, old }, path.slice(0, comparedDepth(error.schemaPath)))
      );
    });
  };
}

/**
 * Returns how many steps into the value the API server compares: below `allOf` and the like it doesn't look at what was there.
 */
function comparedDepth(schemaPath: string): number {
  // What a schema says of the metadata stands below `allOf` here, and only here.
  const keywords = keywordsOf(schemaPath.replace('#/properties/metadata/allOf/0/', '#/properties/metadata/'));
  const end = keywords.findIndex((keyword) => ['allOf', 'anyOf', 'oneOf', 'not'].includes(keyword));
  const compared = end < 0 ? keywords : keywords.slice(0, end);
  return compared.filter((keyword) => ['properties', 'items', 'additionalProperties'].includes(keyword))
    .length;
}

const IDENTITY: readonly unknown[] = ['apiVersion', 'kind', 'metadata'];

/** Reports whether it is what every object has, of one inside of the object: that is refused however old it is. */
function isOfEmbedded(schema: StructuralSchema, path: Path): boolean {
  let at: StructuralSchema | undefined = schema;
  for (const step of path) {
    if (at?.['x-kubernetes-embedded-resource'] === true && IDENTITY.includes(step)) return true;
    at = schemaBelow(at, step);
  }
  return false;
}

/** Errors after which rules could fail in themselves; a field that is unknown is refused before anything else is asked. */
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
function blocksRules({ keyword, data, params }: ErrorObject): boolean {
  if (keyword !== 'format') return BLOCKING.has(keyword);
  // An integer that doesn't fit into 64 bits is one of another type.
  const isTooLarge = typeof data !== 'number' || data < -(2 ** 63) || data >= 2 ** 63;
  return typeof data === 'string' || (params.format === 'int64' && isTooLarge);
}

/** Refuses items of a list of type `map` with the same keys, and equal items of one of type `set`. */
const uniqueItems: SchemaValidateFunction = (keys: readonly string[], list: readonly unknown[]) => {
  // An item's key that is missing is not one that is null.
  const identityOf = (item: unknown): string =>
    canonicalJson(
      keys.length === 0
        ? item
        : Object.fromEntries(Object.entries(Object(item) as object).filter(([key]) => keys.includes(key))),
    );
  const seen = new Map<string, number>();
  const reported = new Set<string>();
  const errors: Partial<ErrorObject>[] = [];
  for (const [index, item] of list.entries()) {
    const identity = identityOf(item);
    const first = seen.get(identity);
    if (first === undefined) {
      seen.set(identity, index);
    } else if (!reported.has(identity)) {
      // Of many that are the same, the API server names the second.
      errors.push({ keyword: LIST_KEYS, params: { keys, index, first } });
      reported.add(identity);
    }
  }
  uniqueItems.errors = errors;
  return errors.length === 0;
};

/** Returns the value with the status that is stored: a write keeps it, and a new object has none. */
function withStatusOf(value: unknown, old: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  const hadStatus = old !== null && typeof old === 'object' && Object.hasOwn(old, 'status');
  if (hadStatus) return { ...value, status: (old as { readonly status: unknown }).status };
  if (!Object.hasOwn(value, 'status')) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== 'status'));
}

const MAX_REPLICAS = 2 ** 31 - 1;

/** Names what is wrong with replicas that have passed the schema, whose bounds may be wider than those of `scale`. */
function checkReplicas(value: unknown, fieldPath: string | undefined): Problem[] {
  if (fieldPath === undefined) return [];
  const path = fieldPath.split('.').filter((step) => step !== '');
  const replicas = valueAt(value, path);
  if (typeof replicas !== 'number' || (replicas >= 0 && replicas <= MAX_REPLICAS)) return [];
  const message = `${showValue(replicas)} is not a number of replicas`;
  return [{ path, message, remedy: `give a number between 0 and ${MAX_REPLICAS}` }];
}

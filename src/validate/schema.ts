import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import { OperatorError } from '../contract/error.js';
import { judgeRules } from './cel/rules.js';
import { applyDefaults } from './defaults.js';
import { RE2 } from './formats.js';
import { formatProblem, UNKNOWN_FIELD } from './problem.js';
import { showValue } from '../values/path.js';
import type { Problem } from './problem.js';
import { checkObject, mistakesIn, reported } from './structural.js';
import { valueAt } from '../values/json.js';

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

/** Returns the validator of a version of a CRD. */
export function validatorOf(version: CrdVersion, { metadata: { name } }: CustomResourceDefinition): Validate {
  const owner = `CRD ${name}, version ${version.name},`;
  return compileSchema(version.schema.openAPIV3Schema, { ...optionsFor(version), owner });
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
  const [wrong] = reported(mistakesIn(SCHEMA_OF_SCHEMAS, schema));
  if (wrong)
    throw new OperatorError({
      reason: 'InvalidDefinition',
      message: `${owner} can't be used: ${formatProblem(wrong)}`,
    });
  return (given, old) => {
    const value = hasStatus ? withStatusOf(given, old) : given;
    const { mistakes, ruled } = checkObject(schema, value, old);
    const found = reported(mistakes);
    const known = new Set(found.map(({ path }) => JSON.stringify(path)));
    const ofScale = checkReplicas(value, replicasPath).filter(({ path }) => !known.has(JSON.stringify(path)));
    // The names of its fields are read before the status is dropped.
    const dropped = (value === given ? [] : reported(checkObject(schema, given).mistakes)).filter(
      ({ path, message }) => path[0] === 'status' && path.length > 1 && message === UNKNOWN_FIELD,
    );
    const problems = [...found, ...ofScale, ...dropped];
    if (mistakes.some(({ blocksRules }) => blocksRules) || dropped.length > 0) return problems;
    return [...problems, ...ruled.flatMap(judgeRules)];
  };
}

function each(keywords: readonly string[], schema: StructuralSchema): Record<string, StructuralSchema> {
  return Object.fromEntries(keywords.map((keyword) => [keyword, schema]));
}

const TEXT: StructuralSchema = { type: 'string' };
const FLAG: StructuralSchema = { type: 'boolean' };
const KEYWORDS: Record<string, StructuralSchema> = {
  type: { enum: ['array', 'boolean', 'integer', 'number', 'object', 'string'] },
  pattern: { type: 'string', format: RE2 },
  enum: { type: 'array' },
  ...each(['title', 'description', 'format', 'x-kubernetes-list-type'], TEXT),
  ...each(['minimum', 'maximum', 'multipleOf'], { type: 'number' }),
  ...each(['minLength', 'maxLength', 'minItems', 'maxItems'], { type: 'integer' }),
  ...each(['minProperties', 'maxProperties'], { type: 'integer' }),
  ...each(['exclusiveMinimum', 'exclusiveMaximum', 'nullable'], FLAG),
  ...each(['x-kubernetes-int-or-string', 'x-kubernetes-embedded-resource'], FLAG),
  'x-kubernetes-preserve-unknown-fields': FLAG,
  ...each(['required', 'x-kubernetes-list-map-keys'], { type: 'array', items: TEXT }),
  'x-kubernetes-validations': {
    type: 'array',
    items: {
      ...{ type: 'object', required: ['rule'], additionalProperties: true },
      properties: {
        ...each(['rule', 'message', 'messageExpression', 'fieldPath', 'reason'], TEXT),
        optionalOldSelf: FLAG,
      },
    },
  },
};
/** Form of the keywords that are read here, of a structural schema. */
const SCHEMA_OF_SCHEMAS: StructuralSchema = {
  ...{ type: 'object', additionalProperties: true, properties: KEYWORDS },
};
Object.assign(KEYWORDS, {
  ...each(['items', 'not'], SCHEMA_OF_SCHEMAS),
  ...each(['allOf', 'anyOf', 'oneOf'], { type: 'array', items: { ...SCHEMA_OF_SCHEMAS, nullable: true } }),
  properties: { type: 'object', additionalProperties: SCHEMA_OF_SCHEMAS },
  additionalProperties: { ...SCHEMA_OF_SCHEMAS, type: ['object', 'boolean'] },
});

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

/** Validates sections by their schemas, as the fields of the spec of a custom resource. */
export function problemsInSections(
  sections: Readonly<Record<string, unknown>>,
  properties: Readonly<Record<string, StructuralSchema>>,
): Problem[] {
  const schema = { type: 'object', properties: { spec: { type: 'object', properties } } } as const;
  const spec = Object.entries(sections).map(([of, section]) => [of, applyDefaults(section, properties[of])]);
  const object = {
    apiVersion: 'v1',
    kind: 'Sections',
    metadata: {},
    spec: Object.fromEntries(spec) as object,
  };
  return compileSchema(schema)(object).map((problem) => ({ ...problem, path: problem.path.slice(1) }));
}

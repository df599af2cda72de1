import type { StructuralSchema } from '../contract/crd.js';
import { LIST_KEYS } from './explain.js';
import { RE2 } from './formats.js';

type JsonSchema = Record<string, unknown>;

const TEXT = { type: 'string' } as const;
const TIME = { type: ['string', 'null'], format: 'date-time' } as const;
const TEXTS = { type: 'object', additionalProperties: TEXT } as const;
const LABELS = {
  type: 'object',
  additionalProperties: {
    type: 'string',
    maxLength: 63,
    pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$',
  },
} as const;

/**
 * The fields of ObjectMeta; what the API server fills in is taken as it comes.
 * @see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 */
const OBJECT_META: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    labels: LABELS,
    annotations: TEXTS,
    ownerReferences: { type: 'array', items: { type: 'object' } },
    finalizers: { type: 'array', items: TEXT },
    uid: TEXT,
    resourceVersion: TEXT,
    generation: { type: 'integer' },
    creationTimestamp: TIME,
    deletionTimestamp: TIME,
    deletionGracePeriodSeconds: { type: 'integer' },
    managedFields: { type: 'array', items: { type: 'object' } },
    selfLink: TEXT,
  },
};

function each(keywords: readonly string[], schema: JsonSchema): JsonSchema {
  return Object.fromEntries(keywords.map((keyword) => [keyword, schema]));
}

const KEYWORDS = { $ref: '#/definitions/keywords' } as const;
const SCHEMA = { type: 'object', allOf: [KEYWORDS] } as const;

/** JSON Schema of structural schemas: the form of the keywords that are read here. */
export const SCHEMA_OF_SCHEMAS: JsonSchema = {
  ...SCHEMA,
  definitions: {
    keywords: {
      properties: {
        type: { enum: ['array', 'boolean', 'integer', 'number', 'object', 'string'] },
        pattern: { type: 'string', format: RE2 },
        enum: { type: 'array' },
        ...each(['title', 'description', 'format', 'x-kubernetes-list-type'], TEXT),
        ...each(['minimum', 'maximum', 'multipleOf'], { type: 'number' }),
        ...each(['minLength', 'maxLength', 'minItems', 'maxItems'], { type: 'integer' }),
        ...each(['minProperties', 'maxProperties'], { type: 'integer' }),
        ...each(['exclusiveMinimum', 'exclusiveMaximum', 'nullable'], { type: 'boolean' }),
        ...each(['x-kubernetes-int-or-string', 'x-kubernetes-embedded-resource'], { type: 'boolean' }),
        'x-kubernetes-preserve-unknown-fields': { type: 'boolean' },
        ...each(['required', 'x-kubernetes-list-map-keys'], { type: 'array', items: TEXT }),
        properties: { type: 'object', additionalProperties: SCHEMA },
        additionalProperties: { type: ['object', 'boolean'], allOf: [KEYWORDS] },
        ...each(['items', 'not'], SCHEMA),
        ...each(['allOf', 'anyOf', 'oneOf'], {
          type: 'array',
          items: { type: ['object', 'null'], allOf: [KEYWORDS] },
        }),
        'x-kubernetes-validations': {
          type: 'array',
          items: {
            type: 'object',
            required: ['rule'],
            properties: {
              ...each(['rule', 'message', 'messageExpression', 'fieldPath', 'reason'], TEXT),
              optionalOldSelf: { type: 'boolean' },
            },
          },
        },
      },
    },
  },
};

/** Keywords that mean the same in a structural schema and in JSON Schema. */
const SAME_KEYWORDS = [
  ...['format', 'pattern', 'minLength', 'maxLength', 'required'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties'],
];

/**
 * The JSON Schema that accepts what the API server accepts of a custom resource with this structural schema under
 * `fieldValidation=Strict`: fields that the schema doesn't name are refused.
 */
export function rootJsonSchema(schema: StructuralSchema): JsonSchema {
  const own = schema.properties?.metadata;
  // A CRD may restrict the name, and nothing else of the metadata.
  const metadata = { ...OBJECT_META, ...(own && { allOf: [branchSchema(own)] }) };
  return objectSchema(jsonSchema({ ...schema, type: 'object' }), metadata, ['metadata']);
}

/** Adds the three fields that every object has, also one inside of the object. */
function objectSchema(schema: JsonSchema, metadata: JsonSchema, required: readonly string[]): JsonSchema {
  return {
    ...schema,
    properties: { ...(schema.properties as JsonSchema | undefined), apiVersion: TEXT, kind: TEXT, metadata },
    required: [...new Set([...((schema.required ?? []) as string[]), 'apiVersion', 'kind', ...required])],
  };
}

function jsonSchema(schema: StructuralSchema): JsonSchema {
  const result = valueSchema(schema);
  const { type, items, properties, additionalProperties } = schema;
  const types = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : type ? [type] : [];
  if (types.length > 0) result.type = schema.nullable ? [...types, 'null'] : types;
  const listType = schema['x-kubernetes-list-type'];
  if (listType === 'map') result[LIST_KEYS] = schema['x-kubernetes-list-map-keys'] ?? [];
  if (listType === 'set') result[LIST_KEYS] = [];
  // Numbers are doubles here: a larger integer would come out changed.
  if (type === 'integer') result.format ??= 'int64';
  if (items) result.items = jsonSchema(items);
  if (properties) result.properties = mapValues(properties, jsonSchema);
  if (typeof additionalProperties === 'object')
    result.additionalProperties = jsonSchema(additionalProperties);
  else if (
    type === 'object' &&
    additionalProperties !== true &&
    schema['x-kubernetes-preserve-unknown-fields'] !== true
  )
    result.additionalProperties = false;
  return schema['x-kubernetes-embedded-resource'] ? objectSchema(result, OBJECT_META, []) : result;
}

/** The part that checks values; below `allOf`, `anyOf`, `oneOf` and `not` there is no other. */
function valueSchema(schema: StructuralSchema): JsonSchema {
  const result: JsonSchema = {};
  for (const keyword of SAME_KEYWORDS) if (schema[keyword] !== undefined) result[keyword] = schema[keyword];
  // In OpenAPI 3.0 an exclusive bound is a flag beside the bound, in JSON Schema it is the bound.
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const)
    if (schema[bound] !== undefined) result[schema[exclusive] === true ? exclusive : bound] = schema[bound];
  // The API server takes a list without items as if it weren't there.
  if (schema.enum && schema.enum.length > 0) result.enum = schema.enum;
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    const branches = schema[keyword] as readonly (StructuralSchema | null)[] | undefined;
    if (branches && branches.length > 0)
      result[keyword] = branches.map((branch) => branchSchema(branch ?? {}));
  }
  // It refuses every number where the factor isn't positive.
  const { multipleOf } = schema as { readonly multipleOf?: number };
  if (multipleOf !== undefined && multipleOf <= 0)
    result.allOf = [...((result.allOf ?? []) as JsonSchema[]), { not: { type: 'number' } }];
  else if (multipleOf !== undefined) result.multipleOf = multipleOf;
  if (schema.not) result.not = branchSchema(schema.not as StructuralSchema);
  return result;
}

function branchSchema(schema: StructuralSchema): JsonSchema {
  const { type, items, properties, additionalProperties } = schema;
  return {
    ...valueSchema(schema),
    ...(type !== undefined && { type }),
    ...(items && { items: branchSchema(items) }),
    ...(properties && { properties: mapValues(properties, branchSchema) }),
    ...(typeof additionalProperties === 'object' && {
      additionalProperties: branchSchema(additionalProperties),
    }),
  };
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, map: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}

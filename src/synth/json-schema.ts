import type { StructuralSchema } from '../contract/crd.js';
import { LIST_KEYS } from './explain.js';

/** A schema as ajv takes it. */
export type JsonSchema = Record<string, unknown>;

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

/** Keywords that mean the same in a structural schema and in JSON Schema. */
const SAME_KEYWORDS = [
  ...['enum', 'format', 'pattern', 'minLength', 'maxLength', 'multipleOf', 'required'],
  ...['minItems', 'maxItems', 'minProperties', 'maxProperties'],
];

/**
 * The JSON Schema that accepts what the API server accepts of a custom resource with this structural schema under
 * `fieldValidation=Strict`: fields that the schema doesn't name are refused.
 */
export function rootJsonSchema(schema: StructuralSchema): JsonSchema {
  const root = jsonSchema({ ...schema, type: 'object' });
  const own = schema.properties?.metadata;
  return {
    ...root,
    properties: {
      ...(root.properties as JsonSchema | undefined),
      apiVersion: TEXT,
      kind: TEXT,
      // A CRD may restrict the name, and nothing else of the metadata.
      metadata: { ...OBJECT_META, ...(own && { allOf: [branchSchema(own)] }) },
    },
    required: [...new Set([...(schema.required ?? []), 'apiVersion', 'kind', 'metadata'])],
  };
}

function jsonSchema(schema: StructuralSchema): JsonSchema {
  const result = { ...valueSchema(schema), ...typeSchema(schema), ...listSchema(schema) };
  // Numbers are doubles here: a larger integer would come out changed.
  if (schema.type === 'integer') result.format ??= 'int64';
  if (schema.items) result.items = jsonSchema(schema.items);
  const { properties, additionalProperties } = schema;
  if (properties) result.properties = mapValues(properties, jsonSchema);
  if (typeof additionalProperties === 'object') {
    result.additionalProperties = jsonSchema(additionalProperties);
  } else if (
    schema.type === 'object' &&
    additionalProperties !== true &&
    schema['x-kubernetes-preserve-unknown-fields'] !== true
  ) {
    result.additionalProperties = false;
  }
  return schema['x-kubernetes-embedded-resource'] ? embedded(result) : result;
}

/** An object inside of the object: it has the three fields that every object has. */
function embedded(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    properties: {
      ...(schema.properties as JsonSchema | undefined),
      apiVersion: TEXT,
      kind: TEXT,
      metadata: OBJECT_META,
    },
    required: [...new Set([...((schema.required ?? []) as string[]), 'apiVersion', 'kind'])],
  };
}

function typeSchema(schema: StructuralSchema): JsonSchema {
  const types = schema['x-kubernetes-int-or-string']
    ? ['integer', 'string']
    : schema.type
      ? [schema.type]
      : [];
  if (types.length === 0) return {};
  return { type: schema.nullable ? [...types, 'null'] : types.length === 1 ? types[0] : types };
}

function listSchema(schema: StructuralSchema): JsonSchema {
  const type = schema['x-kubernetes-list-type'];
  if (type === 'map') return { [LIST_KEYS]: schema['x-kubernetes-list-map-keys'] ?? [] };
  return type === 'set' ? { [LIST_KEYS]: [] } : {};
}

/** The part that checks values; below `allOf`, `anyOf`, `oneOf` and `not` there is no other. */
function valueSchema(schema: StructuralSchema): JsonSchema {
  const result: JsonSchema = {};
  for (const keyword of SAME_KEYWORDS) {
    if (schema[keyword] !== undefined) result[keyword] = schema[keyword];
  }
  addBound(result, schema, 'minimum', 'exclusiveMinimum');
  addBound(result, schema, 'maximum', 'exclusiveMaximum');
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    const branches = schema[keyword] as readonly StructuralSchema[] | undefined;
    if (branches) result[keyword] = branches.map(branchSchema);
  }
  if (schema.not) result.not = branchSchema(schema.not as StructuralSchema);
  return result;
}

function branchSchema(schema: StructuralSchema): JsonSchema {
  return {
    ...valueSchema(schema),
    ...(schema.type !== undefined && { type: schema.type }),
    ...(schema.items && { items: branchSchema(schema.items) }),
    ...(schema.properties && { properties: mapValues(schema.properties, branchSchema) }),
    ...(typeof schema.additionalProperties === 'object' && {
      additionalProperties: branchSchema(schema.additionalProperties),
    }),
  };
}

/** In OpenAPI 3.0 an exclusive bound is a flag beside the bound, in JSON Schema it is the bound. */
function addBound(result: JsonSchema, schema: StructuralSchema, bound: string, exclusive: string): void {
  if (schema[bound] === undefined) return;
  result[schema[exclusive] === true ? exclusive : bound] = schema[bound];
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, map: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}

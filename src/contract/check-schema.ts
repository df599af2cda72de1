import { checkDefault } from './check-default.js';
import { OperatorError } from './error.js';
import { suggest } from './suggest.js';

const TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'];

/** What the API server knows in the schema of a CRD. @see https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/#JSONSchemaProps */
const KEYWORDS = [
  ...['type', 'format', 'title', 'description', 'default', 'example', 'externalDocs', 'enum', 'nullable'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'pattern', 'items', 'minItems', 'maxItems', 'uniqueItems'],
  ...['properties', 'additionalProperties', 'required', 'minProperties', 'maxProperties'],
  ...['allOf', 'anyOf', 'oneOf', 'not'],
  ...['x-kubernetes-int-or-string', 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-map-type'],
  'x-kubernetes-validations',
];

/**
 * Holds a schema against the rules of structural schemas, as far as authors break them.
 * @param where it stands, for the message
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 * @throws OperatorError `InvalidDefinition`
 */
export function checkSchema(where: string, schema: unknown): void {
  if (!isMap(schema)) throw invalid(where, `is no schema; write { type: 'string' } or the like`);
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.includes(keyword));
  if (unknown !== undefined)
    throw invalid(where, `a schema of a CRD knows no ${unknown}${remedyFor(unknown)}`);
  checkType(where, schema);
  checkDefault(where, schema);
  const { properties, additionalProperties, items, required } = schema;
  if (required !== undefined && !Array.isArray(required))
    throw invalid(
      where,
      `give a list of names, on the object that has the members; write required: ['image']`,
    );
  if (properties !== undefined) checkProperties(where, schema, properties);
  if (isMap(additionalProperties)) checkSchema(`${where}.additionalProperties`, additionalProperties);
  if (items !== undefined) checkSchema(`${where}.items`, items);
}

function checkType(where: string, schema: Readonly<Record<string, unknown>>): void {
  const { type } = schema;
  const open =
    schema['x-kubernetes-int-or-string'] === true || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (schema['x-kubernetes-int-or-string'] === true && type !== undefined)
    throw invalid(where, 'what is a number or a string has no type beside; leave the type out');
  if (type === undefined && !open) throw invalid(where, `has no type; write one of ${TYPES.join(', ')}`);
  if (type !== undefined && (typeof type !== 'string' || !TYPES.includes(type)))
    throw invalid(where, `has the type ${JSON.stringify(type)}; write one of ${TYPES.join(', ')}`);
  if (type === 'array' && schema.items === undefined)
    throw invalid(where, `doesn't say what is in the list; write items: { type: 'string' } or the like`);
  if (schema.uniqueItems === true)
    throw invalid(where, `a CRD can't have uniqueItems; write 'x-kubernetes-list-type': 'set'`);
  if (schema['x-kubernetes-list-type'] === 'map') checkListKeys(where, schema);
  if (schema.enum !== undefined && !Array.isArray(schema.enum))
    throw invalid(where, `give a list of the values; write enum: ['a', 'b']`);
}

/** The API server asks for the same. */
function checkListKeys(where: string, schema: Readonly<Record<string, unknown>>): void {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (!isNames(keys))
    throw invalid(
      where,
      `doesn't say what its items go by; write 'x-kubernetes-list-map-keys': ['name'], with one or more of their members`,
    );
  const { properties, required } = isMap(schema.items) ? schema.items : {};
  for (const key of keys) {
    const member = isMap(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isMap(member))
      throw invalid(
        where,
        `its items go by ${key}, which isn't among their properties; write one that is, or 'x-kubernetes-list-type': 'atomic'`,
      );
    if (!(Array.isArray(required) && required.includes(key)) && member.default === undefined)
      throw invalid(
        where,
        `its items go by ${key}, which they needn't have; add it to "required" of the items, or give it a default`,
      );
  }
}

function checkProperties(
  where: string,
  schema: Readonly<Record<string, unknown>>,
  properties: unknown,
): void {
  if (!isMap(properties)) throw invalid(where, 'properties are schemas by name');
  if (schema.additionalProperties !== undefined)
    throw invalid(where, 'has properties and additionalProperties, of which a CRD may have one; choose one');
  const { required = [] } = schema as { readonly required?: readonly string[] };
  const missing = required.find((name) => !Object.hasOwn(properties, name));
  if (missing !== undefined && schema['x-kubernetes-preserve-unknown-fields'] !== true)
    throw invalid(
      where,
      `requires ${missing}, which isn't among its properties; add it, or require it no more`,
    );
  for (const [name, member] of Object.entries(properties)) checkSchema(`${where}.${name}`, member);
}

/** What other dialects of JSON Schema have, and what to write here. */
const REMEDIES: Readonly<Record<string, string>> = {
  const: '; write enum with one value',
  $ref: '; write the schema itself',
  patternProperties: '; write additionalProperties',
  definitions: '; write the schemas where they are used',
  optional: '; what is optional is left out of "required"',
};

function remedyFor(keyword: string): string {
  const near = suggest(keyword, KEYWORDS);
  if (near !== undefined) return `; did you mean ${near}?`;
  const remedy = Object.hasOwn(REMEDIES, keyword) ? REMEDIES[keyword] : undefined;
  return remedy ?? `; it knows ${KEYWORDS.join(', ')}`;
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string');
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(where: string, what: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message: `${where}: ${what}` });
}

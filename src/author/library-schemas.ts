import type { StructuralSchema } from '../contract/crd.js';
import { misdefined } from './definition.js';
import { messageOf } from '../contract/error.js';
import { isMap } from '../values/json.js';

/**
 * A schema of a library, as it is: of zod from 4.2, or another one that follows Standard JSON Schema, or of TypeBox.
 * @see https://standardschema.dev/json-schema
 */
export type LibrarySchema =
  | { readonly '~standard': { readonly types?: { readonly output: unknown } | undefined } }
  | { readonly static: unknown }
  | { readonly '~kind': string };

type Json = Readonly<Record<string, unknown>>;

/**
 * Returns a schema as a CRD has it; one that isn't of a library as it is.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition` for what a CRD can't say, with its path
 */
export function fromLibrary(where: string, given: unknown): unknown {
  if (!isMap(given)) return given;
  const { '~standard': standard } = given;
  const isTypeBox =
    '~kind' in given ||
    Object.getOwnPropertySymbols(given).some(({ description }) => description === 'TypeBox.Kind');
  if (isTypeBox) return structural(where, JSON.parse(JSON.stringify(given)) as Json);
  if (!isMap(standard)) return given;
  const { jsonSchema, vendor } = standard as {
    jsonSchema?: { input: (options: object) => Json };
    vendor?: string;
  };
  if (!jsonSchema)
    throw misdefined(
      where,
      `${vendor ?? 'the library'} can't write it as JSON schema; take zod 4.2 or later, or TypeBox`,
    );
  let json: Json;
  try {
    json = jsonSchema.input({ target: 'openapi-3.0' });
  } catch (error) {
    throw misdefined(
      where,
      `can't be written as JSON schema: ${messageOf(error)}; give it a type without code`,
    );
  }
  return structural(where, json);
}

/** Names that say nothing of values. */
const IGNORED: readonly string[] = ['$schema', '$id', '~standard'];

/** Keywords that have no counterpart, and what to write instead. */
const REFUSED: Readonly<Record<string, string>> = {
  $ref: 'refers to another schema, which a CRD has none of; write it in place',
  allOf: 'is an intersection; write one object with all members',
  oneOf: 'is one of several types; write one object with optional members, and a rule in CEL',
  prefixItems: 'is a tuple; write an object',
  propertyNames: 'has rules for names; write z.record(z.string(), ...), and a rule in CEL',
};

function structural(where: string, given: Json): StructuralSchema {
  const refused = Object.keys(REFUSED).find((keyword) => given[keyword] !== undefined);
  if (refused !== undefined) throw misdefined(where, REFUSED[refused] ?? '');
  const { anyOf, const: only, properties, items, additionalProperties, patternProperties, ...others } = given;
  const schema: Record<string, unknown> = Object.fromEntries(
    Object.entries(others).filter(([name]) => !IGNORED.includes(name)),
  );
  if (Array.isArray(anyOf)) Object.assign(schema, union(where, anyOf as readonly Json[]));
  if (only !== undefined) schema.enum = [only];
  for (const side of ['minimum', 'maximum']) {
    const name = `exclusive${side[0]?.toUpperCase() ?? ''}${side.slice(1)}`;
    if (typeof schema[name] === 'number') Object.assign(schema, { [side]: schema[name], [name]: true });
  }
  // The API server drops an empty one.
  if (isMap(properties) && Object.keys(properties).length > 0) schema.properties = each(where, properties);
  if (Array.isArray(items)) throw misdefined(where, REFUSED.prefixItems ?? '');
  if (isMap(items)) schema.items = structural(`${where}.items`, items);
  const [pattern, ...patterns] = Object.entries((patternProperties ?? {}) as Json);
  if (patterns.length > 0 || (pattern && !/^\^\(?\.\*\)?\$$/.test(pattern[0])))
    throw misdefined(where, REFUSED.propertyNames ?? '');
  const values = pattern?.[1] ?? additionalProperties;
  const isAny = values === true || (isMap(values) && Object.keys(values).length === 0);
  if (isAny) schema['x-kubernetes-preserve-unknown-fields'] = true;
  // The API server drops other members by itself.
  else if (isMap(values)) schema.additionalProperties = structural(`${where}.additionalProperties`, values);
  const [value] = (schema.enum ?? []) as readonly unknown[];
  if (schema.type === undefined && value !== undefined) schema.type = typeof value;
  if (schema.type === undefined) schema['x-kubernetes-preserve-unknown-fields'] = true;
  return schema;
}

function each(where: string, members: Json): Readonly<Record<string, StructuralSchema>> {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [name, structural(`${where}.${name}`, member as Json)]),
  );
}

/** Returns a union with null, or one of literals. */
function union(where: string, all: readonly Json[]): StructuralSchema {
  const choices = all.filter(({ type }) => type !== 'null').map((choice) => structural(where, choice));
  const nullable = choices.length < all.length && { nullable: true };
  const [first = {}, ...rest] = choices;
  if (rest.length === 0) return { ...first, ...nullable };
  if (choices.some((choice) => !choice.enum || choice.type !== first.type))
    throw misdefined(where, REFUSED.oneOf ?? '');
  return {
    type: first.type,
    enum: choices.flatMap((choice) => choice.enum ?? []),
    ...nullable,
  } as StructuralSchema;
}

import { isGroup, isKind, isKubernetesGroup, isLabel } from './names.js';
import type { CrdColumn, StructuralSchema } from './crd.js';
import { misdefined } from './error.js';
import type { OperatorError } from './error.js';
import { isMap } from './object.js';
import { guessPlural } from './resource.js';
import { suggest } from './suggest.js';
import type { FromSchema, FromStatus, TypedCrd } from './typed-crd.js';

/** What a kind of one's own is called, and what its custom resources look like. */
export interface CrdProps<Spec extends StructuralSchema, Status extends SchemaProperties> {
  /** The group of the API, a domain that is yours: `web.example.com`. */
  readonly group: string;
  /** In PascalCase, singular: `Guestbook`. */
  readonly kind: string;
  /** @default v1 */
  readonly version?: string;
  /** As in request paths and for `kubectl get`, in lower case. @default - the kind in the plural, e.g. `galleries`, `gateways` */
  readonly plural?: string;
  /** Short forms for `kubectl get`. @default - none */
  readonly shortNames?: readonly string[];
  /** Groups of kinds for `kubectl get`, e.g. `all`. @default - none */
  readonly categories?: readonly string[];
  /** Whether its custom resources are in namespaces. @default Namespaced */
  readonly scope?: 'Namespaced' | 'Cluster';
  /** What the kind is, for `kubectl explain`. */
  readonly description: string;
  /** The schema of the spec, as in a CRD. */
  readonly spec: Spec;
  /** The schemas of what the status has beside `observedGeneration` and `conditions`. @default - nothing */
  readonly status?: Status;
  /** What `kubectl get` shows between Ready, Reason and Age, which are always there. @default - nothing */
  readonly columns?: readonly CrdColumn[];
  /** Rules in CEL about the whole custom resource, e.g. about the length of its name. @default - none */
  readonly rules?: readonly CelRule[];
}

/** Schemas by the names of members. */
export type SchemaProperties = Readonly<Record<string, StructuralSchema>>;

/** A rule that the API server holds a custom resource against. @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules */
export interface CelRule {
  /** In CEL, of `self`; true where all is well. */
  readonly rule: string;
  /** What is wrong where it is false. */
  readonly message?: string;
  /** Where, seen from `self`, e.g. `.spec.replicas`. */
  readonly fieldPath?: string;
  readonly reason?:
    'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
}

/**
 * Makes the CRD of a kind from the schemas of its spec and its status, and the types of both with it:
 * `SpecOf<typeof crd>`, `StatusOf<typeof crd>` and `PropsOf<typeof crd>`.
 *
 * **Guarantees.** A CRD as `crds/` of this project has them: with a status that is written apart from the spec, what the
 * operator writes there (`observedGeneration`, -1 until it has seen the custom resource, and `conditions`), and the columns
 * Ready, Reason, Age and, with `-o wide`, Message. It is plain data, which serializes to YAML.
 *
 * **Assumptions.** The schemas are written in place, or `as const`, so that the compiler sees what they say. CEL rules and
 * patterns are checked by the API server alone.
 *
 * **Caveats.** One version. A CRD with several is written as YAML.
 *
 * **Errors.** `InvalidDefinition`, with the place and the line to write: a group, kind or plural that can't be one, a schema
 * that isn't structural, a keyword that there is not, a member of the status that is the operator's own, a column that
 * leads nowhere, a default that the schema itself refuses.
 */
export function defineCrd<
  const Spec extends StructuralSchema,
  // eslint-disable-next-line @typescript-eslint/no-generated-empty-object-type -- A status without further members.
  const Status extends SchemaProperties = Record<never, never>,
>(props: CrdProps<Spec, Status>): TypedCrd<FromSchema<Spec>, FromStatus<Status>> {
  checkCrdProps(props);
  const { group, kind, version = 'v1', scope = 'Namespaced', description, rules, columns = [] } = props;
  const plural = props.plural ?? guessPlural(kind);
  const schema: StructuralSchema = {
    type: 'object',
    description,
    required: ['spec'],
    ...(rules && { 'x-kubernetes-validations': rules }),
    properties: {
      apiVersion: {
        type: 'string',
        description: 'Group and version of the schema that this object is written in.',
      },
      kind: { type: 'string', description: `The kind of this object, ${kind}.` },
      metadata: { type: 'object' },
      spec: props.spec,
      status: statusSchema(props.status ?? {}),
    },
  };
  checkColumns(columns, schema);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(props.shortNames && { shortNames: props.shortNames }),
        ...(props.categories && { categories: props.categories }),
      },
      scope,
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [...OUTCOME, ...columns, AGE, MESSAGE],
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
}

const READY = '.status.conditions[?(@.type=="Ready")]';

const OUTCOME: readonly CrdColumn[] = [
  {
    name: 'Ready',
    type: 'string',
    jsonPath: `${READY}.status`,
    description: 'Whether all is as this object says.',
  },
  {
    name: 'Reason',
    type: 'string',
    jsonPath: `${READY}.reason`,
    description: 'Why it is ready, or why not, in one word.',
  },
];

const AGE: CrdColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

const MESSAGE: CrdColumn = {
  name: 'Message',
  type: 'string',
  jsonPath: `${READY}.message`,
  priority: 1,
  description: 'Why it is ready, or why not, in a sentence.',
};

const OPTIONS = [
  ...['group', 'kind', 'version', 'plural', 'shortNames', 'categories', 'scope'],
  ...['description', 'spec', 'status', 'columns', 'rules'],
];
/** @see https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/#JSONSchemaProps */
const OF_A_RULE = ['rule', 'message', 'messageExpression', 'fieldPath', 'reason', 'optionalOldSelf'];

/**
 * Holds what was given to `defineCrd` against what it takes, for authors who write plain JavaScript too.
 * @throws OperatorError `InvalidDefinition`
 */
function checkCrdProps(given: unknown): void {
  if (!isMap(given)) throw invalid('', 'takes { group, kind, description, spec }');
  const unknown = Object.keys(given).find((option) => !OPTIONS.includes(option));
  if (unknown !== undefined)
    throw invalid('', `doesn't know the option ${unknown}; it takes ${OPTIONS.join(', ')}`);
  checkNames(given);
  if (typeof given.description !== 'string' || given.description.trim() === '')
    throw invalid('description', `say what the kind is; write description: 'A guestbook on the web.'`);
  if (!isMap(given.spec) || given.spec.type !== 'object')
    throw invalid('spec', `is the schema of an object; write spec: { type: 'object', properties: { ... } }`);
  checkSchema('defineCrd: spec', given.spec);
  checkStatus(given.status ?? {});
  for (const list of ['columns', 'rules', 'shortNames', 'categories'])
    if (given[list] !== undefined && !Array.isArray(given[list])) throw invalid(list, 'give a list');
  for (const list of ['shortNames', 'categories']) checkLabels(list, given[list] ?? []);
  checkRules(given.rules ?? []);
}

function checkNames({ group, kind, version, plural, scope }: Readonly<Record<string, unknown>>): void {
  if (!isGroup(group))
    throw invalid('group', `is a domain in lower case, not ${shown(group)}; write group: 'web.example.com'`);
  if (isKubernetesGroup(group))
    throw invalid('group', `${group} is kept for Kubernetes itself; take a domain of your own`);
  if (!isKind(kind))
    throw invalid('kind', `is one word in PascalCase, not ${shown(kind)}; write kind: '${pascalCase(kind)}'`);
  if (plural !== undefined && !isLabel(plural))
    throw invalid('plural', `is in lower case, not ${shown(plural)}; write plural: '${guessPlural(kind)}'`);
  if (
    version !== undefined &&
    (typeof version !== 'string' || !/^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/.test(version))
  )
    throw invalid('version', `is v1, v1beta1 or the like, not ${shown(version)}; write version: 'v1'`);
  if (scope !== undefined && scope !== 'Namespaced' && scope !== 'Cluster')
    throw invalid('scope', `is 'Namespaced' or 'Cluster', not ${shown(scope)}`);
}

function checkLabels(list: string, names: unknown): void {
  (names as readonly unknown[]).forEach((name, index) => {
    if (isLabel(name)) return;
    const lower = typeof name === 'string' ? name.toLowerCase() : undefined;
    const line = isLabel(lower) ? `; write '${lower}'` : '';
    throw invalid(`${list}[${index}]`, `is a name in lower case, not ${shown(name)}${line}`);
  });
}

function checkRules(rules: unknown): void {
  (rules as readonly unknown[]).forEach((rule, index) => {
    const where = `rules[${index}]`;
    if (!isMap(rule) || typeof rule.rule !== 'string')
      throw invalid(
        where,
        `write { rule: 'self.metadata.name.size() <= 52', message: '...' }, not ${shown(rule)}`,
      );
    const unknown = Object.keys(rule).find((member) => !OF_A_RULE.includes(member));
    if (unknown === undefined) return;
    const near = suggest(unknown, OF_A_RULE);
    const remedy = near === undefined ? `it knows ${OF_A_RULE.join(', ')}` : `did you mean ${near}?`;
    throw invalid(where, `a rule knows no ${unknown}; ${remedy}`);
  });
}

function checkStatus(status: unknown): void {
  if (!isMap(status))
    throw invalid('status', 'give schemas by name; write status: { pods: { type: "integer" } }');
  const own = OWN_STATUS.find((name) => Object.hasOwn(status, name));
  if (own !== undefined)
    throw invalid(
      `status.${own}`,
      `the operator writes it for every kind; leave it out, it is there by itself`,
    );
  // A schema in place of its members: who copies from a CRD writes that.
  if (typeof status.type === 'string' && isMap(status.properties))
    throw invalid(
      'status',
      'give the members alone, without type and properties; write status: { pods: { ... } }',
    );
  for (const [name, schema] of Object.entries(status)) checkSchema(`defineCrd: status.${name}`, schema);
}

function pascalCase(kind: unknown): string {
  const words = typeof kind === 'string' ? (kind.match(/[A-Za-z0-9]+/g) ?? []) : [];
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return /^[A-Z]/.test(name) ? name : 'Guestbook';
}

function shown(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

function invalid(option: string, what: string): OperatorError {
  return misdefined(option ? `defineCrd: ${option}` : 'defineCrd', what);
}

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
function checkSchema(where: string, schema: unknown): void {
  if (!isMap(schema)) throw misdefined(where, `is no schema; write { type: 'string' } or the like`);
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.includes(keyword));
  if (unknown !== undefined)
    throw misdefined(where, `a schema of a CRD knows no ${unknown}${remedyFor(unknown)}`);
  checkType(where, schema);
  checkDefault(where, schema);
  const { properties, additionalProperties, items, required } = schema;
  if (required !== undefined && !Array.isArray(required))
    throw misdefined(
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
    throw misdefined(where, 'what is a number or a string has no type beside; leave the type out');
  if (type === undefined && !open) throw misdefined(where, `has no type; write one of ${TYPES.join(', ')}`);
  if (type !== undefined && (typeof type !== 'string' || !TYPES.includes(type)))
    throw misdefined(where, `has the type ${JSON.stringify(type)}; write one of ${TYPES.join(', ')}`);
  if (type === 'array' && schema.items === undefined)
    throw misdefined(where, `doesn't say what is in the list; write items: { type: 'string' } or the like`);
  if (schema.uniqueItems === true)
    throw misdefined(where, `a CRD can't have uniqueItems; write 'x-kubernetes-list-type': 'set'`);
  if (schema['x-kubernetes-list-type'] === 'map') checkListKeys(where, schema);
  if (schema.enum !== undefined && !Array.isArray(schema.enum))
    throw misdefined(where, `give a list of the values; write enum: ['a', 'b']`);
}

/** The API server asks for the same. */
function checkListKeys(where: string, schema: Readonly<Record<string, unknown>>): void {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (!isNames(keys))
    throw misdefined(
      where,
      `doesn't say what its items go by; write 'x-kubernetes-list-map-keys': ['name'], with one or more of their members`,
    );
  const { properties, required } = isMap(schema.items) ? schema.items : {};
  for (const key of keys) {
    const member = isMap(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isMap(member))
      throw misdefined(
        where,
        `its items go by ${key}, which isn't among their properties; write one that is, or 'x-kubernetes-list-type': 'atomic'`,
      );
    if (!(Array.isArray(required) && required.includes(key)) && member.default === undefined)
      throw misdefined(
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
  if (!isMap(properties)) throw misdefined(where, 'properties are schemas by name');
  if (schema.additionalProperties !== undefined)
    throw misdefined(
      where,
      'has properties and additionalProperties, of which a CRD may have one; choose one',
    );
  const { required = [] } = schema as { readonly required?: readonly string[] };
  const missing = required.find((name) => !Object.hasOwn(properties, name));
  if (missing !== undefined && schema['x-kubernetes-preserve-unknown-fields'] !== true)
    throw misdefined(
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

type Schema = Readonly<Record<string, unknown>>;

/**
 * The API server refuses a CRD with a default that its own schema refuses.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`
 */
function checkDefault(where: string, schema: Schema): void {
  const { type, default: value, enum: values } = schema;
  if (value === undefined || (value === null && schema.nullable === true)) return;
  const text = JSON.stringify(value);
  if (typeof type === 'string' && !isOfType(value, type)) {
    const meant =
      typeof value === 'string' && isOfType(parsed(value), type) ? `; write default: ${value}` : '';
    throw misdefined(where, `has the default ${text}, which is no ${type}${meant}`);
  }
  if (Array.isArray(values) && !values.some((known) => JSON.stringify(known) === text)) {
    const known = values.map((one) => JSON.stringify(one)).join(', ');
    throw misdefined(where, `has the default ${text}, which isn't among the values; write one of ${known}`);
  }
  const [path] = lackingIn(schema, value, '');
  if (path !== undefined)
    throw misdefined(
      where,
      `has the default ${text}, which lacks ${path}; add it to the default, or require it no more`,
    );
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isMap(value) : typeof value === type;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The paths of members that a value has to have and hasn't; those with a default of their own may be left out. */
function lackingIn(schema: unknown, value: unknown, path: string): string[] {
  if (!isMap(schema)) return [];
  if (Array.isArray(value))
    return value.flatMap((item, index) => lackingIn(schema.items, item, `${path}[${index}]`));
  if (!isMap(value)) return [];
  const at = (name: string): string => (path ? `${path}.${name}` : name);
  const properties = isMap(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  const memberOf = (name: string): unknown =>
    Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
  const missing = required.filter((name) => !Object.hasOwn(value, name) && !hasDefault(memberOf(name)));
  return [
    ...missing.map(at),
    ...Object.entries(value).flatMap(([name, member]) => lackingIn(memberOf(name), member, at(name))),
  ];
}

function hasDefault(schema: unknown): boolean {
  return isMap(schema) && schema.default !== undefined;
}

const COLUMN_TYPES = ['string', 'integer', 'number', 'boolean', 'date'];
const ALWAYS_THERE = ['Ready', 'Reason', 'Age', 'Message'];

/**
 * A column whose path is misspelt stays empty without a word.
 * @param schema of the whole custom resource
 * @throws OperatorError `InvalidDefinition`
 */
function checkColumns(columns: readonly CrdColumn[], schema: StructuralSchema): void {
  columns.forEach((column, index) => {
    const where = `defineCrd: columns[${index}]`;
    const given = column as Partial<Record<keyof CrdColumn, unknown>> | null;
    const { name, type, jsonPath } = given ?? {};
    if (typeof name !== 'string' || typeof jsonPath !== 'string')
      throw misdefined(where, `write { name: 'Image', type: 'string', jsonPath: '.spec.image' }`);
    if (ALWAYS_THERE.includes(name))
      throw misdefined(where, `the column ${name} is there by itself; leave it out, or give it another name`);
    if (columns.findIndex((other) => other.name === name) < index)
      throw misdefined(where, `there is a column ${name} already; give it another name`);
    if (typeof type !== 'string' || !COLUMN_TYPES.includes(type))
      throw misdefined(
        where,
        `a column has one of the types ${COLUMN_TYPES.join(', ')}; write type: 'string'`,
      );
    if (!jsonPath.startsWith('.'))
      throw misdefined(
        where,
        `a path begins with a dot; write jsonPath: '.${jsonPath.replace(/^\$\.?/, '')}'`,
      );
    checkPath(where, jsonPath, schema);
  });
}

/** Followed as far as it is made of names alone; what filters and indexes lead to is left to the API server. */
function checkPath(where: string, jsonPath: string, schema: StructuralSchema): void {
  let at: StructuralSchema = schema;
  let done = '';
  for (const [step, name = ''] of jsonPath.matchAll(/\.([\w-]+)/gy)) {
    if (isOpen(at, done)) return;
    const { properties = {} } = at;
    const next = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!next) {
      const known = Object.keys(properties).join(', ') || 'nothing';
      throw misdefined(
        where,
        `${jsonPath} leads nowhere, since ${done || 'the custom resource'} has no ${name}, only ${known}; mend the path, or add ${name} to the schema`,
      );
    }
    at = next;
    done += step;
  }
}

/** Whether members are allowed that no schema names. */
function isOpen(schema: StructuralSchema, path: string): boolean {
  return (
    path === '.metadata' ||
    schema.additionalProperties !== undefined ||
    schema['x-kubernetes-preserve-unknown-fields'] === true
  );
}

/** What the operator writes into the status of every kind. */
const OPERATORS_OWN = {
  observedGeneration: {
    type: 'integer',
    format: 'int64',
    description:
      'The generation of this object that the status speaks of; -1 before the operator has seen it.',
  },
  conditions: {
    type: 'array',
    description: 'How this object fares, as Ready, Reconciling and Stalled.',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: {
      type: 'object',
      description: 'One aspect of how this object fares.',
      required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
      properties: {
        type: { type: 'string', description: 'The aspect, in CamelCase.' },
        status: { type: 'string', enum: ['True', 'False', 'Unknown'], description: 'Whether it holds.' },
        reason: { type: 'string', description: 'Why, in one word in CamelCase.' },
        message: { type: 'string', description: 'Why, in a sentence.' },
        lastTransitionTime: {
          type: 'string',
          format: 'date-time',
          description: "When the condition's status last changed.",
        },
        observedGeneration: {
          type: 'integer',
          format: 'int64',
          description: 'The generation of this object that the condition speaks of.',
        },
      },
    },
  },
} as const satisfies Readonly<Record<string, StructuralSchema>>;

/** The names of what the operator writes into the status of every kind. */
const OWN_STATUS: readonly string[] = Object.keys(OPERATORS_OWN);

/** The schema of a status. @param properties what it has beside what the operator writes for every kind */
function statusSchema(properties: Readonly<Record<string, StructuralSchema>>): StructuralSchema {
  const { observedGeneration, conditions } = OPERATORS_OWN;
  return {
    type: 'object',
    description: 'How this object fares. Written by the operator.',
    // Until the operator has seen the object, this keeps tools from reading it as finished.
    default: { observedGeneration: -1 },
    properties: { observedGeneration, ...properties, conditions },
  };
}

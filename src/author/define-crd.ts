import {
  isGroup,
  isKind,
  isKubernetesGroup,
  isLabel,
  checkOptions,
  isText,
  listOf,
  misdefined,
  optional,
} from './definition.js';
import { schemaBelow } from '../contract/crd.js';
import type { CrdColumn, StructuralSchema } from '../contract/crd.js';
import type { Option } from './definition.js';
import { fromLibrary } from './library-schemas.js';
import type { LibrarySchema } from './library-schemas.js';
import { isMap } from '../contract/object.js';
import { guessPlural } from '../contract/resource.js';
import type { FromSchema, FromStatus, TypedCrd } from './typed-crd.js';

/** Names of a kind, and the schema of its custom resources. */
export interface CrdProps<Spec extends StructuralSchema | LibrarySchema, Status extends SchemaProperties> {
  /** The group of the API, a domain that is yours: `web.example.com`. */
  readonly group: string;
  /** In PascalCase, singular: `Guestbook`. */
  readonly kind: string;
  /** @default v1 */
  readonly version?: string;
  /** Name in request paths and for `kubectl get`, in lower case. @default - the kind in the plural, e.g. `galleries`, `gateways` */
  readonly plural?: string;
  /** Short forms for `kubectl get`. @default - none */
  readonly shortNames?: readonly string[];
  /** Groups of kinds for `kubectl get`, e.g. `all`. @default - none */
  readonly categories?: readonly string[];
  /** Specifies whether its custom resources are in namespaces. @default Namespaced */
  readonly scope?: 'Namespaced' | 'Cluster';
  /** Text for `kubectl explain`. */
  readonly description: string;
  /** The schema of the spec, as in a CRD; or one of zod or TypeBox, as it is. */
  readonly spec: Spec;
  /** The schemas of what the status has beside `observedGeneration` and `conditions`. @default - nothing */
  readonly status?: Status;
  /** Columns of `kubectl get` between Ready, Reason and Age, which are always there. @default - nothing */
  readonly columns?: readonly CrdColumn[];
  /** Rules in CEL about the whole custom resource, e.g. about the length of its name. @default - none */
  readonly rules?: readonly CelRule[];
}

/** Schemas by the names of members. */
export type SchemaProperties = Readonly<Record<string, StructuralSchema | LibrarySchema>>;

/** A rule that the API server holds a custom resource against. @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules */
export interface CelRule {
  /** In CEL, of `self`; true where all is well. */
  readonly rule: string;
  /** Message where it is false. */
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
  const Spec extends StructuralSchema | LibrarySchema,
  // eslint-disable-next-line @typescript-eslint/no-generated-empty-object-type -- A status without further members.
  const Status extends SchemaProperties = Record<never, never>,
>(given: CrdProps<Spec, Status>): TypedCrd<FromSchema<Spec>, FromStatus<Status>> {
  const props = withoutLibraries(given);
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

type PlainProps = CrdProps<StructuralSchema, Readonly<Record<string, StructuralSchema>>>;

/** Whatever else is given is judged afterwards. */
function withoutLibraries(props: unknown): PlainProps {
  if (!isMap(props)) return props as PlainProps;
  const { spec, status } = props;
  return {
    ...props,
    ...(isMap(spec) && { spec: fromLibrary('defineCrd: spec', spec) }),
    ...(isMap(status) && {
      status: Object.fromEntries(
        Object.entries(status).map(([name, each]) => [name, fromLibrary(`defineCrd: status.${name}`, each)]),
      ),
    }),
  } as unknown as PlainProps;
}

function readyColumn(name: string, member: string, description: string): CrdColumn {
  const jsonPath = `.status.conditions[?(@.type=="Ready")].${member}`;
  return { name, type: 'string', jsonPath, ...(member === 'message' && { priority: 1 }), description };
}

const OUTCOME: readonly CrdColumn[] = [
  readyColumn('Ready', 'status', 'Whether all is as this object says.'),
  readyColumn('Reason', 'reason', 'Why it is ready, or why not, in one word.'),
];
const AGE: CrdColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
const MESSAGE = readyColumn('Message', 'message', 'Why it is ready, or why not, in a sentence.');

const isObjectSchema = (value: unknown): boolean => isMap(value) && value.type === 'object';
/** A schema in place of its members: authors who copy from a CRD write that. */
const isMembers = (value: unknown): boolean =>
  isMap(value) && !(typeof value.type === 'string' && isMap(value.properties));
const isScope = (value: unknown): boolean => value === 'Namespaced' || value === 'Cluster';
const isVersion = (value: unknown): boolean =>
  typeof value === 'string' && /^v[1-9]\d*((alpha|beta)[1-9]\d*)?$/.test(value);
const NAMES = 'give a list of names in lower case';

const OPTIONS: readonly Option[] = [
  ['group', isGroup, "is a domain in lower case; write group: 'web.example.com'"],
  ['kind', isKind, "is one word in PascalCase; write kind: 'Guestbook'"],
  ['version', optional(isVersion), "is v1, v1beta1 or the like; write version: 'v1'"],
  ['plural', optional(isLabel), "is in lower case; write plural: 'guestbooks'"],
  ['shortNames', optional(listOf(isLabel)), NAMES],
  ['categories', optional(listOf(isLabel)), NAMES],
  ['scope', optional(isScope), "is 'Namespaced' or 'Cluster'"],
  ['description', isText, "say what the kind is; write description: 'A guestbook on the web.'"],
  ['spec', isObjectSchema, "is the schema of an object; write spec: { type: 'object', properties: { ... } }"],
  ['status', optional(isMembers), 'give schemas by name; write status: { pods: { type: "integer" } }'],
  ['columns', optional(Array.isArray), 'give a list'],
  ['rules', optional(Array.isArray), 'give a list'],
];

const RULE = "write { rule: 'self.metadata.name.size() <= 52', message: '...' }";
const OF_A_RULE = ['rule', 'message', 'messageExpression', 'fieldPath', 'reason', 'optionalOldSelf'].map(
  (name): Option => [name, name === 'rule' ? isText : () => true, RULE],
);

/** @throws OperatorError `InvalidDefinition` */
function checkCrdProps(props: PlainProps): void {
  const { group, spec, status = {}, rules = [] } = props;
  checkOptions('defineCrd', props, OPTIONS, 'takes { group, kind, description, spec }');
  if (isKubernetesGroup(group))
    throw misdefined('defineCrd: group', `${group} is kept for Kubernetes itself; take a domain of your own`);
  checkSchema('defineCrd: spec', spec);
  for (const [name, schema] of Object.entries(status)) {
    if (OWN_STATUS.includes(name))
      throw misdefined(`defineCrd: status.${name}`, 'the operator writes it for every kind; leave it out');
    checkSchema(`defineCrd: status.${name}`, schema);
  }
  rules.forEach((rule, index) => checkOptions(`defineCrd: rules[${index}]`, rule, OF_A_RULE, RULE));
}

const TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'];
const isType = (value: unknown): boolean => TYPES.includes(value as string);
const any = (): boolean => true;

/** Keywords of the schema of a CRD. @see https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/#JSONSchemaProps */
const KEYWORDS: readonly Option[] = [
  ['type', optional(isType), `is one of ${TYPES.join(', ')}`],
  ['enum', optional(Array.isArray), "give a list of the values; write enum: ['a', 'b']"],
  [
    'required',
    optional(listOf(isText)),
    "give a list of names, on the object that has the members; write required: ['image']",
  ],
  ['properties', optional(isMap), 'give schemas by name'],
  ['uniqueItems', (value) => value !== true, "can't be in a CRD; write 'x-kubernetes-list-type': 'set'"],
  ...[
    ...['format', 'title', 'description', 'default', 'example', 'externalDocs', 'nullable'],
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
    ...['minLength', 'maxLength', 'pattern', 'items', 'minItems', 'maxItems'],
    ...['additionalProperties', 'minProperties', 'maxProperties', 'allOf', 'anyOf', 'oneOf', 'not'],
    ...['int-or-string', 'preserve-unknown-fields', 'embedded-resource', 'list-type', 'list-map-keys'].map(
      (name) => `x-kubernetes-${name}`,
    ),
    ...['x-kubernetes-map-type', 'x-kubernetes-validations'],
  ].map((keyword): Option => [keyword, any, '']),
];

/**
 * Holds a schema against the rules of structural schemas, as far as authors break them.
 * @param where it stands, for the message
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 * @throws OperatorError `InvalidDefinition`
 */
function checkSchema(where: string, given: unknown): void {
  const schema = checkOptions(
    where,
    given,
    KEYWORDS,
    "give a schema such as { type: 'string' }",
  ) as StructuralSchema;
  const { type, properties, additionalProperties, items, required = [] } = schema;
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const isMissing = (name: string): boolean => !Object.hasOwn(properties ?? {}, name);
  const missing = properties && !isOpen ? required.find(isMissing) : undefined;
  const wrong =
    (isIntOrString && type && 'a number or a string has no type beside; leave the type out') ||
    (!type && !isIntOrString && !isOpen && `has no type; write one of ${TYPES.join(', ')}`) ||
    (type === 'array' &&
      !items &&
      "doesn't say what is in the list; write items: { type: 'string' } or the like") ||
    (properties && additionalProperties && 'has properties and additionalProperties; choose one') ||
    (missing !== undefined && `requires ${missing}, which isn't among its properties`) ||
    (schema['x-kubernetes-list-type'] === 'map' && wrongKeys(schema)) ||
    wrongDefault(schema);
  if (wrong) throw misdefined(where, wrong);
  for (const [name, member] of Object.entries(properties ?? {})) checkSchema(`${where}.${name}`, member);
  if (isMap(additionalProperties)) checkSchema(`${where}.additionalProperties`, additionalProperties);
  if (items !== undefined) checkSchema(`${where}.items`, items);
}

function wrongKeys({
  items = {},
  'x-kubernetes-list-map-keys': keys = [],
}: StructuralSchema): string | undefined {
  if (keys.length === 0)
    return "write 'x-kubernetes-list-map-keys': ['name'], with one or more members of the items";
  const { properties = {}, required = [] } = items;
  const key = keys.find(
    (name) => !Object.hasOwn(properties, name) || !(required.includes(name) || hasDefault(properties[name])),
  );
  return key && `the key ${key} has to be among the properties of the items, and required or with a default`;
}

function wrongDefault(schema: StructuralSchema): string | undefined {
  const { default: value, nullable } = schema;
  if (value === undefined || (value === null && nullable === true)) return undefined;
  const what = mismatch(schema, value, '');
  return what && `has the default ${JSON.stringify(value)}, which ${what}`;
}

/** Returns where a value differs from its schema in type, enum or required members; one with a default may be left out. */
function mismatch(schema: StructuralSchema | undefined, value: unknown, path: string): string | undefined {
  if (!schema) return undefined;
  const { type, enum: values, required = [], items } = schema;
  const place = path && ` at ${path.slice(1)}`;
  if (type && !isOfType(value, type)) return `is no ${type}${place}`;
  if (values && !values.some((known) => JSON.stringify(known) === JSON.stringify(value)))
    return `is none of ${JSON.stringify(values)}${place}`;
  if (Array.isArray(value))
    return first(value.map((item, index) => mismatch(items, item, `${path}.${index}`)));
  if (!isMap(value)) return undefined;
  const missing = required.find(
    (name) => !Object.hasOwn(value, name) && !hasDefault(schemaBelow(schema, name)),
  );
  if (missing !== undefined) return `lacks ${`${path}.${missing}`.slice(1)}`;
  return first(
    Object.entries(value).map(([name, member]) =>
      mismatch(schemaBelow(schema, name), member, `${path}.${name}`),
    ),
  );
}

function first(found: readonly (string | undefined)[]): string | undefined {
  return found.find((one) => one !== undefined);
}

function hasDefault(schema: StructuralSchema | undefined): boolean {
  return schema?.default !== undefined;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isMap(value) : typeof value === type;
}

const COLUMN = "write { name: 'Image', type: 'string', jsonPath: '.spec.image' }";
const COLUMN_TYPES: readonly unknown[] = ['string', 'integer', 'number', 'boolean', 'date'];
const OF_A_COLUMN: readonly Option[] = [
  ['name', isText, COLUMN],
  ['type', (type) => COLUMN_TYPES.includes(type), `is one of ${COLUMN_TYPES.join(', ')}`],
  ['jsonPath', (path) => isText(path) && path.startsWith('.'), `a path begins with a dot; ${COLUMN}`],
  ...['description', 'format', 'priority'].map((name): Option => [name, any, '']),
];

/** A column whose path is misspelt stays empty without a word. @throws OperatorError `InvalidDefinition` */
function checkColumns(columns: readonly CrdColumn[], schema: StructuralSchema): void {
  const names = new Set([...OUTCOME, AGE, MESSAGE].map(({ name }) => name));
  columns.forEach((column, index) => {
    const where = `defineCrd: columns[${index}]`;
    checkOptions(where, column, OF_A_COLUMN, COLUMN);
    const { name, jsonPath } = column;
    if (names.has(name)) throw misdefined(where, `there is a column ${name} already; give it another name`);
    names.add(name);
    checkPath(where, jsonPath, schema);
  });
}

/** Followed as far as it is made of names alone; what filters and indexes lead to is left to the API server. */
function checkPath(where: string, jsonPath: string, schema: StructuralSchema): void {
  let at = schema;
  let done = '';
  for (const [step, name = ''] of jsonPath.matchAll(/\.([\w-]+)/gy)) {
    const { properties = {}, additionalProperties } = at;
    const isOpen = additionalProperties !== undefined || at['x-kubernetes-preserve-unknown-fields'] === true;
    if (isOpen || done === '.metadata') return;
    const next = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!next) {
      const known = Object.keys(properties).join(', ') || 'nothing';
      const place = done || 'the custom resource';
      throw misdefined(where, `${jsonPath} leads nowhere, since ${place} has no ${name}, only ${known}`);
    }
    at = next;
    done += step;
  }
}

const text = (description: string, more: object = {}): StructuralSchema => ({
  ...{ type: 'string', ...more, description },
});
const generation = (description: string): StructuralSchema => ({
  ...{ type: 'integer', format: 'int64', description },
});

/** Fields that the operator writes into the status of every kind. */
const OPERATORS_OWN = {
  observedGeneration: generation(
    'The generation of this object that the status speaks of; -1 before the operator has seen it.',
  ),
  conditions: {
    type: 'array',
    description: 'State of this object, as Ready, Reconciling and Stalled.',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: {
      type: 'object',
      description: 'One aspect of the state of this object.',
      required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
      properties: {
        type: text('The aspect, in CamelCase.'),
        status: text('Whether it holds.', { enum: ['True', 'False', 'Unknown'] }),
        reason: text('Why, in one word in CamelCase.'),
        message: text('Why, in a sentence.'),
        lastTransitionTime: text("When the condition's status last changed.", { format: 'date-time' }),
        observedGeneration: generation('The generation of this object that the condition speaks of.'),
      },
    },
  },
} as const satisfies Readonly<Record<string, StructuralSchema>>;

const OWN_STATUS: readonly string[] = Object.keys(OPERATORS_OWN);

/** @param properties what the status has beside what the operator writes for every kind */
function statusSchema(properties: SchemaProperties): StructuralSchema {
  const { observedGeneration, conditions } = OPERATORS_OWN;
  return {
    type: 'object',
    description: 'State of this object. Written by the operator.',
    // Until the operator has seen the object, this keeps tools from reading it as finished.
    default: { observedGeneration: -1 },
    properties: { observedGeneration, ...properties, conditions },
  };
}

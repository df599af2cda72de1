import type { CrdColumn, StructuralSchema } from '../contract/crd.js';
import { isMap } from '../contract/object.js';
import { guessPlural } from '../contract/resource.js';
import { checkNames, isGroup, isKind, isKubernetesGroup, misdefined, shownOption } from './definition.js';
import { fromLibrary } from './library-schemas.js';
import type { LibrarySchema } from './library-schemas.js';
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
  /** Path seen from `self`, e.g. `.spec.replicas`. */
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
 * **Errors.** `InvalidDefinition`, with the place and the line to write: a group or kind that can't be one, a schema that isn't
 * structural, a keyword that there is not, a member of the status that is the operator's own, a column that leads nowhere. The API
 * server says the rest when the CRD is installed.
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

const NAMES = [
  ...['group', 'kind', 'version', 'plural', 'shortNames', 'categories', 'scope', 'description'],
  ...['spec', 'status', 'columns', 'rules'],
];

/** @throws OperatorError `InvalidDefinition` */
function checkCrdProps(props: PlainProps): void {
  checkNames('defineCrd', props, NAMES, 'takes { group, kind, description, spec }');
  const { group, kind, spec, status = {} } = props;
  if (!isGroup(group))
    throw misdefined(
      'defineCrd: group',
      `is a domain in lower case, not ${shownOption(group)}; write group: 'web.example.com'`,
    );
  if (isKubernetesGroup(group))
    throw misdefined('defineCrd: group', `${group} is kept for Kubernetes itself; take a domain of your own`);
  if (!isKind(kind))
    throw misdefined(
      'defineCrd: kind',
      `is one word in PascalCase, not ${shownOption(kind)}; write kind: 'Guestbook'`,
    );
  if (!isMap(spec) || spec.type !== 'object')
    throw misdefined(
      'defineCrd: spec',
      "is the schema of an object; write spec: { type: 'object', properties: { ... } }",
    );
  checkSchema('defineCrd: spec', spec);
  // Authors who copy from a CRD write a schema in place of its members.
  if (typeof status.type === 'string' && isMap(status.properties))
    throw misdefined(
      'defineCrd: status',
      'give schemas by name; write status: { pods: { type: "integer" } }',
    );
  for (const [name, schema] of Object.entries(status)) {
    if (OWN_STATUS.includes(name))
      throw misdefined(`defineCrd: status.${name}`, 'the operator writes it for every kind; leave it out');
    checkSchema(`defineCrd: status.${name}`, schema);
  }
}

const TYPES = ['string', 'integer', 'number', 'boolean', 'array', 'object'];

/** Keywords of the schema of a CRD. @see https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/#JSONSchemaProps */
const KEYWORDS: readonly string[] = [
  ...['type', 'enum', 'required', 'properties', 'items', 'additionalProperties', 'format', 'title'],
  ...['description', 'default', 'example', 'externalDocs', 'nullable', 'minimum', 'maximum'],
  ...['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'pattern'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
  ...['allOf', 'anyOf', 'oneOf', 'not', 'x-kubernetes-validations', 'x-kubernetes-map-type'],
  ...['int-or-string', 'preserve-unknown-fields', 'embedded-resource', 'list-type', 'list-map-keys'].map(
    (name) => `x-kubernetes-${name}`,
  ),
];

/**
 * Holds a schema against the rules of structural schemas, as far as authors break them and the API server says nothing, or nothing
 * that helps.
 * @param where it stands, for the message
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 * @throws OperatorError `InvalidDefinition`
 */
function checkSchema(where: string, given: unknown): void {
  const schema = checkNames(
    where,
    given,
    KEYWORDS,
    "give a schema such as { type: 'string' }",
  ) as StructuralSchema;
  const { type, properties, additionalProperties, items, required = [] } = schema;
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true;
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true;
  const isMissing = (name: string): boolean => !Object.hasOwn(properties ?? {}, name);
  const wrong =
    (isIntOrString && type && 'a number or a string has no type beside; leave the type out') ||
    (!isIntOrString &&
      (type ? !TYPES.includes(type) : !isOpen) &&
      `has ${type ? `the type ${type}` : 'no type'}; write one of ${TYPES.join(', ')}`) ||
    (type === 'array' &&
      !items &&
      "doesn't say what is in the list; write items: { type: 'string' } or the like") ||
    (properties && additionalProperties && 'has properties and additionalProperties; choose one') ||
    (!Array.isArray(required) &&
      "give a list of names, on the object that has the members; write required: ['image']") ||
    (properties &&
      !isOpen &&
      required.some(isMissing) &&
      `requires ${required.find(isMissing)}, which isn't among its properties`) ||
    (schema['x-kubernetes-list-type'] === 'map' && wrongKeys(schema));
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
  const isKey = (name: string): boolean =>
    Object.hasOwn(properties, name) && (required.includes(name) || properties[name]?.default !== undefined);
  const key = keys.find((name) => !isKey(name));
  return key && `the key ${key} has to be among the properties of the items, and required or with a default`;
}

/** Refuses a column whose path is misspelt: it would stay empty. @throws OperatorError `InvalidDefinition` */
function checkColumns(columns: readonly CrdColumn[], schema: StructuralSchema): void {
  columns.forEach(({ jsonPath }, index) => {
    checkPath(`defineCrd: columns[${index}]`, jsonPath, schema);
  });
}

/** Follows a path as far as it is made of names alone; where filters and indexes lead is left to the API server. */
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

import type { CrdColumn, StructuralSchema } from '../contract/crd.js';
import { guessPlural } from '../contract/resource.js';
import { checkNames, misdefined } from './definition.js';
import { fromLibrary } from './library-schemas.js';
import type { LibrarySchema } from './library-schemas.js';
import type { FromSchema, FromStatus, TypedCrd } from './typed-crd.js';
import { isMap } from '../values/json.js';

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
  /**
   * Paths of the numbers that `kubectl scale` and autoscalers write and read, as `.spec.replicas`, which is required or has a default, and
   * `.status.replicas`; a HorizontalPodAutoscaler needs that of the label selector of the Pods, too, a text. @default - none
   */
  readonly scale?: Readonly<Record<(typeof SCALE)[number], string>> & { readonly labelSelectorPath?: string };
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
 * **Errors.** `InvalidDefinition`, with the place, for what the API server may take without a word: an option or a keyword that there
 * is not, a required member that isn't among the properties, a member of the status that is the operator's own, a column or a path of
 * `scale` that leads nowhere. Its types say the rest, and the API server when the CRD is installed.
 */
export function defineCrd<
  const Spec extends StructuralSchema | LibrarySchema,
  // eslint-disable-next-line @typescript-eslint/no-generated-empty-object-type -- A status without further members.
  const Status extends SchemaProperties = Record<never, never>,
>(props: CrdProps<Spec, Status>): TypedCrd<FromSchema<Spec>, FromStatus<Status>> {
  checkNames('defineCrd', props, NAMES, 'takes { group, kind, description, spec }', REQUIRED);
  const { group, kind, version = 'v1', scope = 'Namespaced', description, rules, columns = [] } = props;
  const { plural = guessPlural(kind), scale } = props;
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
      spec: schemaOf('defineCrd: spec', props.spec),
      status: statusSchema(props.status ?? {}),
    },
  };
  columns.forEach(({ jsonPath }, index) => {
    checkPath(`defineCrd: columns[${index}]`, jsonPath, schema);
  });
  if (scale) checkNames('defineCrd: scale', scale, [...SCALE, 'labelSelectorPath'], SCALE_HINT, SCALE);
  for (const [name, path] of Object.entries<string | undefined>(scale ?? {}))
    if (path !== undefined)
      checkPath(
        `defineCrd: scale.${name}`,
        path,
        schema,
        name === 'labelSelectorPath' ? 'string' : 'integer',
      );
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
          subresources: { status: {}, ...(scale && { scale }) },
          additionalPrinterColumns: [...OUTCOME, ...columns, AGE, MESSAGE],
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
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

const REQUIRED = ['group', 'kind', 'description', 'spec'];
const NAMES = [
  ...REQUIRED,
  ...['version', 'plural', 'shortNames', 'categories', 'scope', 'status', 'columns', 'scale', 'rules'],
];
const SCALE = ['specReplicasPath', 'statusReplicasPath'] as const;
const SCALE_HINT = "write { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' }";

/** Returns a schema as a CRD has it, also of one of a library. @throws OperatorError `InvalidDefinition` */
function schemaOf(where: string, given: StructuralSchema | LibrarySchema): StructuralSchema {
  const schema = fromLibrary(where, given) as StructuralSchema;
  checkSchema(where, schema);
  return schema;
}

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
 * Refuses a keyword that there is not, which the API server may drop, and a required member that the schema doesn't have: the API
 * server takes the CRD then, and no custom resource.
 * @param where it stands, for the message
 * @throws OperatorError `InvalidDefinition`
 */
function checkSchema(where: string, schema: StructuralSchema): void {
  checkNames(where, schema, KEYWORDS, "give a schema such as { type: 'string' }");
  const { properties, additionalProperties, items, required = [] } = schema;
  const isOpen = !properties || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const missing = isOpen ? undefined : required.find((name) => !Object.hasOwn(properties, name));
  if (missing !== undefined) throw misdefined(where, `requires ${missing}, which isn't among its properties`);
  for (const [name, member] of Object.entries(properties ?? {})) checkSchema(`${where}.${name}`, member);
  if (isMap(additionalProperties)) checkSchema(`${where}.additionalProperties`, additionalProperties);
  if (items) checkSchema(`${where}.items`, items);
}

/**
 * Refuses the path of a column that is misspelt, which would stay empty. It is followed as far as it is made of names alone.
 * @param type that its field has to have @default - any
 * @throws OperatorError `InvalidDefinition`
 */
function checkPath(where: string, jsonPath: string, schema: StructuralSchema, type?: string): void {
  let at = schema;
  let done = '';
  for (const [step, name = ''] of jsonPath.matchAll(/\.([\w-]+)/gy)) {
    const { properties = {}, additionalProperties } = at;
    const isOpen = additionalProperties !== undefined || at['x-kubernetes-preserve-unknown-fields'] === true;
    if (isOpen || done === '.metadata') return;
    const next = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!next) {
      const remedy = type ? `; add ${name}: { type: '${type}' }` : '';
      const known = (Object.keys(properties).join(', ') || 'nothing') + remedy;
      const place = done || 'the custom resource';
      throw misdefined(where, `${jsonPath} leads nowhere, since ${place} has no ${name}, only ${known}`);
    }
    at = next;
    done += step;
  }
  if (type && (done !== jsonPath || at.type !== type))
    throw misdefined(
      where,
      `${jsonPath} leads to no field of type: '${type}'; write its names from the start, as in .spec.replicas`,
    );
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

/** @param given what the status has beside what the operator writes for every kind */
function statusSchema(given: SchemaProperties): StructuralSchema {
  const { observedGeneration, conditions } = OPERATORS_OWN;
  const properties = Object.entries(given).map(([name, schema]): [string, StructuralSchema] => {
    const where = `defineCrd: status.${name}`;
    if (Object.hasOwn(OPERATORS_OWN, name))
      throw misdefined(where, 'the operator writes it for every kind; leave it out');
    return [name, schemaOf(where, schema)];
  });
  return {
    type: 'object',
    description: 'State of this object. Written by the operator.',
    // Until the operator has seen the object, this keeps tools from reading it as finished.
    default: { observedGeneration: -1 },
    properties: { observedGeneration, ...Object.fromEntries(properties), conditions },
  };
}

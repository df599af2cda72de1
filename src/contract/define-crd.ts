import { checkColumns, checkCrdProps } from './check-crd-props.js';
import type { CrdColumn, StructuralSchema } from './crd.js';
import type { FromSchema, FromStatus } from './from-schema.js';
import { guessPlural } from './resource.js';
import { statusSchema } from './status-schema.js';
import type { TypedCrd } from './typed-crd.js';

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

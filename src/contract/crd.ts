import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from './error.js';
import { isMap } from './object.js';
import type { ResourceType } from './resource.js';
import { decodeText, itemsOf, readDocuments } from './yaml.js';

/** A structural schema, as far as this project reads it. @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema */
export interface StructuralSchema {
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema | boolean;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly nullable?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** A regular expression of RE2. */
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** A column of `kubectl get`. */
export interface CrdColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** Where the value is, e.g. `.spec.image`; of a list, the first item alone is shown. */
  readonly jsonPath: string;
  readonly description?: string;
  readonly format?: string;
  /** Above 0: only with `-o wide`. @default 0 */
  readonly priority?: number;
}

/** Version of a CRD. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: StructuralSchema };
  readonly subresources?: { readonly status?: object; readonly scale?: object };
  readonly additionalPrinterColumns?: readonly CrdColumn[];
}

/** `apiextensions.k8s.io/v1`. */
export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced' | 'Cluster';
    readonly names: {
      readonly kind: string;
      readonly plural: string;
      readonly singular?: string;
      readonly listKind?: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly versions: readonly CrdVersion[];
  };
}

/**
 * Reads a CRD from a YAML or JSON file. One that is there already is checked alone.
 * @throws OperatorError `InvalidDefinition` if the file can't be read or holds no CRD with a schema.
 */
export function loadCrd(file: string | URL | CustomResourceDefinition): CustomResourceDefinition {
  if (typeof file !== 'string' && !(file instanceof URL))
    return checkCrd(file, 'The CRD given to defineKind');
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  if (!existsSync(path)) {
    throw invalid(
      `${path}: there is no such file; one beside the module is new URL('./crd.yaml', import.meta.url)`,
    );
  }
  let objects: readonly unknown[];
  try {
    objects = [...readDocuments(decodeText(readFileSync(path)))].flatMap(
      (value) => itemsOf(value) ?? [value],
    );
  } catch (cause) {
    const [problem = ''] = messageOf(cause).split('\n');
    throw invalid(`${path} can't be read as YAML: ${problem.replace(/:$/, '')}`, cause);
  }
  if (objects.length > 1)
    throw invalid(`${path} holds several documents; put the CRD into a file of its own`);
  const loaded = checkCrd(objects[0], path);
  for (const { schema } of loaded.spec.versions) dropNulls(schema.openAPIV3Schema);
  return loaded;
}

/** Drops the keywords of a schema that are null: the API server takes them for missing. */
function dropNulls(schema: unknown): void {
  if (!isMap(schema)) return;
  for (const [keyword, value] of Object.entries(schema))
    if (value === null) Reflect.deleteProperty(schema, keyword);
  const { items, not, additionalProperties, properties, allOf, anyOf, oneOf } = schema;
  for (const below of [[items, not, additionalProperties], properties, allOf, anyOf, oneOf])
    Object.values(Object(below) as object).forEach(dropNulls);
}

/** Returns the version of a CRD that is stored; every CRD has exactly one. */
export function storedVersion(crd: CustomResourceDefinition): CrdVersion {
  const version = crd.spec.versions.find((candidate) => candidate.storage);
  if (!version) throw invalid(`CRD ${crd.metadata.name} stores no version: set "storage: true" on one`);
  return version;
}

/** Returns the schema of a member, or of the items of a list; nothing where there is none. */
export function schemaBelow(
  schema: StructuralSchema | undefined,
  step: string | number,
): StructuralSchema | undefined {
  if (typeof step === 'number') return schema?.items;
  const { properties = {}, additionalProperties } = schema ?? {};
  if (Object.hasOwn(properties, step)) return properties[step];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** Returns how the API server serves the kind that a CRD defines. */
export function servedType(crd: CustomResourceDefinition, version: CrdVersion): ResourceType {
  const { group, names, scope } = crd.spec;
  return {
    apiVersion: `${group}/${version.name}`,
    kind: names.kind,
    plural: names.plural,
    namespaced: scope === 'Namespaced',
  };
}

type PartialSpec = Partial<CustomResourceDefinition['spec']> & {
  readonly names?: Partial<CustomResourceDefinition['spec']['names']>;
};

/**
 * Checks that a value is a CRD with a schema.
 * @param origin where it comes from, for the message
 * @throws OperatorError `InvalidDefinition`
 */
export function checkCrd(value: unknown, origin: string): CustomResourceDefinition {
  const crd = value as Partial<CustomResourceDefinition> | null | undefined;
  if (crd?.apiVersion !== 'apiextensions.k8s.io/v1' || crd.kind !== 'CustomResourceDefinition') {
    throw invalid(`${origin} holds no CustomResourceDefinition of apiextensions.k8s.io/v1`);
  }
  const spec = crd.spec as PartialSpec | undefined;
  if (!spec?.group || !spec.names?.kind || !spec.names.plural || !Array.isArray(spec.versions)) {
    throw invalid(`${origin}: spec.group, spec.names.kind, spec.names.plural and spec.versions are required`);
  }
  for (const version of spec.versions as Partial<CrdVersion>[]) {
    const schema = version.schema?.openAPIV3Schema;
    if (!schema)
      throw invalid(`${origin}: version ${version.name ?? 'without a name'} has no schema.openAPIV3Schema`);
  }
  checkShapes(crd as CustomResourceDefinition, origin);
  return crd as CustomResourceDefinition;
}

/** Without conversion, a field that one version has and another hasn't is lost by a write through the other. */
function checkShapes({ spec: { versions } }: CustomResourceDefinition, origin: string): void {
  const [first, ...others] = versions.filter(({ served }) => served);
  const shape = first && shapeOf(first.schema.openAPIV3Schema);
  const different = others.find(({ schema }) => !isDeepStrictEqual(shapeOf(schema.openAPIV3Schema), shape));
  if (!first || !different) return;
  throw invalid(
    `${origin}: the served versions ${first.name} and ${different.name} have different fields, and nothing converts ` +
      'between them, so a write through one drops what only the other has; give them the same fields, or serve one of them',
  );
}

/** Which fields there are, of what type: what decides on what the API server keeps. */
function shapeOf(given: StructuralSchema | null): unknown {
  // Another keyword than a map is refused where the schema is first used.
  const schema = given ?? {};
  const { type, properties, additionalProperties, items } = schema;
  return {
    type,
    properties:
      properties &&
      Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, shapeOf(property)])),
    additionalProperties:
      typeof additionalProperties === 'object' ? shapeOf(additionalProperties) : additionalProperties,
    items: items && shapeOf(items),
    preserved: schema['x-kubernetes-preserve-unknown-fields'],
    intOrString: schema['x-kubernetes-int-or-string'],
  };
}

function invalid(message: string, cause?: unknown): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message, cause });
}

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { decodeText, itemsOf, readDocuments } from '../values/yaml.js';
import { isMap } from '../values/json.js';

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

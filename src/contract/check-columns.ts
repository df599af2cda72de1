import type { CrdColumn, StructuralSchema } from './crd.js';
import { OperatorError } from './error.js';

const TYPES = ['string', 'integer', 'number', 'boolean', 'date'];
const ALWAYS_THERE = ['Ready', 'Reason', 'Age', 'Message'];

/**
 * A column whose path is misspelt stays empty without a word.
 * @param schema of the whole custom resource
 * @throws OperatorError `InvalidDefinition`
 */
export function checkColumns(columns: readonly CrdColumn[], schema: StructuralSchema): void {
  columns.forEach((column, index) => {
    const where = `defineCrd: columns[${index}]`;
    const given = column as Partial<Record<keyof CrdColumn, unknown>> | null;
    const { name, type, jsonPath } = given ?? {};
    if (typeof name !== 'string' || typeof jsonPath !== 'string')
      throw invalid(`${where}: write { name: 'Image', type: 'string', jsonPath: '.spec.image' }`);
    if (ALWAYS_THERE.includes(name))
      throw invalid(`${where}: the column ${name} is there by itself; leave it out, or give it another name`);
    if (columns.findIndex((other) => other.name === name) < index)
      throw invalid(`${where}: there is a column ${name} already; give it another name`);
    if (typeof type !== 'string' || !TYPES.includes(type))
      throw invalid(`${where}: a column has one of the types ${TYPES.join(', ')}; write type: 'string'`);
    if (!jsonPath.startsWith('.'))
      throw invalid(
        `${where}: a path begins with a dot; write jsonPath: '.${jsonPath.replace(/^\$\.?/, '')}'`,
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
      throw invalid(
        `${where}: ${jsonPath} leads nowhere, since ${done || 'the custom resource'} has no ${name}, only ${known}; mend the path, or add ${name} to the schema`,
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

function invalid(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidDefinition', message });
}

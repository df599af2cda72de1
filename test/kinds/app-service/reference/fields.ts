import type { StructuralSchema } from '../../../../src/contract/crd.js';

/** One field of a schema, a list or map together with what it holds. */
export interface Field {
  /** As users write it, e.g. `ports[].name`, or `resources.limits.*` for the entries of a map. */
  readonly path: string;
  readonly schema: StructuralSchema;
  /** Of what a list or map holds. @default - it is neither */
  readonly items?: StructuralSchema;
  readonly required: boolean;
  /** The field above that has the very same fields, which are listed there alone. @default - they are listed here */
  readonly like?: string;
}

/** Every field at and below one of the spec, in the order of the schema. What stands in the CRD once is listed once. */
export function fieldsOf(name: string, schema: StructuralSchema, required: boolean): Field[] {
  const fields: Field[] = [];
  const listed = new Map<object, string>();
  const visit = (start: string, schema: StructuralSchema, required: boolean): void => {
    const [path, items] = inside(start, schema);
    const { properties, required: needed } = items ?? schema;
    const like = properties && listed.get(properties);
    fields.push({ path, schema, required, ...(items && { items }), ...(like !== undefined && { like }) });
    if (!properties || like !== undefined) return;
    listed.set(properties, path);
    for (const [key, inner] of Object.entries(properties))
      visit(`${path}.${key}`, inner, needed?.includes(key) ?? false);
  };
  visit(name, schema, required);
  return fields;
}

/** The fields, by their path, that a value sets. */
export function fieldsIn(value: unknown, fields: readonly Field[]): Set<string> {
  const known = new Map(fields.map((field) => [field.path, field]));
  const used = new Set<string>();
  const visit = (value: unknown, path: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, `${path}[]`);
      return;
    }
    const entries = Object.entries(isObject(value) ? value : {});
    if (known.has(`${path}.*`)) {
      for (const [, entry] of entries) visit(entry, `${path}.*`);
      return;
    }
    if (known.has(path)) used.add(path);
    const start = known.get(path)?.like ?? path;
    for (const [key, inner] of entries) visit(inner, `${start}.${key}`);
  };
  visit(value, fields[0]!.path.replace(/\[\]$|\.\*$/, ''));
  return used;
}

function inside(start: string, schema: StructuralSchema): [path: string, items?: StructuralSchema] {
  if (schema.items) return [`${start}[]`, schema.items];
  const { additionalProperties } = schema;
  return typeof additionalProperties === 'object' ? [`${start}.*`, additionalProperties] : [start];
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

import type { StructuralSchema } from '../../contract/crd.js';

/** Where a field is in any spec: `[]` stands for the items of a list, `*` for the values of a map. */
export type Path = readonly string[];

export type Spec = Readonly<Record<string, unknown>>;

/** Every field that holds a value. */
export function leavesOf(schema: StructuralSchema, path: Path = []): Path[] {
  const { items, properties, additionalProperties } = schema;
  if (items) return leavesOf(items, [...path, '[]']);
  if (typeof additionalProperties === 'object') return leavesOf(additionalProperties, [...path, '*']);
  const inner = Object.entries(properties ?? {});
  return inner.length === 0 ? [path] : inner.flatMap(([key, child]) => leavesOf(child, [...path, key]));
}

/** Every list, by the path of its items. */
export function listsOf(leaves: readonly Path[]): Path[] {
  const paths = leaves.flatMap((path) =>
    path.flatMap((step, index) => (step === '[]' ? [path.slice(0, index + 1).join('.')] : [])),
  );
  return [...new Set(paths)].map((path) => path.split('.'));
}

/** The schema at a path. @throws where there is nothing */
export function schemaAt(schema: StructuralSchema, path: Path): StructuralSchema {
  return path.reduce(below, schema);
}

function below(schema: StructuralSchema, step: string): StructuralSchema {
  const { items, properties, additionalProperties } = schema;
  if (step === '[]' && items) return items;
  if (typeof additionalProperties === 'object') return additionalProperties;
  const found = properties?.[step];
  if (!found) throw new Error(`The schema has no ${step}`);
  return found;
}

/** All values that a spec has at a path. */
export function valuesAt(value: unknown, [step, ...rest]: Path): unknown[] {
  if (value === undefined) return [];
  if (step === undefined) return [value];
  if (step === '[]') return (value as readonly unknown[]).flatMap((item) => valuesAt(item, rest));
  const members = value as Spec;
  const inner = step === '*' ? Object.values(members) : [members[step]];
  return inner.flatMap((member) => valuesAt(member, rest));
}

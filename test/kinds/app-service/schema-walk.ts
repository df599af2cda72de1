import type { StructuralSchema } from '../../../src/contract/crd.js';

/**
 * Makes custom resources from a schema, with a value of its own in every field, and finds these values again in
 * what was rendered. A path names the items of a list by `[]`.
 */
export interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly required: boolean;
}

/** Which of its two types a field of int-or-string gets. */
export type Variant = 'number' | 'string';

const MAP_KEY = 'walk.example/key';

/** Every field of a schema that holds a value, with the value that `sample` gives it. */
export function leavesOf(root: StructuralSchema, variant: Variant): Leaf[] {
  const leaves: Leaf[] = [];
  const walk = (schema: StructuralSchema, path: readonly string[], required: boolean): void => {
    const inner = Object.entries(childrenOf(schema));
    if (inner.length === 0)
      leaves.push({ path, value: valueOf(schema, path, leaves.length, variant), required });
    for (const [key, child] of inner) {
      walk(child, [...path, key], required && (schema.required?.includes(key) ?? false));
    }
  };
  walk(root, [], true);
  return leaves;
}

/** The smallest value of a schema that holds the given leaves and is valid. */
export function sample(root: StructuralSchema, leaves: readonly Leaf[], wanted: readonly Leaf[]): unknown {
  const make = (schema: StructuralSchema, path: readonly string[]): unknown => {
    const inner = Object.entries(childrenOf(schema)).filter(
      ([key]) =>
        schema.required?.includes(key) || wanted.some((leaf) => startsWith(leaf.path, [...path, key])),
    );
    if (schema.items) return inner.map(([key, child]) => make(child, [...path, key]));
    if (schema.type === 'object') {
      return Object.fromEntries(inner.map(([key, child]) => [key, make(child, [...path, key])]));
    }
    return leaves.find((leaf) => leaf.path.join() === path.join())?.value;
  };
  return make(root, []);
}

/** Whether a leaf's value stands in the output, at a path that ends as given. */
export function arrives(leaf: Leaf, output: unknown, end: readonly string[]): boolean {
  const search = (value: unknown, path: readonly string[]): boolean => {
    if (value === leaf.value) return startsWith([...path].reverse(), [...end].reverse());
    if (Array.isArray(value)) return value.some((item) => search(item, [...path, '[]']));
    if (typeof value !== 'object' || value === null) return false;
    return Object.entries(value).some(([key, inner]) => search(inner, [...path, key]));
  };
  return search(output, []);
}

function childrenOf(schema: StructuralSchema): Readonly<Record<string, StructuralSchema>> {
  if (schema.items) return { '[]': schema.items };
  if (typeof schema.additionalProperties === 'object') return { [MAP_KEY]: schema.additionalProperties };
  return schema.properties ?? {};
}

/** @throws for a schema that isn't known here, so that no new field goes unnoticed */
function valueOf(
  schema: StructuralSchema,
  path: readonly string[],
  index: number,
  variant: Variant,
): unknown {
  const number = 20_000 + index;
  if (schema['x-kubernetes-int-or-string']) {
    if (variant === 'number') return number;
    return schema.pattern ? `${number}Mi` : `walk-${number}`;
  }
  if (schema.enum) return schema.enum.findLast((value) => value !== schema.default);
  if (schema.type === 'string') return `walk-${number}`;
  if (schema.type === 'integer') return number;
  if (schema.type === 'boolean') return true;
  throw new Error(`${path.join('.')}: the walk can't make a value for ${JSON.stringify(schema)}`);
}

function startsWith(path: readonly string[], start: readonly string[]): boolean {
  return start.every((key, index) => path[index] === key);
}

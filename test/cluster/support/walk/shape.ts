import { storedVersion } from '../../../../src/contract/crd.js';
import type { StructuralSchema } from '../../../../src/contract/crd.js';
import { appService } from '../../../../src/kinds/app-service/kind.js';
import { leavesOf } from '../../../kinds/app-service/schema-walk.js';

/** Where a field is in any spec: `[]` stands for the items of a list, `*` for the values of a map. */
export type Path = readonly string[];

export type Spec = Readonly<Record<string, unknown>>;

export const specSchema: StructuralSchema = storedVersion(appService.crd).schema.openAPIV3Schema.properties!
  .spec!;

/** Every field that holds a value. */
export const leaves: readonly Path[] = leavesOf(specSchema, 'string').map(({ path }) =>
  path.map((step) => (step === 'walk.example/key' ? '*' : step)),
);

/** Every list, by the path of its items. */
export const lists: readonly Path[] = [
  ...new Set(
    leaves.flatMap((path) =>
      path.flatMap((step, index) => (step === '[]' ? [path.slice(0, index + 1).join('.')] : [])),
    ),
  ),
].map((path) => path.split('.'));

/**
 * The schema one step below.
 * @throws where there is nothing
 */
export function below(schema: StructuralSchema, step: string): StructuralSchema {
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

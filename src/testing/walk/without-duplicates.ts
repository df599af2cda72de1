import type { StructuralSchema } from '../../contract/crd.js';
import { applyDefaults } from '../../synth/defaults.js';

/** Items of a set, and of a list with keys, are there once; of two, the later one stays. */
export function withoutDuplicates(schema: StructuralSchema, list: readonly unknown[]): unknown[] {
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'map' && kind !== 'set') return [...list];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyed = list.map((item) => {
    const whole = applyDefaults(item, schema.items) as Readonly<Record<string, unknown>>;
    return [JSON.stringify(kind === 'set' ? item : keys.map((key) => whole[key])), item] as const;
  });
  return [...new Map(keyed).values()];
}

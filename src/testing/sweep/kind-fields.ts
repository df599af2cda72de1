import { isDeepStrictEqual } from 'node:util';
import { storedVersion } from '../../contract/crd.js';
import type { StructuralSchema } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { judge } from '../../synth/custom-resource.js';
import { KnownKinds } from '../../synth/known-kinds.js';
import { applyDefaults } from '../../synth/defaults.js';
import type { Fields } from '../walk/fields.js';
import { leavesOf, listsOf, schemaAt, valuesAt } from '../walk/shape.js';
import type { Path, Spec } from '../walk/shape.js';

type Json = Readonly<Record<string, unknown>>;

const TEXTS = ['one', 'two', 'three'];

/** The spec of any kind: values come from its samples, and where the schema says enough, from that. */
export function fieldsOf(kind: Kind, samples: readonly Spec[]): Fields {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema.properties?.spec ?? {};
  const leaves = leavesOf(schema).filter((path) => path.length > 0);
  const { apiVersion, kind: kindName } = kind.type;
  const version = new KnownKinds([kind]).find({ apiVersion, kind: kindName });
  if (!('kind' in version)) throw new Error(version.message);
  const choices = (path: Path): readonly unknown[] => {
    const given = samples.flatMap((sample) => valuesAt(sample, generalized(schema, path)));
    return distinct([...given, ...fromSchema(schemaAt(schema, path))]);
  };
  return {
    ...{ schema, leaves, lists: listsOf(leaves), choices },
    keys: (path) => {
      const maps = samples.flatMap((sample) => valuesAt(sample, generalized(schema, path)));
      return [...new Set([...maps.flatMap((map) => Object.keys(map as Json)), 'one', 'two'])];
    },
    union: () => undefined,
    consistent: (path, value) =>
      Array.isArray(value) ? withoutDuplicates(schemaAt(schema, path), value) : value,
    companions: () => [],
    isBarred: (path) => !isMakeable(schemaAt(schema, path), path, choices),
    isRefused: () => false,
    problems: (spec) =>
      judge(
        version,
        version.withDefaults({
          apiVersion,
          kind: kindName,
          metadata: { name: 'swept', namespace: 'sweep' },
          spec,
        }),
      ),
  };
}

/** Keys of maps stand for all of them. */
function generalized(schema: StructuralSchema, path: Path): Path {
  let at = schema;
  return path.map((step) => {
    const isKey = typeof at.additionalProperties === 'object' && !at.properties?.[step];
    at = schemaAt(at, [step]);
    return isKey ? '*' : step;
  });
}

function distinct(values: readonly unknown[]): unknown[] {
  return values.filter(
    (value, index) => values.findIndex((other) => isDeepStrictEqual(other, value)) === index,
  );
}

/** Of texts that have to look like something, the samples know more. */
function fromSchema(schema: StructuralSchema): unknown[] {
  const { type, pattern, format, minLength, maxLength, minimum, maximum } = schema as StructuralSchema &
    Limits;
  if (schema.enum) return [...schema.enum];
  if (type === 'boolean') return [true, false];
  if (type === 'integer' || type === 'number') {
    const least = minimum ?? Math.min(0, maximum ?? 0);
    return [least, least + 1, least + 2].filter((value) => value <= (maximum ?? Infinity));
  }
  if (schema['x-kubernetes-int-or-string']) return pattern === undefined ? [1, 2] : [];
  if (type !== 'string' || pattern !== undefined || format !== undefined) return [];
  return TEXTS.filter(({ length }) => length >= (minLength ?? 0) && length <= (maxLength ?? Infinity));
}

interface Limits {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Whether there is a value for it and for whatever it can't be without. */
function isMakeable(
  schema: StructuralSchema,
  path: Path,
  choices: (path: Path) => readonly unknown[],
): boolean {
  if (schema.items) return isMakeable(schema.items, [...path, '[]'], choices);
  if (typeof schema.additionalProperties === 'object')
    return isMakeable(schema.additionalProperties, [...path, '*'], choices);
  if (!schema.properties) return choices(path).length > 0;
  return (schema.required ?? []).every((key) => {
    const property = schema.properties?.[key];
    return !property || isMakeable(property, [...path, key], choices);
  });
}

/** Items of a set, and of a list with keys, are there once; of two, the later one stays. */
function withoutDuplicates(schema: StructuralSchema, list: readonly unknown[]): unknown[] {
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'map' && kind !== 'set') return [...list];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyed = list.map((item) => {
    const whole = applyDefaults(item, schema.items) as Json;
    return [JSON.stringify(kind === 'set' ? item : keys.map((key) => whole[key])), item] as const;
  });
  return [...new Map(keyed).values()];
}

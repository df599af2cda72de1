import { isDeepStrictEqual } from 'node:util';
import { storedVersion } from '../../contract/crd.js';
import type { StructuralSchema } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { judge, KnownKinds } from '../../synth/custom-resource.js';
import { applyDefaults } from '../../synth/defaults.js';
import type { Problem } from '../../synth/problem.js';
import { choicesAt, leavesOf, listsOf, schemaAt, valuesAt } from '../walk/fields.js';
import type { Fields, Path, Spec } from '../walk/fields.js';

type Json = Readonly<Record<string, unknown>>;

const TEXTS = ['one', 'two', 'three'];

/** The spec of any kind: values come from its samples, and where the schema says enough, from that. */
export function fieldsOf(kind: Kind, samples: readonly Spec[], notWalked: readonly string[] = []): Fields {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema.properties?.spec ?? {};
  const leaves = leavesOf(schema).filter((path) => path.length > 0);
  const { apiVersion, kind: kindName } = kind.type;
  const version = new KnownKinds([kind]).find({ apiVersion, kind: kindName });
  if (!('kind' in version)) throw new Error(version.message);
  const choices = (path: Path): readonly unknown[] => {
    const at = (where: Path): unknown[] => samples.flatMap((sample) => valuesAt(sample, where));
    // Of a map, another key may hold another kind of value.
    const ofKey = at(path);
    const given = ofKey.length > 0 ? ofKey : at(generalized(schema, path));
    return distinct([...given, ...fromSchema(schemaAt(schema, path))]);
  };
  const whole = (spec: Spec): object =>
    version.withDefaults({
      apiVersion,
      kind: kindName,
      metadata: { name: 'swept', namespace: 'sweep' },
      spec,
    });
  const problems = (spec: Spec, before?: Spec): readonly Problem[] =>
    judge(version, whole(spec), before && whole(before));
  const isBarred = (path: Path): boolean =>
    notWalked.includes(path.join('.')) || !isMakeable(schemaAt(schema, path), path, choices);
  return {
    ...{ schema, leaves, lists: listsOf(leaves), choices, problems, isBarred },
    keys: (path) => {
      const maps = samples.flatMap((sample) => valuesAt(sample, generalized(schema, path)));
      const given = new Set(maps.flatMap((map) => Object.keys(map as Json)));
      return given.size > 1 ? [...given] : [...new Set([...given, 'one', 'two'])];
    },
    union: () => undefined,
    consistent: (path, value) =>
      Array.isArray(value) ? withoutDuplicates(schemaAt(schema, path), value) : value,
    companions: () => [],
    isRefused: () => false,
    isFixed: (path) => !path.some((step) => step === '[]' || step === '*') && isFixed(path),
  };

  /** Every change of it is refused, which another spec from the start wouldn't be. */
  function isFixed(path: Path): boolean {
    const changes = samples.flatMap((sample) => {
      const [old] = valuesAt(sample, path);
      if (old === undefined) return [];
      return choicesAt({ schema, choices }, path)
        .filter((choice) => !isDeepStrictEqual(choice, old))
        .map((choice) => [sample, withValue(sample, path, choice)] as const)
        .filter(([, changed]) => problems(changed).length === 0);
    });
    return changes.length > 0 && changes.every(([sample, changed]) => problems(changed, sample).length > 0);
  }
}

function withValue(spec: Spec, [step = '', ...rest]: Path, value: unknown): Spec {
  const inner = rest.length === 0 ? value : withValue(spec[step] as Spec, rest, value);
  return { ...spec, [step]: inner };
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

import type { StructuralSchema } from '../../contract/crd.js';
import type { Problem } from '../../synth/problem.js';
import type { Chance } from '../random.js';

/** Members of which an object has exactly one, or, where it may do without, at most one. */
export interface Union {
  readonly members: readonly string[];
  readonly mayBeNone?: boolean;
  /** The field that names the member. */
  readonly named?: string;
}

/** The spec of a kind, as edits by chance go through it. */
export interface Fields {
  readonly schema: StructuralSchema;
  /** Every field that holds a value, and every list by the path of its items. */
  readonly leaves: readonly Path[];
  readonly lists: readonly Path[];
  /** All values that a field may get; for what isn't a list, a map or an object. */
  choices(path: Path): readonly unknown[];
  /** The keys that a map may get. */
  keys(path: Path): readonly string[];
  union(path: Path): Union | undefined;
  /** A value whose parts go together. */
  consistent(path: Path, value: unknown): unknown;
  /** What a field can't be without. */
  companions(field: string): readonly Path[];
  /** It is never set. */
  isBarred(path: Path): boolean;
  /** It is only set where that is asked for, since what comes of it is refused. */
  isRefused(path: Path): boolean;
  /** Once it is there, it can't be changed. @default - no field is like that */
  isFixed?(path: Path): boolean;
  /** What is wrong with a spec, also as an edit of another, by paths from the custom resource on. */
  problems(spec: Spec, before?: Spec): readonly Problem[];
}

/** Whether a spec has any field that is refused. */
export function hasRefusedFields(fields: Fields, spec: Spec): boolean {
  return fields.leaves.some((path) => fields.isRefused(path) && valuesAt(spec, path).length > 0);
}

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

/** Fields that aren't required are there this often, in percent. */
const OFTEN = 35;

/** A value for the field at a path. Whatever `wanted` leads to, from there on, is in it. */
export function make(fields: Fields, chance: Chance, path: Path, wanted: Path = []): unknown {
  const schema = schemaAt(fields.schema, path);
  return fields.consistent(path, makeParts(fields, chance, schema, path, wanted));
}

function makeParts(
  fields: Fields,
  chance: Chance,
  schema: StructuralSchema,
  path: Path,
  wanted: Path,
): unknown {
  if (schema.items) return makeList(fields, chance, schema, path, wanted);
  if (typeof schema.additionalProperties === 'object') return makeMap(fields, chance, path, wanted);
  if (schema.properties) return makeObject(fields, chance, schema, path, wanted);
  return chance.one(choicesAt(fields, path));
}

/** All values that the field may have; for what isn't a list, a map or an object. */
export function choicesAt(fields: Pick<Fields, 'schema' | 'choices'>, path: Path): readonly unknown[] {
  const schema = schemaAt(fields.schema, path);
  if (schema.enum) return schema.enum;
  return schema.type === 'boolean' ? [true, false] : fields.choices(path);
}

function makeList(
  fields: Fields,
  chance: Chance,
  schema: StructuralSchema,
  path: Path,
  wanted: Path,
): unknown[] {
  const others = Array.from({ length: chance.upTo(2) }, () => make(fields, chance, [...path, '[]']));
  const needsOne = wanted.length > 0 || others.length < (schema.minItems ?? 0);
  return needsOne ? [...others, make(fields, chance, [...path, '[]'], wanted.slice(1))] : others;
}

function makeMap(fields: Fields, chance: Chance, path: Path, [key]: Path): object {
  const keys = fields.keys(path).filter(() => chance.yes(50));
  if (key !== undefined) keys.push(key === '*' ? chance.one(fields.keys(path)) : key);
  return Object.fromEntries(keys.map((one) => [one, make(fields, chance, [...path, one])]));
}

function makeObject(
  fields: Fields,
  chance: Chance,
  schema: StructuralSchema,
  path: Path,
  wanted: Path,
): object {
  const [first, ...inner] = wanted;
  const union = fields.union(path);
  const chosen = union && chooseMember(fields, chance, path, union, first);
  const isThere = (key: string): boolean => {
    const whole = [...path, key];
    if (key === first || schema.required?.includes(key)) return true;
    if (union?.members.includes(key)) return key === chosen;
    return !fields.isRefused(whole) && !fields.isBarred(whole) && chance.yes(OFTEN);
  };
  const keys = Object.keys(schema.properties ?? {}).filter(isThere);
  return Object.fromEntries(
    keys.map((key) => [key, make(fields, chance, [...path, key], key === first ? inner : [])]),
  );
}

function chooseMember(
  fields: Fields,
  chance: Chance,
  path: Path,
  { members, mayBeNone = false }: Union,
  wanted: string | undefined,
): string | undefined {
  if (wanted !== undefined && members.includes(wanted)) return wanted;
  if (mayBeNone && chance.yes(20)) return undefined;
  return chance.one(members.filter((member) => !fields.isRefused([...path, member])));
}

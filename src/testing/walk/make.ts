import type { StructuralSchema } from '../../contract/crd.js';
import type { Chance } from './chance.js';
import type { Fields, Union } from './fields.js';
import { schemaAt } from './shape.js';
import type { Path } from './shape.js';

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

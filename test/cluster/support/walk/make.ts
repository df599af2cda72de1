import type { StructuralSchema } from '../../../../src/contract/crd.js';
import { barredFields } from '../app-service-options.js';
import type { Chance } from './chance.js';
import { consistent, isRefused, unionAt } from './rules.js';
import { below, specSchema } from './shape.js';
import type { Path } from './shape.js';
import { keysFor, valuesFor } from './values.js';

/** Fields that aren't required are there this often, in percent. */
const OFTEN = 35;

/** A value for the field at a path. Whatever `wanted` leads to, from there on, is in it. */
export function make(chance: Chance, path: Path, wanted: Path = []): unknown {
  const schema = path.reduce(below, specSchema);
  return consistent(path, makeParts(chance, schema, path, wanted));
}

function makeParts(chance: Chance, schema: StructuralSchema, path: Path, wanted: Path): unknown {
  if (schema.items) return makeList(chance, schema, path, wanted);
  if (typeof schema.additionalProperties === 'object') return makeMap(chance, path, wanted);
  if (schema.properties) return makeObject(chance, schema, path, wanted);
  return chance.one(choicesAt(path));
}

/** All values that the field may have; for what isn't a list, a map or an object. */
export function choicesAt(path: Path): readonly unknown[] {
  const schema = path.reduce(below, specSchema);
  if (schema.enum) return schema.enum;
  return schema.type === 'boolean' ? [true, false] : valuesFor(path);
}

function makeList(chance: Chance, schema: StructuralSchema, path: Path, wanted: Path): unknown[] {
  const others = Array.from({ length: chance.upTo(2) }, () => make(chance, [...path, '[]']));
  const needsOne = wanted.length > 0 || others.length < ((schema.minItems as number | undefined) ?? 0);
  return needsOne ? [...others, make(chance, [...path, '[]'], wanted.slice(1))] : others;
}

function makeMap(chance: Chance, path: Path, [key]: Path): object {
  const keys = keysFor(path).filter(() => chance.yes(50));
  if (key !== undefined) keys.push(key === '*' ? chance.one(keysFor(path)) : key);
  return Object.fromEntries(keys.map((one) => [one, make(chance, [...path, one])]));
}

function makeObject(chance: Chance, schema: StructuralSchema, path: Path, wanted: Path): object {
  const [first, ...inner] = wanted;
  const union = unionAt(path);
  const chosen = union && chooseMember(chance, path, union.members, first, union.mayBeNone);
  const isThere = (key: string): boolean => {
    const whole = [...path, key];
    if (key === first || schema.required?.includes(key)) return true;
    if (union?.members.includes(key)) return key === chosen;
    return !isRefused(whole) && !barredFields.includes(whole.join('.')) && chance.yes(OFTEN);
  };
  const keys = Object.keys(schema.properties!).filter(isThere);
  return Object.fromEntries(
    keys.map((key) => [key, make(chance, [...path, key], key === first ? inner : [])]),
  );
}

function chooseMember(
  chance: Chance,
  path: Path,
  members: readonly string[],
  wanted: string | undefined,
  mayBeNone = false,
): string | undefined {
  if (wanted !== undefined && members.includes(wanted)) return wanted;
  if (mayBeNone && chance.yes(20)) return undefined;
  return chance.one(members.filter((member) => !isRefused([...path, member])));
}

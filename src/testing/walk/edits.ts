import { isDeepStrictEqual } from 'node:util';
import type { Chance } from './chance.js';
import type { Fields } from './fields.js';
import { choicesAt, make } from './make.js';
import { schemaAt, valuesAt } from './shape.js';
import type { Path } from './shape.js';

type Json = Readonly<Record<string, unknown>>;

/** Puts a value where a path leads to, somewhere; what is missing around it is made, and what is there stays. */
export function put(fields: Fields, chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (step === undefined) return another(fields, chance, value, path);
  if (value === undefined) return make(fields, chance, path, rest);
  if (step === '[]')
    return fields.consistent(path, putItem(fields, chance, value as readonly unknown[], inner, path));
  const union = fields.union(path);
  const isOtherMember = union?.members.includes(step) && !Object.hasOwn(value as Json, step);
  if (isOtherMember || step === union?.named) return make(fields, chance, path, rest);
  const key = step === '*' ? chance.one(fields.keys(path)) : step;
  const member = put(fields, chance, (value as Json)[key], inner, [...path, key]);
  return fields.consistent(path, { ...(value as Json), [key]: member });
}

function putItem(
  fields: Fields,
  chance: Chance,
  list: readonly unknown[],
  inner: Path,
  path: Path,
): unknown[] {
  const place = [...path, '[]'];
  if (list.length === 0 || chance.yes(40)) {
    const item = make(fields, chance, place, inner);
    const at = chance.upTo(list.length);
    return [...list.slice(0, at), item, ...list.slice(at)];
  }
  const chosen = chance.upTo(list.length - 1);
  return list.with(chosen, put(fields, chance, list[chosen], inner, place));
}

/** Gives one of the values at a path another value. */
export function change(fields: Fields, chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (step === undefined) return another(fields, chance, value, path);
  if (fields.union(path)?.named === step) return make(fields, chance, path);
  if (step === '[]') {
    const list = value as readonly unknown[];
    const index = chance.one(list.flatMap((item, at) => (valuesAt(item, inner).length > 0 ? [at] : [])));
    return fields.consistent(
      path,
      list.with(index, change(fields, chance, list[index], inner, [...path, '[]'])),
    );
  }
  const key = step === '*' ? chance.one(Object.keys(value as Json)) : step;
  const member = change(fields, chance, (value as Json)[key], inner, [...path, key]);
  return fields.consistent(path, { ...(value as Json), [key]: member });
}

function another(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  const others = choicesAt(fields, path).filter((choice) => !isDeepStrictEqual(choice, value));
  return others.length === 0 ? value : chance.one(others);
}

/** Takes away every value at a path, and what can't be without it. */
export function remove(fields: Fields, value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (value === undefined || step === undefined) return undefined;
  if (step === '[]') return removeFromItems(fields, value as readonly unknown[], inner, path);
  const members = value as Json;
  const keys = step === '*' ? Object.keys(members) : [step];
  const left = Object.fromEntries(
    Object.entries(members).flatMap(([key, member]) => {
      const stays = keys.includes(key) ? remove(fields, member, inner, [...path, key]) : member;
      return stays === undefined ? [] : [[key, stays]];
    }),
  );
  return isWhole(fields, path, left) ? fields.consistent(path, left) : undefined;
}

function removeFromItems(
  fields: Fields,
  list: readonly unknown[],
  inner: Path,
  path: Path,
): unknown[] | undefined {
  const left = list.flatMap((item) => {
    const stays = remove(fields, item, inner, [...path, '[]']);
    return stays === undefined ? [] : [stays];
  });
  return left.length === 0 ? undefined : left;
}

function isWhole(fields: Fields, path: Path, value: Json): boolean {
  const { required = [] } = schemaAt(fields.schema, path);
  const union = fields.union(path);
  const hasMember = union?.members.some((member) => Object.hasOwn(value, member));
  return required.every((key) => Object.hasOwn(value, key)) && (!union || hasMember || !!union.mayBeNone);
}

/** Adds an item to one of the lists at a path of items, beside others. */
export function addItem(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  return inList(fields, chance, value, path, (list, place) => {
    const at = chance.upTo(list.length);
    return [...list.slice(0, at), make(fields, chance, [...place, '[]']), ...list.slice(at)];
  });
}

/** Takes an item out of one of the lists at a path of items, so that others stay. */
export function dropItem(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  return inList(fields, chance, value, path, (list) => list.toSpliced(chance.upTo(list.length - 1), 1));
}

/** Gives one of the lists at a path of items another order. */
export function reorder(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  return inList(fields, chance, value, path, (list) => {
    const at = chance.upTo(list.length - 1);
    return [...list.slice(at), ...list.slice(0, at).reverse()];
  });
}

type ListEdit = (list: readonly unknown[], path: Path) => unknown[];

/** The longest list is edited, so that what is taken out leaves others. */
function inList(
  fields: Fields,
  chance: Chance,
  value: unknown,
  rest: Path,
  edit: ListEdit,
  path: Path = [],
): unknown {
  const [step, ...inner] = rest;
  if (step === '[]' && inner.length === 0)
    return fields.consistent(path, edit(value as readonly unknown[], path));
  if (step === '[]') {
    const list = value as readonly unknown[];
    const size = (item: unknown): number => valuesAt(item, inner).length;
    const most = Math.max(...list.map(size));
    const index = list.findIndex((item) => size(item) === most);
    return fields.consistent(
      path,
      list.with(index, inList(fields, chance, list[index], inner, edit, [...path, '[]'])),
    );
  }
  if (step === undefined) return value;
  const member = inList(fields, chance, (value as Json)[step], inner, edit, [...path, step]);
  return { ...(value as Json), [step]: member };
}

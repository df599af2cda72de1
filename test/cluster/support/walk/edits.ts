import { isDeepStrictEqual } from 'node:util';
import type { Chance } from './chance.js';
import { choicesAt, make } from './make.js';
import { consistent, unionAt } from './rules.js';
import { below, specSchema, valuesAt } from './shape.js';
import type { Path } from './shape.js';
import { keysFor } from './values.js';

type Json = Readonly<Record<string, unknown>>;

/** Puts a value where a path leads to, somewhere; what is missing around it is made, and what is there stays. */
export function put(chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (step === undefined) return another(chance, value, path);
  if (value === undefined) return make(chance, path, rest);
  if (step === '[]') return consistent(path, putItem(chance, value as readonly unknown[], inner, path));
  const union = unionAt(path);
  const isOtherMember = union?.members.includes(step) && !Object.hasOwn(value as Json, step);
  if (isOtherMember || step === union?.named) return make(chance, path, rest);
  const key = step === '*' ? chance.one(keysFor(path)) : step;
  const member = put(chance, (value as Json)[key], inner, [...path, key]);
  return consistent(path, { ...(value as Json), [key]: member });
}

function putItem(chance: Chance, list: readonly unknown[], inner: Path, path: Path): unknown[] {
  const place = [...path, '[]'];
  if (list.length === 0 || chance.yes(40)) {
    const item = make(chance, place, inner);
    const at = chance.upTo(list.length);
    return [...list.slice(0, at), item, ...list.slice(at)];
  }
  const chosen = chance.upTo(list.length - 1);
  return list.with(chosen, put(chance, list[chosen], inner, place));
}

/** Gives one of the values at a path another value. */
export function change(chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (step === undefined) return another(chance, value, path);
  if (unionAt(path)?.named === step) return make(chance, path);
  if (step === '[]') {
    const list = value as readonly unknown[];
    const index = chance.one(list.flatMap((item, at) => (valuesAt(item, inner).length > 0 ? [at] : [])));
    return consistent(path, list.with(index, change(chance, list[index], inner, [...path, '[]'])));
  }
  const key = step === '*' ? chance.one(Object.keys(value as Json)) : step;
  const member = change(chance, (value as Json)[key], inner, [...path, key]);
  return consistent(path, { ...(value as Json), [key]: member });
}

function another(chance: Chance, value: unknown, path: Path): unknown {
  const others = choicesAt(path).filter((choice) => !isDeepStrictEqual(choice, value));
  return others.length === 0 ? value : chance.one(others);
}

/** Takes away every value at a path, and what can't be without it. */
export function remove(value: unknown, rest: Path, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (value === undefined || step === undefined) return undefined;
  if (step === '[]') return removeFromItems(value as readonly unknown[], inner, path);
  const members = value as Json;
  const keys = step === '*' ? Object.keys(members) : [step];
  const left = Object.fromEntries(
    Object.entries(members).flatMap(([key, member]) => {
      const stays = keys.includes(key) ? remove(member, inner, [...path, key]) : member;
      return stays === undefined ? [] : [[key, stays]];
    }),
  );
  return isWhole(path, left) ? consistent(path, left) : undefined;
}

function removeFromItems(list: readonly unknown[], inner: Path, path: Path): unknown[] | undefined {
  const left = list.flatMap((item) => {
    const stays = remove(item, inner, [...path, '[]']);
    return stays === undefined ? [] : [stays];
  });
  return left.length === 0 ? undefined : left;
}

function isWhole(path: Path, value: Json): boolean {
  const { required = [] } = path.reduce(below, specSchema);
  const union = unionAt(path);
  const hasMember = union?.members.some((member) => Object.hasOwn(value, member));
  return required.every((key) => Object.hasOwn(value, key)) && (!union || hasMember || !!union.mayBeNone);
}

/** Adds an item to one of the lists at a path of items, beside others. */
export function addItem(chance: Chance, value: unknown, path: Path): unknown {
  return inList(chance, value, path, (list, place) => {
    const at = chance.upTo(list.length);
    return [...list.slice(0, at), make(chance, [...place, '[]']), ...list.slice(at)];
  });
}

/** Takes an item out of one of the lists at a path of items, so that others stay. */
export function dropItem(chance: Chance, value: unknown, path: Path): unknown {
  return inList(chance, value, path, (list) => list.toSpliced(chance.upTo(list.length - 1), 1));
}

/** Gives one of the lists at a path of items another order. */
export function reorder(chance: Chance, value: unknown, path: Path): unknown {
  return inList(chance, value, path, (list) => {
    const at = chance.upTo(list.length - 1);
    return [...list.slice(at), ...list.slice(0, at).reverse()];
  });
}

type ListEdit = (list: readonly unknown[], path: Path) => unknown[];

/** The longest list is edited, so that what is taken out leaves others. */
function inList(chance: Chance, value: unknown, rest: Path, edit: ListEdit, path: Path = []): unknown {
  const [step, ...inner] = rest;
  if (step === '[]' && inner.length === 0) return consistent(path, edit(value as readonly unknown[], path));
  if (step === '[]') {
    const list = value as readonly unknown[];
    const size = (item: unknown): number => valuesAt(item, inner).length;
    const most = Math.max(...list.map(size));
    const index = list.findIndex((item) => size(item) === most);
    return consistent(path, list.with(index, inList(chance, list[index], inner, edit, [...path, '[]'])));
  }
  const member = inList(chance, (value as Json)[step!], inner, edit, [...path, step!]);
  return { ...(value as Json), [step!]: member };
}

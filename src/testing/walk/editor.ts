import { isDeepStrictEqual } from 'node:util';
import type { Chance } from '../random.js';
import { make, valuesAt, choicesAt, schemaAt } from './fields.js';
import type { Fields, Path, Spec } from './fields.js';
import { isPossible, isReached } from './goals.js';
import type { Goal } from './goals.js';

/** Edits of whole specs, which stay valid. */
export class Editor {
  constructor(
    private readonly fields: Fields,
    private readonly chance: Chance,
    private readonly goals: readonly Goal[],
  ) {}

  /**
   * The spec with the goal reached, and with some others at random; without any to choose from, with nothing else.
   * Nothing, where that didn't come about.
   */
  edited(before: Spec, goal: Goal, others: readonly Goal[] | undefined): Spec | undefined {
    const edited = this.withCompanions(this.edit(before, goal, others), goal);
    const after = edited && this.mended(edited, before, goal.path[0]);
    return after && isReached(goal, before, after) ? after : undefined;
  }

  private edit(before: Spec, goal: Goal, open: readonly Goal[] | undefined): Spec | undefined {
    const { chance } = this;
    if (!open) return this.act(before, goal);
    const start = chance.yes(5) ? this.clearedOrNew(before) : before;
    let spec = this.act(isPossible(goal, start) ? start : before, goal);
    for (let more = chance.upTo(5); spec && more > 0; more--) {
      const other = this.randomEdit(spec, chance.yes(70) ? open : this.goals);
      if (other && isReached(goal, before, other)) spec = other;
    }
    return spec;
  }

  /** Nothing, where nothing whole would be left. */
  private act(spec: Spec, { action, path }: Goal): Spec | undefined {
    const { fields, chance } = this;
    switch (action) {
      case 'set':
        return put(fields, chance, spec, path) as Spec;
      case 'change':
        return change(fields, chance, spec, path) as Spec;
      case 'remove':
        return remove(fields, spec, path) as Spec | undefined;
      case 'add an item':
        return addItem(fields, chance, spec, path) as Spec;
      case 'drop an item':
        return dropItem(fields, chance, spec, path) as Spec;
    }
  }

  /** Of what the API server takes. */
  private randomEdit(spec: Spec, among: readonly Goal[]): Spec | undefined {
    const { fields, chance } = this;
    const possible = among.filter((goal) => isPossible(goal, spec) && !fields.isRefused(goal.path));
    if (possible.length === 0 || chance.yes(10)) return this.reordered(spec);
    return this.act(spec, chance.one(possible));
  }

  private reordered(spec: Spec): Spec {
    const { fields, chance } = this;
    const long = fields.lists.filter((path) => valuesAt(spec, path).length > 1);
    return long.length === 0 ? spec : (reorder(fields, chance, spec, chance.one(long)) as Spec);
  }

  /** Nothing but what is required, or half of the fields anew. */
  private clearedOrNew(spec: Spec): Spec {
    const { fields, chance } = this;
    const { required = [], properties = {} } = fields.schema;
    const least = Object.fromEntries(required.map((field) => [field, spec[field]]));
    if (chance.yes(50)) return least;
    const some = Object.keys(properties).filter((field) => !fields.isBarred([field]) && chance.yes(50));
    return { ...least, ...Object.fromEntries(some.map((field) => [field, make(fields, chance, [field])])) };
  }

  private withCompanions(spec: Spec | undefined, { path: [field] }: Goal): Spec | undefined {
    const { fields, chance } = this;
    if (!spec || field === undefined || chance.yes(30)) return spec;
    const missing = fields.companions(field).filter((path) => valuesAt(spec, path).length === 0);
    return missing.reduce((whole: Spec, path: Path) => put(fields, chance, whole, path) as Spec, spec);
  }

  /** Without the fields that can't be beside the others; nothing, where that is the one that counts. */
  private mended(spec: Spec, before: Spec, kept: string | undefined): Spec | undefined {
    const { required = [] } = this.fields.schema;
    let left = spec;
    for (
      let problems = this.fields.problems(left, before);
      problems.length > 0;
      problems = this.fields.problems(left, before)
    ) {
      const wrong = problems.map(({ path }) => String(path[1]));
      if (wrong.some((field) => field === kept || required.includes(field))) return undefined;
      const others = Object.entries(left).filter(([field]) => !wrong.includes(field));
      // A rule on the whole spec names none of its fields.
      if (others.length === Object.keys(left).length) return undefined;
      left = Object.fromEntries(others);
    }
    return left;
  }
}

type Json = Readonly<Record<string, unknown>>;

/** Puts a value where a path leads to, somewhere; what is missing around it is made, and what is there stays. */
function put(fields: Fields, chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
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
function change(fields: Fields, chance: Chance, value: unknown, rest: Path, path: Path = []): unknown {
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
function remove(fields: Fields, value: unknown, rest: Path, path: Path = []): unknown {
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
function addItem(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  return inList(fields, chance, value, path, (list, place) => {
    const at = chance.upTo(list.length);
    return [...list.slice(0, at), make(fields, chance, [...place, '[]']), ...list.slice(at)];
  });
}

/** Takes an item out of one of the lists at a path of items, so that others stay. */
function dropItem(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
  return inList(fields, chance, value, path, (list) => list.toSpliced(chance.upTo(list.length - 1), 1));
}

/** Gives one of the lists at a path of items another order. */
function reorder(fields: Fields, chance: Chance, value: unknown, path: Path): unknown {
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

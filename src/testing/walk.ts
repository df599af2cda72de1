import { isDeepStrictEqual } from 'node:util';
import { storedVersion } from '../contract/crd.js';
import type { StructuralSchema } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import { judge, KnownKinds } from '../synth/custom-resource.js';
import { applyDefaults } from '../synth/defaults.js';
import type { Problem } from '../synth/problem.js';

export type Spec = Readonly<Record<string, unknown>>;

/** Specs that one custom resource has, one after the other. */
export type Walk = readonly Spec[];

/** Path of a field in any spec: `[]` stands for the items of a list, `*` for the values of a map. */
export type Path = readonly string[];

/** Source of random choices. */
export interface Chance {
  /** @throws where there is nothing to choose from */
  one<T>(choices: readonly T[]): T;
  /** Returns an integer from 0 to `most`, both included. */
  upTo(most: number): number;
  /** Returns true in so many cases of a hundred. */
  yes(percent: number): boolean;
}

/** Pseudo-random numbers that a seed repeats. @see https://prng.di.unimi.it/splitmix64.c */
export class Random implements Chance {
  private state: bigint;

  constructor(seed: number) {
    this.state = BigInt(seed);
  }

  /** Returns an integer from 0 up to, and without, the limit. */
  below(limit: number): number {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let mixed = this.state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return Math.floor((Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53) * limit);
  }

  upTo(most: number): number {
    return this.below(most + 1);
  }

  yes(percent: number): boolean {
    return this.below(100) < percent;
  }

  one<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error('There is nothing to choose from');
    return choices[this.below(choices.length)] as T;
  }
}

/** Members of which an object has exactly one. */
export interface Union {
  readonly members: readonly string[];
  /** Whether none of them is valid too. @default false */
  readonly mayBeNone?: boolean;
  /** Field that names the member. @default - none */
  readonly named?: string;
}

/** Fields of a spec and the values that a walk may give them. */
export interface Fields {
  readonly schema: StructuralSchema;
  /** Every field that holds a value. */
  readonly leaves: readonly Path[];
  /** Values for a field that is neither a list nor a map nor an object. */
  choices(path: Path): readonly unknown[];
  /** Keys for a map. */
  keys(path: Path): readonly string[];
  /** Problems of a spec, also as an update of another one; their paths begin at the custom resource. */
  problems(spec: Spec, before?: Spec): readonly Problem[];
  /** Returns the value with its parts made to fit each other. */
  consistent(path: Path, value: unknown): unknown;
  /** Reports whether a field is never set. */
  isBarred(path: Path): boolean;
  /** Reports whether a field can't be changed once it is set. @default - none is like that */
  isFixed?(path: Path): boolean;
  /** Reports whether the API server refuses a field: it is set only where that is the goal. @default - none */
  isRefused?(path: Path): boolean;
  /** @default - there is none */
  union?(path: Path): Union | undefined;
  /** Paths that a top-level field needs. @default - none */
  companions?(field: string): readonly Path[];
}

type Json = Readonly<Record<string, unknown>>;

/** Returns every field of a schema that holds a value. */
export function leavesOf(schema: StructuralSchema, path: Path = []): Path[] {
  const { items, properties = {}, additionalProperties } = schema;
  if (items) return leavesOf(items, [...path, '[]']);
  if (typeof additionalProperties === 'object') return leavesOf(additionalProperties, [...path, '*']);
  const inner = Object.entries(properties);
  return inner.length === 0 ? [path] : inner.flatMap(([key, child]) => leavesOf(child, [...path, key]));
}

/** Returns a path and all that it lies in, the path last. */
function pathsTo(path: Path): Path[] {
  return path.map((_, end) => path.slice(0, end + 1));
}

/** Returns every list, by the path of its items. */
function listsOf(leaves: readonly Path[]): Path[] {
  const all = leaves.flatMap(pathsTo).filter((path) => path.at(-1) === '[]');
  return [...new Map(all.map((path) => [path.join('.'), path])).values()];
}

/** @throws where the schema has nothing at the path */
export function schemaAt(schema: StructuralSchema, path: Path): StructuralSchema {
  return path.reduce((at, step) => {
    const below =
      step === '[]' && at.items
        ? at.items
        : typeof at.additionalProperties === 'object'
          ? at.additionalProperties
          : at.properties?.[step];
    if (!below) throw new Error(`The schema has no ${step}`);
    return below;
  }, schema);
}

/** Returns all values that a spec has at a path. */
export function valuesAt(value: unknown, [step, ...rest]: Path): unknown[] {
  if (value === undefined) return [];
  if (step === undefined) return [value];
  if (step === '[]') return (value as readonly unknown[]).flatMap((item) => valuesAt(item, rest));
  const inner = step === '*' ? Object.values(value as Json) : [(value as Json)[step]];
  return inner.flatMap((member) => valuesAt(member, rest));
}

function choicesAt({ schema, choices }: Pick<Fields, 'schema' | 'choices'>, path: Path): readonly unknown[] {
  const { type, enum: values } = schemaAt(schema, path);
  return values ?? (type === 'boolean' ? [true, false] : choices(path));
}

interface Limits {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Reads the fields of a kind: values come from its samples, and from the schema where it says enough. */
export function fieldsOf(kind: Kind, samples: readonly Spec[], notWalked: readonly string[] = []): Fields {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema.properties?.spec ?? {};
  const { apiVersion, kind: kindName } = kind.type;
  const version = new KnownKinds([kind]).find({ apiVersion, kind: kindName });
  if (!('kind' in version)) throw new Error(version.message);
  const metadata = { name: 'swept', namespace: 'sweep' };
  const whole = (spec: Spec): object => version.withDefaults({ apiVersion, kind: kindName, metadata, spec });
  const given = (path: Path): unknown[] => samples.flatMap((sample) => valuesAt(sample, path));
  const choices = (path: Path): readonly unknown[] => {
    // Another key of a map may hold another kind of value.
    const ofKey = given(path);
    const sampled = ofKey.length > 0 ? ofKey : given(generalized(schema, path));
    return distinct([...sampled, ...fromSchema(schemaAt(schema, path))]);
  };
  const problems = (spec: Spec, before?: Spec): readonly Problem[] =>
    judge(version, whole(spec), before && whole(before));
  return {
    ...{ schema, choices, problems },
    leaves: leavesOf(schema).filter((path) => path.length > 0),
    isBarred: (path) =>
      notWalked.includes(path.join('.')) || !isMakeable(schemaAt(schema, path), path, choices),
    keys: (path) => {
      const keys = new Set(given(generalized(schema, path)).flatMap((map) => Object.keys(map as Json)));
      return keys.size > 1 ? [...keys] : [...new Set([...keys, 'one', 'two'])];
    },
    consistent: (path, value) =>
      Array.isArray(value) ? withoutDuplicates(schemaAt(schema, path), value) : value,
    // Every change of it is refused, although the same spec is valid from the start.
    isFixed: (path) => {
      if (path.some((step) => step === '[]' || step === '*')) return false;
      const changes = samples.flatMap((sample) => {
        const [old] = valuesAt(sample, path);
        if (old === undefined) return [];
        return choicesAt({ schema, choices }, path)
          .filter((choice) => !isDeepStrictEqual(choice, old))
          .map((choice) => [sample, withValue(sample, path, choice)] as const)
          .filter(([, changed]) => problems(changed).length === 0);
      });
      return changes.length > 0 && changes.every(([before, after]) => problems(after, before).length > 0);
    },
  };
}

function withValue(spec: Spec, [step = '', ...rest]: Path, value: unknown): Spec {
  return { ...spec, [step]: rest.length === 0 ? value : withValue(spec[step] as Spec, rest, value) };
}

/** Returns the path with `*` in place of keys of maps. */
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

/** Returns values that the schema allows. A text with a pattern or a format is known from samples alone. */
function fromSchema(schema: StructuralSchema & Limits): unknown[] {
  const { type, pattern, format, minLength = 0, maxLength = Infinity, minimum, maximum } = schema;
  if (schema.enum) return [...schema.enum];
  if (type === 'boolean') return [true, false];
  if (type === 'integer' || type === 'number') {
    const least = minimum ?? Math.min(0, maximum ?? 0);
    return [least, least + 1, least + 2].filter((value) => value <= (maximum ?? Infinity));
  }
  if (schema['x-kubernetes-int-or-string']) return pattern === undefined ? [1, 2] : [];
  if (type !== 'string' || pattern !== undefined || format !== undefined) return [];
  return ['one', 'two', 'three'].filter(({ length }) => length >= minLength && length <= maxLength);
}

/** Reports whether there is a value for a field and for everything that it requires. */
function isMakeable(schema: StructuralSchema, path: Path, choices: Fields['choices']): boolean {
  const { items, additionalProperties, properties, required = [] } = schema;
  if (items) return isMakeable(items, [...path, '[]'], choices);
  if (typeof additionalProperties === 'object')
    return isMakeable(additionalProperties, [...path, '*'], choices);
  if (!properties) return choices(path).length > 0;
  return required.every((key) => {
    const property = properties[key];
    return !property || isMakeable(property, [...path, key], choices);
  });
}

/** Returns a set, or a list with keys, in which each item is once: of duplicates, the last. */
export function withoutDuplicates(schema: StructuralSchema, list: readonly unknown[]): unknown[] {
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'map' && kind !== 'set') return [...list];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyed = list.map((item) => {
    const whole = applyDefaults(item, schema.items) as Json;
    return [JSON.stringify(kind === 'set' ? item : keys.map((key) => whole[key])), item] as const;
  });
  return [...new Map(keyed).values()];
}

/** One thing that an edit can do to a field, or to a list that has other items. */
export interface Goal {
  readonly action: 'set' | 'change' | 'remove' | 'add an item' | 'drop an item';
  readonly path: Path;
}

export function nameOf({ action, path }: Goal): string {
  return `${action}: ${path.join('.')}`;
}

/** Returns everything that edits can do to a spec. */
export function goalsOf(fields: Fields): readonly Goal[] {
  const isOpen = (path: Path): boolean => !pathsTo(path).some((one) => fields.isBarred(one));
  const ofFields = fields.leaves.filter(isOpen).flatMap((path): Goal[] => {
    const union = fields.union?.(path.slice(0, -1));
    const namesMember = union?.named === path.at(-1) && (union?.members.length ?? 0) > 1;
    const mayChange = path.at(-1) === '*' || namesMember || choicesAt(fields, path).length > 1;
    const isAlwaysThere = pathsTo(path).every((one) => isRequired(fields, one));
    return [
      ...(isAlwaysThere ? [] : (['set', 'remove'] as const).map((action) => ({ action, path }))),
      ...(mayChange && !fields.isFixed?.(path) ? [{ action: 'change', path } as const] : []),
    ];
  });
  const ofLists = listsOf(fields.leaves)
    .filter((path) => !fields.isRefused?.(path) && isOpen(path))
    .flatMap((path) => (['add an item', 'drop an item'] as const).map((action) => ({ action, path })));
  return [...ofFields, ...ofLists];
}

/** A list has one item at least. */
export function isRequired({ schema }: Pick<Fields, 'schema'>, path: Path): boolean {
  const field = path.at(-1);
  if (field === undefined || field === '[]') return true;
  return schemaAt(schema, path.slice(0, -1)).required?.includes(field) ?? false;
}

function isPossible({ action, path }: Goal, spec: Spec): boolean {
  const values = valuesAt(spec, path).length;
  if (action === 'set') return values === 0;
  return action === 'drop an item' ? values > 1 : values > 0;
}

/** Reports whether an edit has done it. */
export function isReached(goal: Goal, before: Spec, after: Spec): boolean {
  if (!isPossible(goal, before)) return false;
  const [old, now] = [valuesAt(before, goal.path), valuesAt(after, goal.path)];
  switch (goal.action) {
    case 'set':
      return now.length > 0;
    case 'remove':
      return now.length === 0;
    case 'change':
      return now.length > 0 && !isDeepStrictEqual(old, now);
    case 'add an item':
      return now.length > old.length;
    case 'drop an item':
      return now.length > 0 && now.length < old.length;
  }
}

/** Share of optional fields that a new object has, in percent. */
const OPTIONAL_PERCENT = 35;

/** Edits of values at paths. */
class Editor {
  readonly goals: readonly Goal[];
  private readonly lists: readonly Path[];

  constructor(
    readonly fields: Fields,
    readonly chance: Chance,
  ) {
    this.goals = goalsOf(fields);
    this.lists = listsOf(fields.leaves);
  }

  /** Returns the spec with the goal reached, beside random edits for other goals, or undefined where that failed. */
  edited(before: Spec, goal: Goal, others: readonly Goal[] | undefined): Spec | undefined {
    const { fields, chance } = this;
    const start = others && chance.yes(5) ? this.clearedOrNew(before) : before;
    let spec = this.act(isPossible(goal, start) ? start : before, goal);
    for (let more = others ? chance.upTo(5) : 0; spec && more > 0; more--) {
      const other = this.randomEdit(spec, others && chance.yes(70) ? others : this.goals);
      if (other && isReached(goal, before, other)) spec = other;
    }
    const [field = ''] = goal.path;
    if (spec && !chance.yes(30))
      for (const path of fields.companions?.(field) ?? [])
        if (valuesAt(spec, path).length === 0) spec = this.set(spec, path) as Spec;
    const after = spec && this.withoutProblems(spec, before, field);
    return after && isReached(goal, before, after) ? after : undefined;
  }

  /** Returns undefined where nothing valid would be left. */
  private act(spec: Spec, { action, path }: Goal): Spec | undefined {
    const { chance } = this;
    const list = path.slice(0, -1);
    switch (action) {
      case 'set':
        return this.set(spec, path) as Spec;
      case 'change':
        return this.change(spec, path, (value, at) => this.another(value, at)) as Spec;
      case 'remove':
        return this.remove(spec, path) as Spec | undefined;
      case 'add an item':
        return this.changeList(spec, list, (items, at) => {
          const item = this.make([...at, '[]']);
          return items.toSpliced(chance.upTo(items.length), 0, item);
        });
      case 'drop an item':
        return this.changeList(spec, list, (items) =>
          items.toSpliced(chance.upTo(Math.max(0, items.length - 1)), 1),
        );
    }
  }

  private randomEdit(spec: Spec, among: readonly Goal[]): Spec | undefined {
    const { fields, chance } = this;
    const possible = among.filter((goal) => isPossible(goal, spec) && !fields.isRefused?.(goal.path));
    if (possible.length > 0 && !chance.yes(10)) return this.act(spec, chance.one(possible));
    const long = this.lists.filter((path) => valuesAt(spec, path).length > 1);
    if (long.length === 0) return spec;
    return this.changeList(spec, chance.one(long).slice(0, -1), (list) => list.toReversed());
  }

  /** Returns a spec of nothing but what is required, or with half of the fields made anew. */
  private clearedOrNew(spec: Spec): Spec {
    const { fields, chance } = this;
    const { required = [], properties = {} } = fields.schema;
    const least = Object.fromEntries(required.map((field) => [field, spec[field]]));
    if (chance.yes(50)) return least;
    const some = Object.keys(properties).filter((field) => !fields.isBarred([field]) && chance.yes(50));
    return { ...least, ...Object.fromEntries(some.map((field) => [field, this.make([field])])) };
  }

  /** Drops the fields that don't go with the others, or returns undefined where that is the one to keep. */
  private withoutProblems(spec: Spec, before: Spec, kept: string): Spec | undefined {
    const needed = [kept, ...(this.fields.schema.required ?? [])];
    for (let left = spec; ;) {
      const wrong = this.fields.problems(left, before).map(({ path }) => String(path[1]));
      if (wrong.length === 0) return left;
      const others = Object.entries(left).filter(([field]) => !wrong.includes(field));
      // A rule on the whole spec names none of its fields.
      if (wrong.some((field) => needed.includes(field)) || others.length === Object.keys(left).length)
        return undefined;
      left = Object.fromEntries(others);
    }
  }

  /** Puts a value at one place of a path. What is missing on the way is made. */
  private set(value: unknown, rest: Path, path: Path = []): unknown {
    const { fields, chance } = this;
    const [step, ...inner] = rest;
    if (step === undefined) return this.another(value, path);
    const union = fields.union?.(path);
    const isOther = union?.members.includes(step) && !Object.hasOwn(value ?? {}, step);
    if (value === undefined || isOther || step === union?.named) return this.make(path, rest);
    if (step === '[]') {
      const list = value as readonly unknown[];
      const isNew = list.length === 0 || chance.yes(40);
      const at = chance.upTo(isNew ? list.length : list.length - 1);
      const place = [...path, '[]'];
      const item = isNew ? this.make(place, inner) : this.set(list[at], inner, place);
      return fields.consistent(path, list.toSpliced(at, isNew ? 0 : 1, item));
    }
    const key = step === '*' ? chance.one(fields.keys(path)) : step;
    const member = this.set((value as Json)[key], inner, [...path, key]);
    return fields.consistent(path, { ...(value as Json), [key]: member });
  }

  /** Replaces one of the values at a path. */
  private change(
    value: unknown,
    [step, ...inner]: Path,
    act: (value: unknown, path: Path) => unknown,
    path: Path = [],
  ): unknown {
    const { fields, chance } = this;
    if (step === undefined) return act(value, path);
    if (fields.union?.(path)?.named === step) return this.make(path);
    const isFit = (child: unknown): boolean => valuesAt(child, inner).length > 0;
    if (step === '[]') {
      const list = value as readonly unknown[];
      const at = chance.one([...list.keys()].filter((index) => isFit(list[index])));
      return fields.consistent(path, list.with(at, this.change(list[at], inner, act, [...path, '[]'])));
    }
    const members = value as Json;
    const key = step === '*' ? chance.one(Object.keys(members).filter((one) => isFit(members[one]))) : step;
    const member = this.change(members[key], inner, act, [...path, key]);
    return fields.consistent(path, { ...members, [key]: member });
  }

  private changeList(spec: Spec, path: Path, act: (list: readonly unknown[], path: Path) => unknown[]): Spec {
    const changed = (list: unknown, at: Path): unknown =>
      this.fields.consistent(at, act(list as readonly unknown[], at));
    return this.change(spec, path, changed) as Spec;
  }

  private another(value: unknown, path: Path): unknown {
    const others = choicesAt(this.fields, path).filter((choice) => !isDeepStrictEqual(choice, value));
    return others.length === 0 ? value : this.chance.one(others);
  }

  /** Removes every value at a path, and what can't be without it. */
  private remove(value: unknown, [step, ...inner]: Path, path: Path = []): unknown {
    if (value === undefined || step === undefined) return undefined;
    const isList = step === '[]';
    const left = Object.entries(value as Json).flatMap(([key, member]) => {
      const isMeant = isList || step === '*' || key === step;
      const stays = isMeant ? this.remove(member, inner, [...path, isList ? step : key]) : member;
      return stays === undefined ? [] : [[key, stays] as const];
    });
    if (isList) return left.length === 0 ? undefined : left.map(([, item]) => item);
    const members = Object.fromEntries(left);
    return this.isWhole(path, members) ? this.fields.consistent(path, members) : undefined;
  }

  private isWhole(path: Path, value: Json): boolean {
    const { required = [] } = schemaAt(this.fields.schema, path);
    const { mayBeNone = false, members } = this.fields.union?.(path) ?? { mayBeNone: true, members: [] };
    const hasMember = mayBeNone || members.some((member) => Object.hasOwn(value, member));
    return hasMember && required.every((key) => Object.hasOwn(value, key));
  }

  /** Makes a value for the field at a path, in which everything is that `wanted` leads to. */
  private make(path: Path, wanted: Path = []): unknown {
    return this.fields.consistent(path, this.makeParts(path, wanted));
  }

  private makeParts(path: Path, wanted: Path): unknown {
    const { fields, chance } = this;
    const schema = schemaAt(fields.schema, path);
    const [first, ...inner] = wanted;
    if (schema.items) {
      const others = Array.from({ length: chance.upTo(2) }, () => this.make([...path, '[]']));
      const needsOne = first !== undefined || others.length < (schema.minItems ?? 0);
      return needsOne ? [...others, this.make([...path, '[]'], inner)] : others;
    }
    if (typeof schema.additionalProperties === 'object') {
      const keys = fields.keys(path).filter(() => chance.yes(50));
      if (first !== undefined) keys.push(first === '*' ? chance.one(fields.keys(path)) : first);
      return Object.fromEntries(keys.map((key) => [key, this.make([...path, key])]));
    }
    if (!schema.properties) return chance.one(choicesAt(fields, path));
    const union = fields.union?.(path);
    const member = union && this.memberOf(union, path, first);
    const isThere = (key: string): boolean => {
      const place = [...path, key];
      if (key === first || schema.required?.includes(key)) return true;
      if (union?.members.includes(key)) return key === member;
      return !fields.isRefused?.(place) && !fields.isBarred(place) && chance.yes(OPTIONAL_PERCENT);
    };
    const keys = Object.keys(schema.properties).filter(isThere);
    return Object.fromEntries(
      keys.map((key) => [key, this.make([...path, key], key === first ? inner : [])]),
    );
  }

  private memberOf(union: Union, path: Path, wanted: string | undefined): string | undefined {
    const { members, mayBeNone = false } = union;
    if (wanted !== undefined && members.includes(wanted)) return wanted;
    if (mayBeNone && this.chance.yes(20)) return undefined;
    return this.chance.one(members.filter((member) => !this.fields.isRefused?.([...path, member])));
  }
}

export interface PlanProps {
  /** First spec of each walk. */
  readonly starts: readonly Spec[];
  /** Of all walks together; there are more where goals are open then. */
  readonly leastEdits: number;
  /** Of all walks together. */
  readonly mostEdits: number;
  /** Failed attempts after which a goal is given up. A spec that isn't accepted counts as twelve. @default - no limit */
  readonly mostInVain?: number;
}

export interface WalkPlan {
  readonly walks: readonly Walk[];
  /** Number of things that edits can do to fields, ... */
  readonly goals: number;
  /** ... and the names of those that aren't done. */
  readonly open: readonly string[];
}

const NOT_ACCEPTED_COUNTS = 12;
/** Accepted specs between two that aren't. */
const ACCEPTED_BETWEEN = 6;

interface Planned {
  readonly specs: Spec[];
  /** The last one that is accepted. */
  last: Spec;
  sinceRefused: number;
}

/**
 * Plans walks that together do everything to every field, each edit beside random others.
 * @param isAccepted whether the cluster accepts what a valid spec leads to; of specs where it doesn't, few are planned, each
 * followed by another edit of the spec before it
 */
export async function planWalks(
  fields: Fields,
  chance: Chance,
  { starts, leastEdits, mostEdits, mostInVain = Infinity }: PlanProps,
  isAccepted: (spec: Spec) => Promise<boolean> = () => Promise.resolve(true),
): Promise<WalkPlan> {
  const editor = new Editor(fields, chance);
  const open = new Map(editor.goals.map((goal) => [nameOf(goal), goal]));
  const inVain = new Map<string, number>();
  const wanted = (): Goal[] =>
    [...open.values()].filter((goal) => (inVain.get(nameOf(goal)) ?? 0) < mostInVain);
  const count = (goal: Goal, attempts: number): unknown =>
    inVain.set(nameOf(goal), (inVain.get(nameOf(goal)) ?? 0) + attempts);
  const next = async (before: Spec): Promise<{ spec: Spec; refused: Spec | undefined } | undefined> => {
    let refused: Spec | undefined;
    for (let attempt = 0; attempt < 400; attempt++) {
      // An open goal may need more than one edit to get there; any other edit will do meanwhile.
      const goals = attempt < 200 ? wanted() : [];
      const chosen = chooseGoal(editor, before, goals);
      if (!chosen) return undefined;
      // A goal that isn't accepted along with others may be by itself.
      for (const others of [goals, undefined, undefined]) {
        const spec = editor.edited(before, chosen.goal, others);
        if (!spec) break;
        if (await isAccepted(spec)) return { spec, refused };
        refused = spec;
        count(chosen.towards, others ? 0 : NOT_ACCEPTED_COUNTS);
      }
      count(chosen.towards, 1);
    }
    return undefined;
  };
  const planned = starts.map((spec): Planned => ({ specs: [spec], last: spec, sinceRefused: 0 }));
  const going = [...planned];
  for (let edits = 0; edits < leastEdits || (wanted().length > 0 && edits < mostEdits);) {
    const walk = going.shift();
    if (!walk) break;
    const found = await next(walk.last);
    // This walk can go no further; others may.
    if (!found) continue;
    const { spec, refused } = found;
    going.push(walk);
    edits++;
    for (const [name, goal] of open) if (isReached(goal, walk.last, spec)) open.delete(name);
    const isDue = walk.sinceRefused >= ACCEPTED_BETWEEN;
    const isBetween = refused && isDue && fields.problems(spec, refused).length === 0;
    walk.specs.push(...(isBetween ? [refused] : []), spec);
    walk.sinceRefused = isBetween ? 0 : walk.sinceRefused + 1;
    walk.last = spec;
  }
  return { walks: planned.map(({ specs }) => specs), goals: editor.goals.length, open: [...open.keys()] };
}

/** Chooses an open goal, or one that makes it possible. A field that is refused doesn't stay for long. */
function chooseGoal(
  { goals, fields, chance }: Editor,
  spec: Spec,
  open: readonly Goal[],
): { readonly goal: Goal; readonly towards: Goal } | undefined {
  const isRefused = (path: Path): boolean => fields.isRefused?.(path) ?? false;
  const isBroken = fields.leaves.some((path) => isRefused(path) && valuesAt(spec, path).length > 0);
  const isNext = (goal: Goal): boolean => isPossible(goal, spec) && (!isBroken || isRefused(goal.path));
  const possible = (open.length > 0 ? open : goals.filter(({ path }) => !isRefused(path))).filter(isNext);
  const left = isBroken ? goals.filter((goal) => goal.action === 'remove' && isNext(goal)) : [];
  const choices = possible.length > 0 ? possible : left;
  if (choices.length > 0) {
    const goal = chance.one(choices);
    return { goal, towards: goal };
  }
  if (open.length === 0) return undefined;
  const towards = chance.one(open);
  const { action, path } = towards;
  if (action === 'set') return { goal: { action: 'remove', path }, towards };
  const isThere = valuesAt(spec, path).length > 0;
  return { goal: { action: isThere ? 'add an item' : 'set', path }, towards };
}

interface ShortenProps {
  /** Tries a walk from its start. */
  readonly goesWrong: (walk: Walk) => Promise<boolean>;
  readonly isValid: (spec: Spec) => boolean;
  /** Reports whether there is time for another attempt. */
  readonly hasTime: () => boolean;
}

/** Attempts at the same time. */
const AT_ONCE = 4;

/** Returns the shortest walk found in time that still goes wrong: its last specs, without steps, without parts of specs. */
export async function shorten(walk: Walk, { goesWrong, isValid, hasTime }: ShortenProps): Promise<Walk> {
  const tried = new Set<string>();
  let shortest = walk;
  const takeFirst = async (candidates: readonly Walk[], atOnce = 1): Promise<boolean> => {
    for (let start = 0; start < candidates.length && hasTime(); start += atOnce) {
      const untried = candidates
        .slice(start, start + atOnce)
        .filter((candidate) => !tried.has(JSON.stringify(candidate)));
      for (const candidate of untried) tried.add(JSON.stringify(candidate));
      const found = untried[(await Promise.all(untried.map(goesWrong))).indexOf(true)];
      if (!found) continue;
      shortest = found;
      return true;
    }
    return false;
  };
  const tails: Walk[] = [];
  for (let length = 2; length < walk.length; length = length * 2 - 1) tails.push(walk.slice(-length));
  await takeFirst(tails);
  // The last spec is what goes wrong.
  for (let index = 0; index < shortest.length - 1 && shortest.length > 2;)
    if (!(await takeFirst([shortest.toSpliced(index, 1)]))) index++;
  const withoutParts = (): Walk[] => {
    const everywhere = partsOf(shortest).map((part) => shortest.map((spec) => without(spec, part) as Spec));
    const inOne = shortest.flatMap((spec, index) =>
      partsOf([spec]).map((part) => shortest.with(index, without(spec, part) as Spec)),
    );
    return [...everywhere, ...inOne].filter((candidate) => candidate.every(isValid));
  };
  while (await takeFirst(withoutParts(), AT_ONCE));
  return shortest;
}

/** Part of a spec: names of members, and indexes of items. */
type Part = readonly (string | number)[];

/** Returns the parts of all specs, the largest first. */
function partsOf(walk: Walk): Part[] {
  const below = (value: unknown, path: Part): Part[] => {
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([name, member]) => {
      const part = [...path, Array.isArray(value) ? Number(name) : name];
      return [part, ...below(member, part)];
    });
  };
  const parts = walk.flatMap((spec) => below(spec, []));
  const once = new Map(parts.map((part) => [JSON.stringify(part), part]));
  return [...once.values()].sort((a, b) => a.length - b.length);
}

function without(value: unknown, [step, ...rest]: Part): unknown {
  if (typeof value !== 'object' || value === null || step === undefined) return value;
  const child = (value as Readonly<Record<string | number, unknown>>)[step];
  if (child === undefined) return value;
  if (Array.isArray(value)) {
    const index = Number(step);
    return rest.length === 0 ? value.toSpliced(index, 1) : value.with(index, without(child, rest));
  }
  const { [step]: _, ...others } = value as Json;
  return rest.length === 0 ? others : { ...value, [step]: without(child, rest) };
}

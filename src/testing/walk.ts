import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { storedVersion } from '../contract/crd.js';
import type { StructuralSchema } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import { judge, KnownKinds } from '../validate/custom-resource.js';
import { applyDefaults } from '../validate/defaults.js';
import { schemasBelow } from '../validate/unchanged.js';
import type { Problem } from '../validate/problem.js';

export type Spec = Readonly<Record<string, unknown>>;

/** Specs that one custom resource has, one after the other. */
export type Walk = readonly Spec[];

/** Path of a field in any spec: `[]` stands for the items of a list, `*` for the values of a map. */
export type Path = readonly string[];

/** Pseudo-random numbers that a seed repeats. */
export class Random {
  private drawn = 0;

  constructor(private readonly seed: number) {}

  below(limit: number): number {
    const bytes = createHash('sha256').update(`${this.seed} ${this.drawn++}`).digest();
    return Math.floor((bytes.readUInt32BE() / 2 ** 32) * limit);
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

/** Fields of a spec and the values that a walk may give them. */
export interface Fields {
  readonly schema: StructuralSchema;
  readonly leaves: readonly Path[];
  choices(path: Path): readonly unknown[];
  keys(path: Path): readonly string[];
  /** Problems of a spec, also as an update of another one; their paths begin at the custom resource. */
  problems(spec: Spec, before?: Spec): readonly Problem[];
  /** Returns the value with its parts made to fit each other; the member that is to stay is the last. */
  consistent(path: Path, value: unknown): unknown;
  /** Reports whether a field is never set. */
  isBarred(path: Path): boolean;
  /** Reports whether a field can't be changed once it is set. @default - none is like that */
  isFixed?(path: Path): boolean;
  /** Reports whether the API server refuses a field: it is set only where that is the goal. @default - none */
  isRefused?(path: Path): boolean;
}

/** Returns every field of a schema that holds a value. */
export function leavesOf(schema: StructuralSchema, path: Path = []): Path[] {
  const inner = Object.entries(schemasBelow(schema));
  return inner.length === 0 ? [path] : inner.flatMap(([step, child]) => leavesOf(child, [...path, step]));
}

/** Returns a path and all that it lies in, the path last. */
export function pathsTo(path: Path): Path[] {
  return path.map((_, end) => path.slice(0, end + 1));
}

/** @throws where the schema has nothing at the path */
export function schemaAt(schema: StructuralSchema, path: Path): StructuralSchema {
  return path.reduce((at, step) => {
    const { [step]: below, '*': value = below } = schemasBelow(at);
    if (!value) throw new Error(`The schema has no ${step}`);
    return value;
  }, schema);
}

/** Returns all values that a spec has at a path. */
export function valuesAt(value: unknown, [step, ...rest]: Path): unknown[] {
  if (value === undefined) return [];
  if (step === undefined) return [value];
  const inner = step === '[]' || step === '*' ? Object.values(value as Spec) : [(value as Spec)[step]];
  return inner.flatMap((member) => valuesAt(member, rest));
}

function choicesAt({ schema, choices }: Pick<Fields, 'schema' | 'choices'>, path: Path): readonly unknown[] {
  const { type, enum: values } = schemaAt(schema, path);
  return values ?? (type === 'boolean' ? [true, false] : choices(path));
}

/**
 * Reads the fields of a kind: values come from its samples, and from the schema where it says enough.
 *
 * @param images of containers: a field that holds one gets it with another tag too, since the API server's default for
 *   `imagePullPolicy` follows from the tag
 */
export function fieldsOf(
  kind: Kind,
  samples: readonly Spec[],
  notWalked: readonly string[] = [],
  images: ReadonlySet<unknown> = new Set(),
): Fields {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema.properties?.spec ?? {};
  const { apiVersion, kind: kindName } = kind.type;
  const version = new KnownKinds([kind]).find({ apiVersion, kind: kindName });
  if (!('kind' in version)) throw new Error(version.message);
  const metadata = { name: 'sample', namespace: 'sweep' };
  const whole = (spec: Spec): object => version.withDefaults({ apiVersion, kind: kindName, metadata, spec });
  const given = (path: Path): unknown[] => samples.flatMap((sample) => valuesAt(sample, path));
  const choices = (path: Path): readonly unknown[] => {
    // Another key of a map may hold another kind of value.
    const ofKey = given(path);
    const all = [...(ofKey.length > 0 ? ofKey : given(generalized(schema, path)))];
    all.push(...fromSchema(schemaAt(schema, path)), ...retagged(path, all));
    return all.filter((value, index) => all.findIndex((one) => isDeepStrictEqual(one, value)) === index);
  };
  const problems = (spec: Spec, before?: Spec): readonly Problem[] =>
    judge(version, whole(spec), before && whole(before));
  const known = new Map<string, readonly unknown[]>();
  const retagged = (path: Path, values: readonly unknown[]): readonly unknown[] => {
    const id = path.join('.');
    const isAllowed = (image: string): boolean =>
      path.some((step) => step === '[]' || step === '*') ||
      samples.some((sample) => problems(withValue(sample, path, image)).length === 0);
    const tagged =
      known.get(id) ??
      values
        .filter((value) => images.has(value))
        .map(withOtherTag)
        .filter(isAllowed);
    known.set(id, tagged);
    return tagged;
  };
  return {
    ...{ schema, choices, problems },
    leaves: leavesOf(schema).filter((path) => path.length > 0),
    isBarred: (path) =>
      notWalked.includes(path.join('.')) || !isMakeable(schemaAt(schema, path), path, choices),
    keys: (path) => {
      const keys = new Set(given(generalized(schema, path)).flatMap((map) => Object.keys(map as Spec)));
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

function withOtherTag(image: unknown): string {
  const [reference = ''] = String(image).split('@');
  const colon = reference.lastIndexOf(':');
  // A colon before the last slash is that of a port.
  const hasTag = colon > reference.lastIndexOf('/');
  const [name, tag] = hasTag
    ? [reference.slice(0, colon), reference.slice(colon + 1)]
    : [reference, 'latest'];
  return `${name}:${tag === 'latest' ? '1' : 'latest'}`;
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

/** Returns values that the schema allows. A text with a pattern or a format is known from samples alone. */
function fromSchema(schema: StructuralSchema): unknown[] {
  const { type, pattern, format, minLength = 0, maxLength = Infinity, minimum, maximum = Infinity } = schema;
  if (schema.enum) return [...schema.enum];
  if (type === 'boolean') return [true, false];
  if (type === 'integer' || type === 'number') {
    const least = minimum ?? Math.min(0, maximum);
    return [least, least + 1, least + 2].filter((value) => value <= maximum);
  }
  if (schema['x-kubernetes-int-or-string']) return pattern === undefined ? [1, 2] : [];
  if (type !== 'string' || pattern !== undefined || format !== undefined) return [];
  return ['one', 'two', 'three'].filter(({ length }) => length >= minLength && length <= maxLength);
}

function isMakeable(schema: StructuralSchema, path: Path, choices: Fields['choices']): boolean {
  const { properties, required = [] } = schema;
  const below = Object.entries(schemasBelow(schema));
  if (below.length === 0) return properties !== undefined || choices(path).length > 0;
  const needed = properties ? below.filter(([step]) => required.includes(step)) : below;
  return needed.every(([step, child]) => isMakeable(child, [...path, step], choices));
}

/** Returns a set, or a list with keys, in which each item is once: of duplicates, the last. */
export function withoutDuplicates(schema: StructuralSchema, list: readonly unknown[]): unknown[] {
  const kind = schema['x-kubernetes-list-type'];
  if (kind !== 'map' && kind !== 'set') return [...list];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const keyed = list.map((item) => {
    const whole = applyDefaults(item, schema.items) as Spec;
    return [JSON.stringify(kind === 'set' ? item : keys.map((key) => whole[key])), item] as const;
  });
  return [...new Map(keyed).values()];
}

/** Change that an edit can make to a field, or to a list that has other items. */
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
    const mayChange = path.at(-1) === '*' || choicesAt(fields, path).length > 1;
    const isAlwaysThere = pathsTo(path).every((one) => isRequired(fields, one));
    return [
      ...(isAlwaysThere ? [] : (['set', 'remove'] as const).map((action) => ({ action, path }))),
      ...(mayChange && !fields.isFixed?.(path) ? [{ action: 'change', path } as const] : []),
    ];
  });
  const items = fields.leaves.flatMap(pathsTo).filter((path) => path.at(-1) === '[]');
  const ofLists = [...new Map(items.map((path) => [path.join('.'), path])).values()]
    .filter((path) => !fields.isRefused?.(path) && isOpen(path))
    .flatMap((path) => (['add an item', 'drop an item'] as const).map((action) => ({ action, path })));
  return [...ofFields, ...ofLists];
}

/** Reports whether a field is required; of a list, its first item is. */
export function isRequired({ schema }: Pick<Fields, 'schema'>, path: Path): boolean {
  const field = path.at(-1);
  if (field === undefined || field === '[]') return true;
  return schemaAt(schema, path.slice(0, -1)).required?.includes(field) ?? false;
}

function isRemoval({ action }: Goal): boolean {
  return action === 'remove' || action === 'drop an item';
}

function isPossible({ action, path }: Goal, spec: Spec): boolean {
  const count = valuesAt(spec, path).length;
  return action === 'set' ? count === 0 : count > (action === 'drop an item' ? 1 : 0);
}

/** Reports whether an edit has done it. */
export function isReached({ action, path }: Goal, before: Spec, after: Spec): boolean {
  const [old, now] = [valuesAt(before, path), valuesAt(after, path)];
  if (action === 'set') return old.length === 0 && now.length > 0;
  if (action === 'remove') return old.length > 0 && now.length === 0;
  if (old.length === 0 || now.length === 0) return false;
  if (action === 'change') return !isDeepStrictEqual(old, now);
  return action === 'add an item' ? now.length > old.length : now.length < old.length;
}

/** Share of optional fields that a new object has, in percent. */
const OPTIONAL_PERCENT = 35;

/** Random edits: each reaches a goal, along with some others; the rest of the spec stays. */
class Editor {
  readonly goals: readonly Goal[];
  private readonly names: readonly string[];

  constructor(
    private readonly fields: Fields,
    private readonly chance: Random,
  ) {
    this.goals = goalsOf(fields);
    this.names = Object.keys(fields.schema.properties ?? {});
  }

  /** Returns a valid spec that may have reached the goal. @param isAlone whether no other field is edited */
  edited(before: Spec, goal: Goal, isAlone: boolean): Spec | undefined {
    const { fields, chance } = this;
    const required = this.neededIn(before);
    const [field = ''] = goal.path;
    const dropped = (spec: Spec, name: string): Spec =>
      required.includes(name) ? { ...spec, [name]: this.make([name]) } : (without(spec, [name]) as Spec);
    const isBroken = (name: string): boolean =>
      fields.leaves.some((leaf) => leaf[0] === name && fields.isRefused?.(leaf) && valuesAt(before, leaf)[0]);
    const least = Object.fromEntries(required.map((name) => [name, before[name]]));
    // A field that the API server refuses doesn't stay.
    const base = this.names.filter(isBroken).reduce(dropped, !isAlone && chance.yes(5) ? least : before);
    const isGone = isRemoval(goal) && isPossible(goal, before) && !isPossible(goal, base);
    let spec = isGone ? base : this.reach(base, goal);
    const others = isAlone ? [] : Array.from({ length: chance.upTo(4) }, () => chance.one(this.goals));
    for (const other of others.filter(({ path }) => path[0] !== field))
      spec = chance.yes(25) ? dropped(spec, other.path[0] ?? '') : this.reach(spec, other);
    return this.withoutProblems(spec, before, field);
  }

  private reach(spec: Spec, goal: Goal): Spec {
    const { fields, chance } = this;
    const { action, path } = goal;
    // What isn't there yet has to come first.
    if (!isRemoval(goal) || !isPossible(goal, spec)) return this.put(spec, [], path) as Spec;
    const optional = pathsTo(path).filter((one) => one.at(-1) === '[]' || !isRequired(fields, one));
    const removed = action === 'remove' ? chance.one(optional) : path;
    const parts = partsOf([spec]).filter((part) => isAt(part, removed));
    // From the last to the first, so that indexes stay true.
    const gone = action === 'remove' ? parts.toReversed() : [chance.one(parts)];
    return gone.reduce<unknown>(without, spec) as Spec;
  }

  /** Returns the value of a field with another value where `wanted` leads to. */
  private put(old: unknown, path: Path, [step, ...inner]: Path): unknown {
    const { fields, chance } = this;
    const isKept = old !== undefined && (path.length === 0 || !chance.yes(15));
    const base = isKept && step !== undefined ? old : this.make(path, old);
    if (step === undefined) return base;
    if (Array.isArray(base)) {
      const list = base as readonly unknown[];
      const at = inner.length === 0 ? list.length : chance.upTo(list.length);
      const put = list.toSpliced(at, 1, this.put(list[at], [...path, '[]'], inner));
      return fields.consistent(path, chance.yes(10) ? put.toReversed() : put);
    }
    const key = step === '*' ? chance.one(fields.keys(path)) : step;
    const { [key]: before, ...others } = base as Spec;
    return fields.consistent(path, { ...others, [key]: this.put(before, [...path, key], inner) });
  }

  /** Makes a value for the field at a path. @param old avoided */
  private make(path: Path, old?: unknown): unknown {
    const { fields, chance } = this;
    const { items, minItems = 0, additionalProperties, properties, required } = schemaAt(fields.schema, path);
    if (items) {
      const list = Array.from({ length: Math.max(minItems, chance.upTo(2)) }, () =>
        this.make([...path, '[]']),
      );
      return fields.consistent(path, list);
    }
    if (typeof additionalProperties === 'object') {
      const keys = fields.keys(path).filter(() => chance.yes(50));
      return fields.consistent(path, Object.fromEntries(keys.map((key) => [key, this.make([...path, key])])));
    }
    if (!properties) {
      const choices = choicesAt(fields, path);
      const others = choices.filter((choice) => !isDeepStrictEqual(choice, old));
      return fields.consistent(path, chance.one(others.length > 0 ? others : choices));
    }
    const isThere = (key: string): boolean => {
      const place = [...path, key];
      if (required?.includes(key)) return true;
      return !fields.isRefused?.(place) && !fields.isBarred(place) && chance.yes(OPTIONAL_PERCENT);
    };
    const keys = Object.keys(properties).filter(isThere);
    return fields.consistent(path, Object.fromEntries(keys.map((key) => [key, this.make([...path, key])])));
  }

  /** Returns the fields that every edit of a spec keeps: those that are required, and those that are left alone. */
  private neededIn(before: Spec): readonly string[] {
    const { fields } = this;
    const isLeft = (name: string): boolean => fields.isBarred([name]);
    return [...(fields.schema.required ?? []), ...Object.keys(before).filter(isLeft)];
  }

  /** Drops the fields that don't go with the others, or returns undefined where that is the one to keep. */
  private withoutProblems(spec: Spec, before: Spec, kept: string): Spec | undefined {
    const needed = [kept, ...this.neededIn(before)];
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
}

export interface PlanProps {
  /** First spec of each walk. */
  readonly starts: readonly Spec[];
  /** Least number of edits of all walks together; there are more where goals are open then. */
  readonly minEdits: number;
  readonly maxEdits: number;
  /** Failed attempts after which a goal is given up. A spec that isn't accepted counts as twelve. @default - no limit */
  readonly maxFailures?: number;
}

export interface WalkPlan {
  readonly walks: readonly Walk[];
  readonly goals: number;
  readonly open: readonly string[];
}

const NOT_ACCEPTED_COUNTS = 12;
/** Number of accepted specs between two that aren't. */
const ACCEPTED_BETWEEN = 6;

/**
 * Plans walks that together do everything to every field, each edit beside random others.
 * @param isAccepted whether the cluster accepts what a valid spec leads to; of specs where it doesn't, few are planned, each
 * followed by another edit of the spec before it
 */
export async function planWalks(
  fields: Fields,
  chance: Random,
  { starts, minEdits, maxEdits, maxFailures = Infinity }: PlanProps,
  isAccepted: (spec: Spec) => Promise<boolean> = () => Promise.resolve(true),
): Promise<WalkPlan> {
  const editor = new Editor(fields, chance);
  const open = new Set(editor.goals);
  const inVain = new Map<Goal, number>();
  const wanted = (): Goal[] => [...open].filter((goal) => (inVain.get(goal) ?? 0) < maxFailures);
  const next = async (before: Spec): Promise<{ spec: Spec; refused: Spec | undefined } | undefined> => {
    let refused: Spec | undefined;
    for (let attempt = 0; attempt < 400; attempt++) {
      const goals = wanted();
      const possible = goals.filter((goal) => isPossible(goal, before));
      const goal = chance.one([possible, goals, editor.goals].find(({ length }) => length > 0) ?? []);
      // A goal may need more than one edit to get there; any other edit will do meanwhile.
      const isEnough = (spec: Spec): boolean =>
        attempt >= 6 || goals.length === 0 || goals.some((one) => isReached(one, before, spec));
      let cost = 1;
      // A goal that isn't accepted along with others may be by itself.
      for (const isAlone of [false, true, true]) {
        const spec = editor.edited(before, goal, isAlone);
        if (!spec || isDeepStrictEqual(spec, before) || !isEnough(spec)) continue;
        if (await isAccepted(spec)) return { spec, refused };
        refused = spec;
        if (isAlone && isReached(goal, before, spec)) cost += NOT_ACCEPTED_COUNTS;
      }
      inVain.set(goal, (inVain.get(goal) ?? 0) + cost);
    }
    return undefined;
  };
  const walks = starts.map((spec) => ({ specs: [spec], last: spec, sinceRefused: 0 }));
  const going = [...walks];
  for (let edits = 0; edits < minEdits || (wanted().length > 0 && edits < maxEdits);) {
    const walk = going.shift();
    if (!walk) break;
    const found = await next(walk.last);
    // This walk can go no further; others may.
    if (!found) continue;
    const { spec, refused } = found;
    going.push(walk);
    edits++;
    for (const goal of open) if (isReached(goal, walk.last, spec)) open.delete(goal);
    const isDue = walk.sinceRefused >= ACCEPTED_BETWEEN;
    const isBetween = refused && isDue && fields.problems(spec, refused).length === 0;
    walk.specs.push(...(isBetween ? [refused] : []), spec);
    walk.sinceRefused = isBetween ? 0 : walk.sinceRefused + 1;
    walk.last = spec;
  }
  return {
    walks: walks.map(({ specs }) => specs),
    ...{ goals: editor.goals.length, open: [...open].map(nameOf) },
  };
}

interface ShortenProps {
  readonly goesWrong: (walk: Walk) => Promise<boolean>;
  readonly isValid: (spec: Spec) => boolean;
  readonly hasTime: () => boolean;
}

const AT_ONCE = 4;

/** Returns the shortest walk found in time that still goes wrong: its last specs, without steps, without parts of specs. */
export async function shorten(walk: Walk, { goesWrong, isValid, hasTime }: ShortenProps): Promise<Walk> {
  const tried = new Set<string>();
  for (let [shortest, candidates] = [walk, shorterThan(walk)]; ;) {
    const some = candidates.splice(0, AT_ONCE);
    if (some.length === 0 || !hasTime()) return shortest;
    const untried = some.filter((one) => one.every(isValid) && !tried.has(JSON.stringify(one)));
    for (const one of untried) tried.add(JSON.stringify(one));
    const found = untried[(await Promise.all(untried.map(goesWrong))).indexOf(true)];
    if (found) [shortest, candidates] = [found, shorterThan(found)];
  }
}

/** Returns shorter walks with the same end, since the last spec is what goes wrong; those that drop most come first. */
function shorterThan(walk: Walk): Walk[] {
  const tails = [2, 3, 5, 9, 17, 33, 65].filter((length) => length < walk.length);
  const steps = walk.length > 2 ? walk.slice(0, -1).map((_, at) => walk.toSpliced(at, 1)) : [];
  const parts = partsOf(walk).map((part) => walk.map((spec) => without(spec, part) as Spec));
  const partsOfOne = walk.flatMap((spec, at) =>
    partsOf([spec]).map((part) => walk.with(at, without(spec, part) as Spec)),
  );
  return [...tails.map((length) => walk.slice(-length)), ...steps, ...parts, ...partsOfOne];
}

/** Part of a spec: names of members, and indexes of items. */
type Part = readonly (string | number)[];

function isAt(part: Part, path: Path): boolean {
  const isStep = (step: string | undefined, index: number): boolean =>
    step === '*' || (step === '[]' ? typeof part[index] === 'number' : step === part[index]);
  return part.length === path.length && path.every(isStep);
}

function partsOf(walk: Walk): Part[] {
  const below = (value: unknown, part: Part): Part[] => {
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([name, member]) => {
      const inner = [...part, Array.isArray(value) ? Number(name) : name];
      return [inner, ...below(member, inner)];
    });
  };
  const parts = walk.flatMap((spec) => below(spec, []));
  const once = new Map(parts.map((part) => [JSON.stringify(part), part]));
  return [...once.values()].sort((a, b) => a.length - b.length);
}

function without(value: unknown, [step, ...rest]: Part): unknown {
  if (typeof value !== 'object' || value === null || step === undefined || !(step in value)) return value;
  const inner = rest.length > 0 ? without((value as Spec)[step], rest) : undefined;
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value;
    return inner === undefined ? list.toSpliced(step as number, 1) : list.with(step as number, inner);
  }
  const { [step]: _, ...others } = value as Spec;
  return inner === undefined ? others : { ...value, [step]: inner };
}

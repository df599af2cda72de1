import { appService } from '../../../../src/kinds/app-service/kind.js';
import type { Problem } from '../../../../src/synth/problem.js';
import { offline } from '../verdicts.js';
import type { Chance } from './chance.js';
import { addItem, change, dropItem, put, remove, reorder } from './edits.js';
import { goals, isPossible, isReached, nameOf } from './goals.js';
import type { Goal } from './goals.js';
import { make } from './make.js';
import { hasRefusedFields, isRefused } from './rules.js';
import { lists, specSchema, valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

/** The specs that one custom resource has, one after the other; each is valid. */
export type Walk = readonly Spec[];

export interface PlanProps {
  readonly walks: number;
  /** Of all walks together; there are more where goals are left then. */
  readonly leastEdits: number;
}

const judge = offline(appService.crd);
const required = specSchema.required ?? [];

/**
 * Walks that together do everything to every field that can be done to it, each edit along with others at random.
 * @throws where a goal isn't reached in ten times as many edits as asked for
 */
export function planWalks(chance: Chance, { walks, leastEdits }: PlanProps): Walk[] {
  const open = new Map(goals.map((goal) => [nameOf(goal), goal]));
  const planned: Spec[][] = Array.from({ length: walks }, () => [
    { size: chance.upTo(1), image: 'example.com/web:1' },
  ]);
  for (let edits = 0; edits < leastEdits || open.size > 0; edits++) {
    if (edits > 10 * leastEdits) throw new Error(`Never reached: ${[...open.keys()].join(', ')}`);
    const walk = planned[edits % walks]!;
    const before = walk.at(-1)!;
    const after = nextSpec(chance, before, [...open.values()]);
    for (const [name, goal] of open) if (isReached(goal, before, after)) open.delete(name);
    walk.push(after);
  }
  return planned;
}

function nextSpec(chance: Chance, before: Spec, open: readonly Goal[]): Spec {
  for (let attempt = 0; attempt < 400; attempt++) {
    // What is open may need more than one edit to get there; meanwhile, any other will do.
    const goal = chooseGoal(chance, before, attempt < 200 ? open : []);
    const after = mended(withCompanions(chance, edit(chance, before, goal, open), goal), goal.path[0]!);
    if (after && isReached(goal, before, after)) return after;
  }
  throw new Error(`No edit of ${JSON.stringify(before)} is valid`);
}

/** An open one, or what makes one possible. What is refused doesn't stay for long. */
function chooseGoal(chance: Chance, spec: Spec, open: readonly Goal[]): Goal {
  const isBroken = hasRefusedFields(spec);
  const candidates = (all: readonly Goal[]): Goal[] =>
    all.filter((goal) => isPossible(goal, spec) && (!isBroken || isRefused(goal.path)));
  const wanted = candidates(open.length > 0 ? open : goals.filter(({ path }) => !isRefused(path)));
  if (wanted.length > 0) return chance.one(wanted);
  if (isBroken) return chance.one(candidates(goals.filter(({ action }) => action === 'remove')));
  return towards(chance.one(open), spec);
}

function towards({ action, path }: Goal, spec: Spec): Goal {
  if (action === 'set') return { action: 'remove', path };
  return { action: valuesAt(spec, path).length === 0 ? 'set' : 'add an item', path };
}

function edit(chance: Chance, before: Spec, goal: Goal, open: readonly Goal[]): Spec {
  const start = chance.yes(5) ? clearedOrNew(chance, before) : before;
  let spec = act(chance, isPossible(goal, start) ? start : before, goal);
  for (let more = chance.upTo(5); more > 0; more--) {
    const other = randomEdit(chance, spec, chance.yes(70) ? open : goals);
    if (isReached(goal, before, other)) spec = other;
  }
  return spec;
}

function act(chance: Chance, spec: Spec, { action, path }: Goal): Spec {
  switch (action) {
    case 'set':
      return put(chance, spec, path) as Spec;
    case 'change':
      return change(chance, spec, path) as Spec;
    case 'remove':
      return remove(spec, path) as Spec;
    case 'add an item':
      return addItem(chance, spec, path) as Spec;
    case 'drop an item':
      return dropItem(chance, spec, path) as Spec;
  }
}

/** Of what the API server takes. */
function randomEdit(chance: Chance, spec: Spec, among: readonly Goal[]): Spec {
  const possible = among.filter((goal) => isPossible(goal, spec) && !isRefused(goal.path));
  if (possible.length === 0 || chance.yes(10)) return reordered(chance, spec);
  return act(chance, spec, chance.one(possible));
}

function reordered(chance: Chance, spec: Spec): Spec {
  const long = lists.filter((path) => valuesAt(spec, path).length > 1);
  return long.length === 0 ? spec : (reorder(chance, spec, chance.one(long)) as Spec);
}

/** Nothing but what is required, or half of the fields anew. */
function clearedOrNew(chance: Chance, spec: Spec): Spec {
  const least = Object.fromEntries(required.map((field) => [field, spec[field]]));
  if (chance.yes(50)) return least;
  const fields = Object.keys(specSchema.properties!).filter(() => chance.yes(50));
  return { ...least, ...Object.fromEntries(fields.map((field) => [field, make(chance, [field])])) };
}

/** What a field can't be without. */
const COMPANIONS: Readonly<Record<string, readonly Path[]>> = {
  autoscaling: ['cpu', 'memory'].map((resource) => ['resources', 'requests', resource]),
  route: [['ports', '[]', 'port']],
};

function withCompanions(chance: Chance, spec: Spec, { path: [field] }: Goal): Spec {
  if (chance.yes(30)) return spec;
  const missing = (COMPANIONS[field!] ?? []).filter((path) => valuesAt(spec, path).length === 0);
  return missing.reduce((whole, path) => put(chance, whole, path) as Spec, spec);
}

/** Without the fields that can't be beside the others; nothing, where that is the one that counts. */
function mended(spec: Spec, kept: string): Spec | undefined {
  let left = spec;
  for (let problems = problemsOf(left); problems.length > 0; problems = problemsOf(left)) {
    const fields = problems.map(({ path }) => String(path[1]));
    if (fields.some((field) => field === kept || required.includes(field))) return undefined;
    left = Object.fromEntries(Object.entries(left).filter(([field]) => !fields.includes(field)));
  }
  return left;
}

function problemsOf(spec: Spec): Problem[] {
  const { apiVersion, kind } = appService.type;
  return judge({ apiVersion, kind, metadata: { name: 'walker' }, spec });
}

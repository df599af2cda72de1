import type { Chance } from './chance.js';
import { addItem, change, dropItem, put, remove, reorder } from './edits.js';
import { hasRefusedFields } from './fields.js';
import type { Fields } from './fields.js';
import { goalsOf, isPossible, isReached, nameOf } from './goals.js';
import type { Goal } from './goals.js';
import { make } from './make.js';
import { valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

/** The specs that one custom resource has, one after the other; each is valid. */
export type Walk = readonly Spec[];

export interface PlanProps {
  /** What each walk begins with. */
  readonly starts: readonly Spec[];
  /** Of all walks together; there are more where goals are left then. */
  readonly leastEdits: number;
  /** Of all walks together. */
  readonly mostEdits: number;
}

export interface WalkPlan {
  readonly walks: readonly Walk[];
  /** Everything that can be done to a field, ... */
  readonly goals: number;
  /** ... and what of it isn't done. */
  readonly open: readonly string[];
}

/** Walks that together do everything to every field that can be done to it, each edit along with others at random. */
export function planWalks(fields: Fields, chance: Chance, props: PlanProps): WalkPlan {
  const planner = new Planner(fields, chance);
  return planner.plan(props);
}

class Planner {
  private readonly goals: readonly Goal[];

  constructor(
    private readonly fields: Fields,
    private readonly chance: Chance,
  ) {
    this.goals = goalsOf(fields);
  }

  plan({ starts, leastEdits, mostEdits }: PlanProps): WalkPlan {
    const open = new Map(this.goals.map((goal) => [nameOf(goal), goal]));
    const planned = starts.map((spec) => [spec]);
    for (let edits = 0; edits < leastEdits || (open.size > 0 && edits < mostEdits); edits++) {
      const walk = planned[edits % planned.length];
      const before = walk?.at(-1);
      if (!walk || !before) break;
      const after = this.nextSpec(before, [...open.values()]);
      if (!after) break;
      for (const [name, goal] of open) if (isReached(goal, before, after)) open.delete(name);
      walk.push(after);
    }
    return { walks: planned, goals: this.goals.length, open: [...open.keys()] };
  }

  private nextSpec(before: Spec, open: readonly Goal[]): Spec | undefined {
    for (let attempt = 0; attempt < 400; attempt++) {
      // What is open may need more than one edit to get there; meanwhile, any other will do.
      const goal = this.chooseGoal(before, attempt < 200 ? open : []);
      if (!goal) return undefined;
      const edited = this.withCompanions(this.edit(before, goal, open), goal);
      const after = edited && this.mended(edited, goal.path[0]);
      if (after && isReached(goal, before, after)) return after;
    }
    return undefined;
  }

  /** An open one, or what makes one possible. What is refused doesn't stay for long. */
  private chooseGoal(spec: Spec, open: readonly Goal[]): Goal | undefined {
    const { fields, chance } = this;
    const isBroken = hasRefusedFields(fields, spec);
    const candidates = (all: readonly Goal[]): Goal[] =>
      all.filter((goal) => isPossible(goal, spec) && (!isBroken || fields.isRefused(goal.path)));
    const allowed = this.goals.filter(({ path }) => !fields.isRefused(path));
    const wanted = candidates(open.length > 0 ? open : allowed);
    if (wanted.length > 0) return chance.one(wanted);
    const left = isBroken ? candidates(this.goals.filter(({ action }) => action === 'remove')) : [];
    if (left.length > 0) return chance.one(left);
    return open.length === 0 ? undefined : towards(chance.one(open), spec);
  }

  private edit(before: Spec, goal: Goal, open: readonly Goal[]): Spec | undefined {
    const { chance } = this;
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
  private mended(spec: Spec, kept: string | undefined): Spec | undefined {
    const { required = [] } = this.fields.schema;
    let left = spec;
    for (
      let problems = this.fields.problems(left);
      problems.length > 0;
      problems = this.fields.problems(left)
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

function towards({ action, path }: Goal, spec: Spec): Goal {
  if (action === 'set') return { action: 'remove', path };
  return { action: valuesAt(spec, path).length === 0 ? 'set' : 'add an item', path };
}

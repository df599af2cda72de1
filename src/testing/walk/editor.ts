import type { Chance } from './chance.js';
import { addItem, change, dropItem, put, remove, reorder } from './edits.js';
import type { Fields } from './fields.js';
import { isPossible, isReached } from './goals.js';
import type { Goal } from './goals.js';
import { make } from './make.js';
import { valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

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

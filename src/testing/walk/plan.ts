import type { Chance } from '../random.js';
import { Editor } from './editor.js';
import { hasRefusedFields, valuesAt } from './fields.js';
import type { Fields, Spec } from './fields.js';
import { goalsOf, isPossible, isReached, nameOf } from './goals.js';
import type { Goal } from './goals.js';

/** The specs that one custom resource has, one after the other; each is valid. */
export type Walk = readonly Spec[];

interface PlanProps {
  /** What each walk begins with. */
  readonly starts: readonly Spec[];
  /** Of all walks together; there are more where goals are left then. */
  readonly leastEdits: number;
  /** Of all walks together. */
  readonly mostEdits: number;
  /**
   * A goal is given up after so many attempts in vain, of which one whose spec isn't taken counts as twelve.
   * @default - none is given up
   */
  readonly mostInVain?: number;
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
  const planning = new Planner(fields, chance, props).plan(props);
  let step = planning.next();
  while (!step.done) step = planning.next(true);
  return step.value;
}

/**
 * The same, of specs of which somebody else has to be asked whether they are taken. Of those that aren't, a few are on the
 * way, each followed by another edit of the spec before it.
 */
export async function planTakenWalks(
  fields: Fields,
  chance: Chance,
  props: PlanProps,
  isTaken: (spec: Spec) => Promise<boolean>,
): Promise<WalkPlan> {
  const planning = new Planner(fields, chance, props).plan(props);
  let step = planning.next();
  while (!step.done) step = planning.next(await isTaken(step.value));
  return step.value;
}

/** What a spec that isn't taken counts as, in attempts in vain. */
const NOT_TAKEN = 12;
/** Of specs that are taken, there are so many between two that aren't. */
const TAKEN_BETWEEN = 6;

/** What is asked of whoever drives the planning: whether a spec is taken. */
type Planning<T> = Generator<Spec, T, boolean>;

interface Planned {
  readonly specs: Spec[];
  /** The last one that is taken. */
  last: Spec;
  sinceRefused: number;
}

interface Next {
  readonly spec: Spec;
  /** One that isn't taken, for which the goal was tried as well. */
  readonly refused?: Spec | undefined;
}

class Planner {
  private readonly goals: readonly Goal[];
  private readonly mostInVain: number;
  private readonly editor: Editor;
  /** How often each goal was tried in vain. */
  private readonly vain = new Map<string, number>();

  constructor(
    private readonly fields: Fields,
    private readonly chance: Chance,
    { mostInVain = Infinity }: PlanProps,
  ) {
    this.mostInVain = mostInVain;
    this.goals = goalsOf(fields);
    this.editor = new Editor(fields, chance, this.goals);
  }

  *plan({ starts, leastEdits, mostEdits }: PlanProps): Planning<WalkPlan> {
    const open = new Map(this.goals.map((goal) => [nameOf(goal), goal]));
    const planned = starts.map((spec): Planned => ({ specs: [spec], last: spec, sinceRefused: 0 }));
    const wanted = (): Goal[] => [...open.values()].filter((goal) => !this.isGivenUp(goal));
    const going = [...planned];
    for (let edits = 0; edits < leastEdits || (wanted().length > 0 && edits < mostEdits);) {
      const walk = going.shift();
      if (!walk) break;
      const next = yield* this.nextSpec(walk.last, wanted());
      // This one can go no further; others may.
      if (!next) continue;
      going.push(walk);
      edits++;
      for (const [name, goal] of open) if (isReached(goal, walk.last, next.spec)) open.delete(name);
      this.goOn(walk, next);
    }
    return { walks: planned.map(({ specs }) => specs), goals: this.goals.length, open: [...open.keys()] };
  }

  private goOn(walk: Planned, { spec, refused }: Next): void {
    const isDue = walk.sinceRefused >= TAKEN_BETWEEN;
    const isBetween = refused && isDue && this.fields.problems(spec, refused).length === 0;
    if (isBetween) walk.specs.push(refused);
    walk.specs.push(spec);
    walk.sinceRefused = isBetween ? 0 : walk.sinceRefused + 1;
    walk.last = spec;
  }

  private *nextSpec(before: Spec, open: readonly Goal[]): Planning<Next | undefined> {
    let refused: Spec | undefined;
    for (let attempt = 0; attempt < 400; attempt++) {
      // What is open may need more than one edit to get there; meanwhile, any other will do.
      const wanted = attempt < 200 ? open.filter((goal) => !this.isGivenUp(goal)) : [];
      const chosen = this.chooseGoal(before, wanted);
      if (!chosen) return undefined;
      // What isn't taken along with others may be by itself.
      for (const others of [wanted, undefined, undefined]) {
        const spec = this.editor.edited(before, chosen.goal, others);
        if (!spec) break;
        if (yield spec) return { spec, refused };
        refused = spec;
        this.inVain(chosen.open, others ? 0 : NOT_TAKEN);
      }
      this.inVain(chosen.open, 1);
    }
    return undefined;
  }

  private isGivenUp(goal: Goal): boolean {
    return (this.vain.get(nameOf(goal)) ?? 0) >= this.mostInVain;
  }

  private inVain(goal: Goal, times: number): void {
    this.vain.set(nameOf(goal), (this.vain.get(nameOf(goal)) ?? 0) + times);
  }

  /** An open one, or what makes one possible. What is refused doesn't stay for long. */
  private chooseGoal(spec: Spec, open: readonly Goal[]): Chosen | undefined {
    const { fields, chance } = this;
    const isBroken = hasRefusedFields(fields, spec);
    const candidates = (all: readonly Goal[]): Goal[] =>
      all.filter((goal) => isPossible(goal, spec) && (!isBroken || fields.isRefused(goal.path)));
    const allowed = this.goals.filter(({ path }) => !fields.isRefused(path));
    const wanted = candidates(open.length > 0 ? open : allowed);
    if (wanted.length > 0) return chosen(chance.one(wanted));
    const left = isBroken ? candidates(this.goals.filter(({ action }) => action === 'remove')) : [];
    if (left.length > 0) return chosen(chance.one(left));
    if (open.length === 0) return undefined;
    const goal = chance.one(open);
    return { goal: towards(goal, spec), open: goal };
  }
}

/** What an edit is to do, and the goal that this is for. */
interface Chosen {
  readonly goal: Goal;
  readonly open: Goal;
}

function chosen(goal: Goal): Chosen {
  return { goal, open: goal };
}

function towards({ action, path }: Goal, spec: Spec): Goal {
  if (action === 'set') return { action: 'remove', path };
  return { action: valuesAt(spec, path).length === 0 ? 'set' : 'add an item', path };
}

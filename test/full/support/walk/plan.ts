import { appService } from '../../../../src/kinds/app-service/kind.js';
import { goalsOf, isRequired, planWalks as planAny } from '../../../../src/testing/walk.js';
import type { Chance, Fields, Goal, Walk } from '../../../../src/testing/walk.js';
import { barredFields } from '../app-service-options.js';
import { offline } from '../verdicts.js';
import { consistent, isRefused, unionAt } from './rules.js';
import { leaves, specSchema } from './shape.js';
import type { Path } from './shape.js';
import { keysFor, valuesFor } from './values.js';

export type { Walk };

const judge = offline(appService.crd);

/** What a field can't be without. */
const COMPANIONS: Readonly<Record<string, readonly Path[]>> = {
  autoscaling: ['cpu', 'memory'].map((resource) => ['resources', 'requests', resource]),
  route: [['ports', '[]', 'port']],
};

const fields: Fields = {
  ...{ schema: specSchema, leaves, consistent, isRefused },
  choices: valuesFor,
  keys: keysFor,
  union: unionAt,
  companions: (field) => COMPANIONS[field] ?? [],
  isBarred: (path) => barredFields.includes(path.join('.')),
  problems: (spec) => {
    const { apiVersion, kind } = appService.type;
    return judge({ apiVersion, kind, metadata: { name: 'walker' }, spec });
  },
};

/** Everything that edits can do to a spec: with each field that isn't a list, and with each list. */
export const goals = goalsOf(fields);

/** The goals for a top-level field as a whole, which need not be a value itself. */
export const topGoals = Object.keys(specSchema.properties ?? {}).flatMap((field): Goal[] => {
  const path = [field];
  const change: Goal = { action: 'change', path };
  return isRequired(fields, path) ? [change] : [{ action: 'set', path }, change, { action: 'remove', path }];
});

export interface PlanProps {
  readonly walks: number;
  /** Of all walks together; there are more where goals are left then. */
  readonly leastEdits: number;
}

/**
 * Walks that together do everything to every field that can be done to it, each edit along with others at random.
 * @throws where a goal isn't reached in ten times as many edits as asked for
 */
export async function planWalks(chance: Chance, { walks, leastEdits }: PlanProps): Promise<readonly Walk[]> {
  const starts = Array.from({ length: walks }, () => ({ size: chance.upTo(1), image: 'example.com/web:1' }));
  const plan = await planAny(fields, chance, { starts, leastEdits, mostEdits: 10 * leastEdits });
  if (plan.open.length > 0) throw new Error(`Never reached: ${plan.open.join(', ')}`);
  return plan.walks;
}

import { isDeepStrictEqual } from 'node:util';
import { barredFields } from '../app-service-options.js';
import { choicesAt } from './make.js';
import { isRefused, unionAt } from './rules.js';
import { leaves, lists, specSchema, valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

/** What an edit can do to a field, and to a list while it has other items. */
export type Action = 'set' | 'change' | 'remove' | 'add an item' | 'drop an item';

/** Something that an edit of the spec can do. */
export interface Goal {
  readonly action: Action;
  readonly path: Path;
}

/** Everything that edits can do to a spec: with each field that isn't a list, and with each list. */
export const goals: readonly Goal[] = [
  ...leaves.filter((path) => !barredFields.includes(path.join('.'))).flatMap(goalsOfField),
  ...lists.flatMap(goalsOfList),
];

function goalsOfField(path: Path): Goal[] {
  // Of `size` and `image` there is always one.
  const isAlwaysThere = specSchema.required?.includes(path[0]!) ?? false;
  const mayChange = path.at(-1) === '*' || isNamedByMember(path) || choicesAt(path).length > 1;
  return [
    ...(isAlwaysThere
      ? []
      : ([
          { action: 'set', path },
          { action: 'remove', path },
        ] as const)),
    ...(mayChange ? [{ action: 'change', path } as const] : []),
  ];
}

function isNamedByMember(path: Path): boolean {
  const union = unionAt(path.slice(0, -1));
  return union?.named === path.at(-1) && union!.members.length > 1;
}

function goalsOfList(path: Path): Goal[] {
  if (isRefused(path)) return [];
  return [
    { action: 'add an item', path },
    { action: 'drop an item', path },
  ];
}

export function nameOf({ action, path }: Goal): string {
  return `${action}: ${path.join('.')}`;
}

/** Whether a goal is a matter of the spec as it is: nothing can be removed that isn't there. */
export function isPossible({ action, path }: Goal, spec: Spec): boolean {
  const values = valuesAt(spec, path).length;
  if (action === 'set') return values === 0;
  return action === 'drop an item' ? values > 1 : values > 0;
}

/** Whether an edit has done it. */
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

/** The goals for a top-level field as a whole, which need not be a value itself. */
export const topGoals: readonly Goal[] = Object.keys(specSchema.properties!).flatMap((field) =>
  goalsOfTop([field]),
);

function goalsOfTop(path: Path): Goal[] {
  if (specSchema.required?.includes(path[0]!)) return [{ action: 'change', path }];
  return [
    { action: 'set', path },
    { action: 'change', path },
    { action: 'remove', path },
  ];
}

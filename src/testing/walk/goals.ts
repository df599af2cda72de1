import { isDeepStrictEqual } from 'node:util';
import type { Fields, Path, Spec } from './fields.js';
import { choicesAt, schemaAt, valuesAt } from './fields.js';

/** What an edit can do to a field, and to a list while it has other items. */
type Action = 'set' | 'change' | 'remove' | 'add an item' | 'drop an item';

/** Something that an edit of the spec can do. */
export interface Goal {
  readonly action: Action;
  readonly path: Path;
}

/** Everything that edits can do to a spec: with each field that isn't a list, and with each list. */
export function goalsOf(fields: Fields): readonly Goal[] {
  return [
    ...fields.leaves
      .filter((path) => !path.some((_, end) => fields.isBarred(path.slice(0, end + 1))))
      .flatMap((path) => goalsOfField(fields, path)),
    ...fields.lists.flatMap((path) => goalsOfList(fields, path)),
  ];
}

function goalsOfField(fields: Fields, path: Path): Goal[] {
  const isAlwaysThere = path.every((_, end) => isRequired(fields, path.slice(0, end + 1)));
  const mayChange =
    path.at(-1) === '*' || isNamedByMember(fields, path) || choicesAt(fields, path).length > 1;
  return [
    ...(isAlwaysThere
      ? []
      : ([
          { action: 'set', path },
          { action: 'remove', path },
        ] as const)),
    ...(mayChange && fields.isFixed?.(path) !== true ? [{ action: 'change', path } as const] : []),
  ];
}

function isNamedByMember(fields: Fields, path: Path): boolean {
  const union = fields.union(path.slice(0, -1));
  return union?.named === path.at(-1) && (union?.members.length ?? 0) > 1;
}

function goalsOfList(fields: Fields, path: Path): Goal[] {
  if (fields.isRefused(path) || path.some((_, end) => fields.isBarred(path.slice(0, end + 1)))) return [];
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
export function topGoalsOf(fields: Fields): readonly Goal[] {
  return Object.keys(fields.schema.properties ?? {}).flatMap((field): Goal[] => {
    const path = [field];
    const change: Goal = { action: 'change', path };
    return isRequired(fields, path)
      ? [change]
      : [{ action: 'set', path }, change, { action: 'remove', path }];
  });
}

/** What is around it can't be without it; of the items of a list there is one at least. */
function isRequired({ schema }: Fields, path: Path): boolean {
  const field = path.at(-1);
  if (field === undefined || field === '[]') return true;
  return schemaAt(schema, path.slice(0, -1)).required?.includes(field) ?? false;
}

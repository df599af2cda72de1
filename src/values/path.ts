import { isDeepStrictEqual } from 'node:util';
import { isMap } from './json.js';

/** Step of a path: the key of a map, the index of a list, or the keys of an item, such as its `name`; an item of a set has its value by the key ''. */
export type Step = string | number | Readonly<Record<string, unknown>>;

/** Spells a path in a document: `spec.ports[0].port`, and `metadata.labels["a/b"]` for keys that aren't plain words. */
export function formatPath(path: readonly Step[]): string {
  return formatFieldPath(path).replace(/^\./, '');
}

/** Spells a path as the API server does, with a dot first: `.spec.template.spec.containers[name="app"].image`. */
export function formatFieldPath(path: readonly Step[]): string {
  return path.map(formatStep).join('');
}

function formatStep(step: Step): string {
  if (typeof step === 'string') return /^[\w$-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
  if (typeof step === 'number') return `[${step}]`;
  const keys = Object.entries(step).map(([name, value]) => `${name && `${name}=`}${JSON.stringify(value)}`);
  return `[${keys.join(',')}]`;
}

/** Returns the steps of a path through maps, as `formatFieldPath` spells it; undefined for another text. */
export function parseFieldPath(text: string): readonly string[] | undefined {
  const step = /\.([\w$-]+)|\["([^"\\]+)"\]/y;
  const steps: string[] = [];
  while (step.lastIndex < text.length) {
    const [found, word, quoted = word] = step.exec(text) ?? [];
    if (found === undefined || quoted === undefined) return undefined;
    steps.push(quoted);
  }
  return steps.length > 0 ? steps : undefined;
}

/** Spells a value as messages show it: JSON, cut after a number of characters. */
export function showValue(value: unknown, maxLength = 60): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) as string | undefined);
  if (text === undefined) return String(value);
  return text.length > maxLength ? `${text.slice(0, maxLength - 3)}...` : text;
}

/** A place where two values differ. */
export interface Difference {
  readonly path: readonly Step[];
  /** The two values; undefined where there is none. */
  readonly values: readonly [first: unknown, second: unknown];
}

/** Pairs of items of two lists that are compared, each with its step; undefined where the lists are compared as a whole. */
type Pairing = (
  first: readonly unknown[],
  second: readonly unknown[],
) => readonly (readonly [step: Step, first: unknown, second: unknown])[] | undefined;

/** Returns where two values differ, at the deepest places, in the order of the second. @param pair pairs items of lists */
export function differences(
  first: unknown,
  second: unknown,
  pair: Pairing = byIndex,
  path: readonly Step[] = [],
): Difference[] {
  if (Object.is(first, second)) return [];
  const below = pairsIn(first, second, pair);
  if (!below) return isDeepStrictEqual(first, second) ? [] : [{ path, values: [first, second] }];
  const found = below.flatMap(([step, one, other]) => differences(one, other, pair, [...path, step]));
  // The items are the same, in another order.
  const isMoved = Array.isArray(first) && found.length === 0 && !isDeepStrictEqual(first, second);
  return isMoved ? [{ path, values: [first, second] }] : found;
}

function pairsIn(first: unknown, second: unknown, pair: Pairing): ReturnType<Pairing> {
  if (Array.isArray(first) && Array.isArray(second)) return pair(first, second);
  if (!isMap(first) || !isMap(second)) return undefined;
  const keys = [...new Set([...Object.keys(second), ...Object.keys(first)])];
  const member = (of: typeof first, key: string): unknown => (Object.hasOwn(of, key) ? of[key] : undefined);
  return keys.map((key) => [key, member(first, key), member(second, key)]);
}

const byIndex: Pairing = (first, second) =>
  Array.from({ length: Math.max(first.length, second.length) }, (_, at) => [at, first[at], second[at]]);

/** Keys of items: the first counts that all items have, each with a value of its own. */
const KEYS: readonly string[] = ['name', 'uid', 'port', 'containerPort', 'mountPath', 'key', 'ip', 'type'];

/** Pairs items by the key that identifies them, and else by their index, in lists of one length. */
export const byKey: Pairing = (first, second) => {
  for (const key of KEYS) {
    const [was, is] = [itemsBy(first, key), itemsBy(second, key)];
    if (was && is)
      return [...new Set([...is.keys(), ...was.keys()])].map((value) => [
        { [key]: value },
        was.get(value),
        is.get(value),
      ]);
  }
  return first.length === second.length ? byIndex(first, second) : undefined;
};

/** Returns the items by a key; undefined where it doesn't identify them. */
function itemsBy(items: readonly unknown[], key: string): Map<unknown, unknown> | undefined {
  const found = new Map(items.map((item) => [isMap(item) ? item[key] : undefined, item]));
  const isKey = [...found.keys()].every((value) => typeof value === 'string' || typeof value === 'number');
  return isKey && found.size === items.length ? found : undefined;
}

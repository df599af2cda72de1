import { celList, isCelList, isCelMap } from '@bufbuild/cel';
import type { CelList, CelMap, CelValue } from '@bufbuild/cel';

/** How a list of type `set` or `map` tells its items apart: by themselves, or by these fields. */
type ItemKeys = readonly string[] | 'value';

/** Lists whose order means nothing. What isn't in here is compared item by item. */
const unordered = new WeakMap<CelList, ItemKeys>();

/** A list of the type that `x-kubernetes-list-type` says; the keys are escaped as fields are. */
export function typedList(items: readonly CelValue[], keys?: ItemKeys): CelList {
  const list = celList([...items]);
  if (keys !== undefined) unordered.set(list, keys);
  return list;
}

/** Whether a value is equal to another one, by the rules of the first. */
export type Equals = (a: CelValue, b: CelValue) => boolean;

/**
 * `==` of Kubernetes: as in CEL, but for lists of type `set` and `map`, in which the order means nothing.
 * @param scalars compares what is neither a list nor a map
 */
export function equality(scalars: Equals): Equals {
  const equals: Equals = (a, b) => {
    if (isCelList(a) && isCelList(b)) return a.size === b.size && equalLists(a, b);
    if (isCelMap(a) && isCelMap(b)) return a.size === b.size && equalMaps(a, b);
    return scalars(a, b);
  };
  const equalLists = (a: CelList, b: CelList): boolean => {
    const keys = unordered.get(a);
    const others = [...b];
    if (keys === undefined) return [...a].every((item, index) => equals(item, others[index] as CelValue));
    const items = [...a];
    return others.every((other) => {
      const match = items.find((item) => sameItem(item, other, keys, equals));
      return match !== undefined && equals(match, other);
    });
  };
  const equalMaps = (a: CelMap, b: CelMap): boolean =>
    [...a].every(([key, value]) => {
      const other = b.get(key);
      return other !== undefined && equals(value, other);
    });
  return equals;
}

/** `+` of Kubernetes: a union for a list of type `set`, a merge for one of type `map`. */
export function concatenation(equals: Equals): (a: CelList, b: CelList) => CelList {
  return (a, b) => {
    const keys = unordered.get(a);
    const items = [...a];
    for (const added of b) {
      const at = keys === undefined ? -1 : items.findIndex((item) => sameItem(item, added, keys, equals));
      if (at === -1) items.push(added);
      else items[at] = added;
    }
    return typedList(items, keys);
  };
}

function sameItem(a: CelValue, b: CelValue, keys: ItemKeys, equals: Equals): boolean {
  if (keys === 'value') return equals(a, b);
  if (!isCelMap(a) || !isCelMap(b)) return false;
  return keys.every((key) => {
    const [left, right] = [a.get(key), b.get(key)];
    return left === undefined || right === undefined ? left === right : equals(left, right);
  });
}
